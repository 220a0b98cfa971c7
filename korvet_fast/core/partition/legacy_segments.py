"""The segments of a log in the format `legacy`, as Kafka 0.7 tells its clients of them (an answer to OFFSETS).

They are kept by core, as only one of the stores has files: a new one begins before an append once the present one is
larger than `segment.bytes` or older than `segment.ms`, and behind a gap. What retention takes away is left out.
"""

import struct
from bisect import bisect_right
from itertools import pairwise
from operator import itemgetter
from typing import Final

from korvet_fast.store.types import LARGE, SegmentLimits
from korvet_fast.types import EARLIEST, LATEST

_HEAD: Final = struct.Struct("<qi")  # the end, how many segments
_FIELDS: Final = 3
_START: Final = itemgetter(0)

Edge = tuple[int, int]  # an offset, and the time in ms that it counts with


class LegacySegments:
    """For each segment its start, and the times of its first and its last append, in ms. `end`: of the last one.

    `limits`: when a segment is full, for `replay`.
    """

    __slots__ = ("_rows", "end", "limits")

    def __init__(self, limits: SegmentLimits = LARGE) -> None:
        self._rows: list[tuple[int, int, int]] = []
        self.end = 0
        self.limits = limits

    def is_full(self, now: int, limits: SegmentLimits) -> bool:
        """Whether the next append begins a new one."""
        if not self._rows:
            return False
        start, first, _ = self._rows[-1]
        size, longest = limits
        return self.end > start and (self.end - start > size or now - first > longest)

    def note(self, base: int, end: int, time: int, *, begins: bool = False) -> None:
        """There was an append from `base` to `end`.

        `begins`: in a new segment, as an append behind a gap always does.
        """
        rows = self._rows
        while rows and rows[-1][0] > base:
            del rows[-1]  # the batches appended there before were lost
        if begins or not rows or base > self.end:
            rows.append((base, time, time))
        else:
            start, first, _ = rows[-1]
            rows[-1] = start, first, time
        self.end = end

    def replay(self, base: int, end: int, time: int) -> None:
        """There was an append of this batch, which nobody noted: the broker was killed before the segments were saved.

        All batches of a set have one time, so none begins a segment in the middle of it. Where several sets have the
        same time, a segment begins behind them that may have begun between them.
        """
        rows = self._rows
        begins = bool(rows) and rows[-1][2] != time and self.is_full(time, self.limits)
        self.note(base, end, time, begins=begins)

    def find_edge(self, offset: int) -> int | None:
        """The start of the segment after the one that holds `offset`; None if that is the last one."""
        rows = self._rows
        place = bisect_right(rows, offset, key=_START)
        return rows[place][0] if place < len(rows) else None

    def find_offsets(self, time: int, most: int, start: int, visible: int, now: int) -> list[int]:
        """The answer to OFFSETS, highest first, for a log that starts at `start` and is seen up to `visible`.

        `time` in ms; -1: from the end on; -2: the start. `now`: the time that the end counts with.
        """
        entries = self._list(start, visible)
        if visible > entries[-1][0]:
            entries.append((visible, now))
        if time == LATEST:
            chosen = len(entries)
        elif time == EARLIEST:
            chosen = 1
        else:
            chosen = max((place + 1 for place, entry in enumerate(entries) if entry[1] <= time), default=0)
        return [offset for offset, _ in reversed(entries[:chosen])][:most]

    def _list(self, start: int, visible: int) -> list[Edge]:
        """The segments that hold something between these offsets; one at least."""
        starts = [row[0] for row in self._rows] + [1 << 63]
        found = [
            (max(first, start), row[2])
            for row, (first, following) in zip(self._rows, pairwise(starts), strict=True)
            if following > start and first <= visible
        ]
        return found or [(start, 0)]

    def pack(self) -> bytes:
        """All of them, as little-endian numbers."""
        numbers = [number for row in self._rows for number in row]
        return _HEAD.pack(self.end, len(self._rows)) + struct.pack(f"<{len(numbers)}q", *numbers)

    def load(self, data: memoryview) -> memoryview:
        """Replace all segments by those that `pack` packed; returns the bytes behind them."""
        self.end, many = _HEAD.unpack_from(data)
        numbers = struct.unpack_from(f"<{_FIELDS * many}q", data, _HEAD.size)
        self._rows = list(zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True))
        return data[_HEAD.size + 8 * len(numbers) :]

    def clear(self) -> None:
        """Forget all of them."""
        self._rows, self.end = [], 0
