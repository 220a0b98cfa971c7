"""The sparse index of one segment: where a batch at an offset, or of a time, can begin.

It is kept beside the segment when that is full or closed. One row per `index.interval.bytes` of log: a batch's
first offset, its position in the file, and the largest record time of everything before it. The file says how many
bytes of the segment were flushed when it was written: recovery trusts those and reads only what came after.
"""

import struct
import zlib
from array import array
from bisect import bisect_left, bisect_right
from pathlib import Path
from typing import NamedTuple

from korvet_fast.store.embedded.files import replace_file

_MAGIC = b"KFX1"
_HEAD = struct.Struct("<4sqqqqqI")  # magic, size, end, first time, max time, rows, checksum of the rows
_CHECKSUM = struct.Struct("<I")  # the checksum of the head
ROW = 24  # bytes: an offset, a position, a time
_ROWS_AT = _HEAD.size + _CHECKSUM.size


class Summary(NamedTuple):
    """The summary of the first `size` bytes of a segment."""

    size: int
    end: int  # the offset after the last record
    first_time: int  # the largest record time of the first batch, in ms; -1 in an empty segment
    max_time: int  # the largest record time, in ms; -1 in an empty segment


class Index:
    """Rows of (offset, position, largest time before), all three rising."""

    __slots__ = ("_offsets", "_positions", "_times")

    def __init__(self) -> None:
        self._offsets = array("q")
        self._positions = array("q")
        self._times = array("q")

    def __len__(self) -> int:
        return len(self._offsets)

    def add(self, offset: int, position: int, time_before: int) -> None:
        """One more row, for a batch that begins at `position` with `offset`."""
        self._offsets.append(offset)
        self._positions.append(position)
        self._times.append(time_before)

    def position(self, offset: int) -> int:
        """A position at or before the batch that holds `offset`, or the next one above it."""
        row = bisect_right(self._offsets, offset) - 1
        return self._positions[row] if row >= 0 else 0

    def row_at(self, offset: int, base: int) -> tuple[int, int]:
        """The offset and the position of the last row at or before `offset`; (`base`, 0) before the first row."""
        row = bisect_right(self._offsets, offset) - 1
        return (self._offsets[row], self._positions[row]) if row >= 0 else (base, 0)

    def row_within(self, offset: int, position: int) -> tuple[int, int]:
        """The offset and the position of the last row of which neither is larger than these; (-1, -1) without one."""
        row = bisect_right(self._positions, position) - 1
        if row >= 0 and self._offsets[row] > offset:  # rare: one search is enough for most reads
            row = bisect_right(self._offsets, offset, 0, row) - 1
        return (self._offsets[row], self._positions[row]) if row >= 0 else (-1, -1)

    def offset_of(self, position: int) -> int:
        """The offset of the row that is at `position`; -1 if there is none."""
        row = bisect_left(self._positions, position)
        return self._offsets[row] if row < len(self) and self._positions[row] == position else -1

    def time_position(self, ms: int) -> int:
        """A position at or before the first batch with a record at or after `ms`."""
        row = bisect_left(self._times, ms) - 1
        return self._positions[row] if row >= 0 else 0

    def last_position(self) -> int:
        """The position of the last row, 0 without rows."""
        return self._positions[-1] if self._positions else 0

    def pack(self) -> bytes:
        """All rows: the offsets, then the positions, then the times, `ROW` bytes a row in all."""
        return b"".join(column.tobytes() for column in (self._offsets, self._positions, self._times))

    @classmethod
    def unpack(cls, rows: bytes | memoryview) -> "Index":
        """The index whose `pack` gave these rows."""
        index = cls()
        each = len(rows) // 3
        for number, column in enumerate((index._offsets, index._positions, index._times)):
            column.frombytes(rows[each * number : each * (number + 1)])
        return index

    def write(self, path: Path, summary: Summary) -> None:
        """Put the index beside its segment. Raises `OSError`.

        Not flushed: checksums reveal an index that a power failure damaged, and it can be built again.
        """
        rows = self.pack()
        head = _HEAD.pack(_MAGIC, *summary, len(self), zlib.crc32(rows))
        head += _CHECKSUM.pack(zlib.crc32(head))
        replace_file(path, head + rows, sync=False)


def read_summary(path: Path) -> Summary | None:
    """Read the index file at `path`; None if there is none or if it is damaged. Raises `OSError`."""
    try:
        with path.open("rb") as file:
            head = file.read(_ROWS_AT)
    except FileNotFoundError:
        return None
    parsed = _parse_head(head)
    return parsed[0] if parsed else None


def read_index(path: Path) -> tuple[Summary, Index] | None:
    """The index file at `path`; None if there is none or it is damaged. Raises `OSError`."""
    try:
        data = memoryview(path.read_bytes())
    except FileNotFoundError:
        return None
    parsed = _parse_head(data[:_ROWS_AT])
    if parsed is None:
        return None
    summary, rows, checksum = parsed
    if len(data) != _ROWS_AT + ROW * rows or zlib.crc32(data[_ROWS_AT:]) != checksum:
        return None
    return summary, Index.unpack(data[_ROWS_AT:])


def _parse_head(head: bytes | memoryview) -> tuple[Summary, int, int] | None:
    if len(head) < _ROWS_AT:
        return None
    magic, size, end, first_time, max_time, rows, rows_checksum = _HEAD.unpack_from(head)
    (checksum,) = _CHECKSUM.unpack_from(head, _HEAD.size)
    if magic != _MAGIC or checksum != zlib.crc32(head[: _HEAD.size]):
        return None
    return Summary(size, end, first_time, max_time), rows, rows_checksum
