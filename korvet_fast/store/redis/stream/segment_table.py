"""Segments of a log, in little memory: of all but the last, which grows, the numbers lie in one block."""

from array import array
from bisect import bisect_right
from collections.abc import Iterator


class Segment:
    """A summary of all entries from offset `first` up to `end`."""

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

    def list_numbers(self) -> "array[int]":
        """Everything known of it, for `SegmentTable`."""
        numbers = (self.first, self.end, self.size, self.count, self.latest, self.began, self.timed)
        return array("q", numbers)


FIELDS = len(Segment.__slots__)
NOTHING = array("q")  # for all that have no numbers; never changed


def read_segment(numbers: "array[int]", at: int) -> Segment:
    """The segment whose numbers begin at `at`."""
    *fields, timed = numbers[at : at + FIELDS]
    return Segment(*fields, timed=bool(timed))


class SegmentTable:
    """Segments in rising order. `last`: the only one that may be changed, None if there are none."""

    __slots__ = ("last", "numbers")

    def __init__(self) -> None:
        self.last: Segment | None = None
        self.numbers = NOTHING  # of those before the last

    def __len__(self) -> int:
        return len(self.numbers) // FIELDS + (self.last is not None)

    def __getitem__(self, place: int) -> Segment:
        at = (place if place >= 0 else place + len(self)) * FIELDS
        if at < len(self.numbers):
            return read_segment(self.numbers, at)
        if self.last is None or at > len(self.numbers):
            raise IndexError(place)
        return self.last

    def __iter__(self) -> Iterator[Segment]:
        return (self[place] for place in range(len(self)))

    def find_place(self, offset: int) -> int:
        """How many segments begin at or below an offset."""
        last, numbers = self.last, self.numbers
        if last is None or last.first <= offset:
            return len(self)
        return bisect_right(range(0, len(numbers), FIELDS), offset, key=numbers.__getitem__)

    def _count_below(self, end: int) -> int:
        if self.last is not None and self.last.end <= end:
            return len(self)
        return bisect_right(range(1, len(self.numbers), FIELDS), end, key=self.numbers.__getitem__)

    def measure(self, end: int) -> int:
        """The bytes of those in front that end at or below an offset."""
        count = self._count_below(end)
        size = sum(self.numbers[2 : count * FIELDS : FIELDS])
        return size + (self.last.size if self.last is not None and count == len(self) else 0)

    def find_latest(self) -> int:
        """The largest record time of all, in ms; -1 if there are none."""
        latest = -1 if self.last is None else self.last.latest
        return max(latest, max(self.numbers[4::FIELDS], default=latest))

    def append(self, segment: Segment) -> None:
        if self.last is not None and self.numbers:
            self.numbers += self.last.list_numbers()
        elif self.last is not None:
            self.numbers = self.last.list_numbers()
        self.last = segment

    def insert(self, place: int, segment: Segment) -> None:
        """Put a segment in front of the one at this place."""
        if place == len(self):
            self.append(segment)
        else:
            at = place * FIELDS
            self.numbers = self.numbers[:at] + segment.list_numbers() + self.numbers[at:]

    def pop(self) -> None:
        """Remove the last one, if there is one."""
        self.load(self.numbers)

    def load(self, numbers: "array[int]") -> None:
        """Replace all segments by those with these numbers; keeps the array."""
        self.numbers, self.last = numbers, None
        if numbers:
            self.last = read_segment(numbers, len(numbers) - FIELDS)
            del numbers[-FIELDS:]

    def trim(self, end: int) -> None:
        """Remove those in front that end at or below an offset."""
        count = self._count_below(end)
        if count == len(self):
            self.last = None
        del self.numbers[: count * FIELDS]

    def clear(self) -> None:
        """Remove all."""
        self.last, self.numbers = None, NOTHING
