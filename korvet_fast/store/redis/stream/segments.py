"""A summary of a log, which saves reading the log again: segments of offsets, with their bytes and largest time.

Own appends are known as they are made; the rest becomes known as it is read. Sparse, and only in memory: looking for a
time or for what retention lets go reads each part of a log at most once.
"""

import struct
from array import array

from korvet_fast.store.redis.stream.segment_table import NOTHING, Segment, SegmentTable, read_segment
from korvet_fast.store.types import SegmentLimits

# The largest size of a segment; as retention takes whole segments, this is also its precision.
SEGMENT_LIMITS = SegmentLimits(64 << 10, 10 * 60_000)
MOST = 4096  # segments of one log; beyond it, neighbours are joined
_COUNTS = struct.Struct("<3q")  # up to where nothing lies between them, numbers of all, and of the one last trusted
_NUMBER = 8  # bytes


class Segments:
    """The segments known of one log, rising. Between two of them may be offsets of which nothing is known."""

    __slots__ = ("_last", "_sure", "rows")

    def __init__(self) -> None:
        self.rows = SegmentTable()
        self._sure = 0  # entries appended above may have others' entries between them
        self._last = NOTHING  # the numbers of the last row, as it was at the last `trust`

    def grow(self, row: Segment, limit: tuple[int, int]) -> None:
        """Add entries that this broker appended last. `limit`: bytes and ms of record time that a segment may have."""
        last = self.rows.last
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
        """Add a part of the log that was read."""
        place = self.rows.find_place(row.first)
        if not (place and self.rows[place - 1].end > row.first):  # else somebody else has read it meanwhile
            self.rows.insert(place, row)

    def find(self, offset: int) -> Segment | None:
        """The segment that covers an offset."""
        place = self.rows.find_place(offset)
        return self.rows[place - 1] if place and self.rows[place - 1].end > offset else None

    def find_unknown(self, start: int, end: int) -> tuple[int, int] | None:
        """The first part of `start` <= o < `end` that is not covered."""
        while start < end:
            row = self.find(start)
            if row is None:
                place = self.rows.find_place(start)
                return start, min(end, self.rows[place].first) if place < len(self.rows) else end
            start = row.end
        return None

    def trust(self, end: int) -> None:
        """Note that no other program has added entries between the segments below `end`."""
        self._sure = end
        self._last = self.rows.last.list_numbers() if self.rows.last is not None else NOTHING

    def distrust(self) -> None:
        """Another program has added entries since `trust`: forget the segments appended since."""
        rows = self.rows
        while rows.last is not None and rows.last.first >= self._sure:
            rows.pop()
        last = rows.last
        if last is not None and last.end > self._sure:
            rows.pop()
            if self._last and self._last[0] == last.first:  # else it was read since
                rows.append(read_segment(self._last, 0))

    def trim(self, start: int) -> None:
        """Forget the segments that end at or below `start`."""
        self.rows.trim(start)

    def clear(self) -> None:
        """Forget everything."""
        self.rows.clear()
        self._sure, self._last = 0, NOTHING

    def pack(self) -> bytes:
        """Everything known."""
        last = self.rows.last
        numbers = self.rows.numbers + last.list_numbers() if last is not None else NOTHING
        return _COUNTS.pack(self._sure, len(numbers), len(self._last)) + (numbers + self._last).tobytes()

    def unpack(self, packed: bytes, start: int) -> int:
        """Load what `pack` gave, from position `start` of these bytes; returns the position behind it."""
        self._sure, many, last = _COUNTS.unpack_from(packed, start)
        start += _COUNTS.size
        end: int = start + (many + last) * _NUMBER
        numbers = array("q", packed[start:end])
        self._last = numbers[many:]
        self.rows.load(numbers[:many])
        return end

    def _join(self) -> None:
        rows, self.rows = self.rows, SegmentTable()
        self._last = NOTHING
        for number, row in enumerate(rows):
            last = self.rows.last
            if number % 2 and last is not None and last.end == row.first:
                last.add(row)
            else:
                self.rows.append(row)
