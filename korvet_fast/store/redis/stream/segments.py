"""A summary of a log, which saves reading the log again: segments of offsets, with their bytes and largest time.

Own appends are known as they are made; the rest becomes known as it is read. Sparse, and only in memory: looking for a
time or for what retention lets go reads each part of a log at most once.
"""

from bisect import bisect_right

from korvet_fast.store.types import SegmentLimits

# The largest size of a segment; as retention takes whole segments, this is also its precision.
SEGMENT_LIMITS = SegmentLimits(64 << 10, 10 * 60_000)
MOST = 4096  # segments of one log; beyond it, neighbours are joined


class Segment:
    """Offsets from `first` up to `end`: all that is there is known."""

    __slots__ = ("began", "count", "end", "first", "latest", "size", "timed")

    def __init__(
        self, first: int, end: int, size: int, count: int, latest: int, began: int, *, timed: bool = True
    ) -> None:
        self.first = first
        self.end = end
        self.size = size  # bytes
        self.count = count  # entries of the stream
        self.latest = latest  # the largest record time, in ms; without one, that of the id, if ids have times
        self.began = began  # the largest record time of its first batch
        self.timed = timed  # whether the age of its last batch is known

    def add(self, other: "Segment") -> None:
        """Take in what follows."""
        self.end = other.end
        self.size += other.size
        self.count += other.count
        self.timed = other.timed
        if other.latest > self.latest:
            self.latest = other.latest

    def copy(self) -> "Segment":
        """As it is now."""
        return Segment(self.first, self.end, self.size, self.count, self.latest, self.began, timed=self.timed)


class Segments:
    """The segments known of one log, rising. Between two of them may lie what is not known."""

    __slots__ = ("_last", "_sure", "rows")

    def __init__(self) -> None:
        self.rows: list[Segment] = []
        self._sure = 0  # entries appended above may have others' entries between them
        self._last: Segment | None = None  # the last row, as it was when that was said

    def grow(self, row: Segment, limit: tuple[int, int]) -> None:
        """Add entries that this broker appended last. `limit`: bytes and ms of record time that a segment may have."""
        last = self.rows[-1] if self.rows else None
        if (
            last is not None
            and last.end == row.first
            and last.size + row.size <= limit[0]
            and row.began - last.began <= limit[1]
        ):
            last.add(row)
        else:
            self.rows.append(row)
            if len(self.rows) > MOST:
                self._join()

    def note(self, row: Segment) -> None:
        """A part that was read."""
        place = self._place(row.first)
        if not (place and self.rows[place - 1].end > row.first):  # else somebody else has read it meanwhile
            self.rows.insert(place, row)

    def find(self, offset: int) -> Segment | None:
        """The segment that covers an offset."""
        place = self._place(offset)
        return self.rows[place - 1] if place and self.rows[place - 1].end > offset else None

    def find_unknown(self, start: int, end: int) -> tuple[int, int] | None:
        """The first part of `start` <= o < `end` that is not covered."""
        while start < end:
            row = self.find(start)
            if row is None:
                place = self._place(start)
                return start, min(end, self.rows[place].first) if place < len(self.rows) else end
            start = row.end
        return None

    def trust(self, end: int) -> None:
        """Up to `end`, nobody has put anything in between."""
        self._sure = end
        self._last = self.rows[-1].copy() if self.rows else None

    def distrust(self) -> None:
        """Somebody has, since `trust`: forget what was appended since."""
        while self.rows and self.rows[-1].first >= self._sure:
            self.rows.pop()
        if self.rows and self.rows[-1].end > self._sure:
            self.rows.pop()
            if self._last is not None:
                self.rows.append(self._last)

    def trim(self, start: int) -> None:
        """Forget what ends at or below `start`."""
        count = 0
        while count < len(self.rows) and self.rows[count].end <= start:
            count += 1
        del self.rows[:count]

    def clear(self) -> None:
        """Forget everything."""
        self.rows.clear()
        self._sure, self._last = 0, None

    def _place(self, offset: int) -> int:
        return bisect_right(self.rows, offset, key=lambda row: row.first)

    def _join(self) -> None:
        rows, self.rows = self.rows, []
        self._last = None
        for number, row in enumerate(rows):
            if number % 2 and self.rows[-1].end == row.first:
                self.rows[-1].add(row)
            else:
                self.rows.append(row)
