"""A partition whose log keeps messages of Kafka 0.7 as they were sent (format `legacy`).

An offset is the position that a message has in 0.7's log, so a batch takes as many offsets as its messages have bytes.
Clients of 0.7 read those bytes. Everybody else reads the payloads, wrappers opened, with the time of append.
"""

import asyncio
import struct
from typing import Any, Final, TypeAlias

from korvet_fast._native import down_convert, to_values
from korvet_fast.core.fair_queue import Pace
from korvet_fast.core.partition.collaborators import PartitionCollaborators
from korvet_fast.core.partition.legacy_segments import LegacySegments
from korvet_fast.core.partition.partition import AppendResult, BatchSummary, Partition
from korvet_fast.core.partition.time_lookup import run_in_thread
from korvet_fast.core.topic_config import TopicConfig
from korvet_fast.errors import CodecError, Errors, KorvetError
from korvet_fast.store.types import ReadResult, SegmentLimits
from korvet_fast.types import INLINE_EXPANDED, UNPACKS_TO_MUCH, Buffer

_EXPANDED: Final = 1 << 30  # bytes that wrappers may decompress to; on their way in they were bounded more tightly
_PAGE: Final = 8 << 20  # bytes of batches read at a time for an answer of 0.7
_SPARE: Final = 4096  # bytes read beyond those asked for: batches and records have headers
_SHORT: Final = 64 << 10  # bytes that are cheaper to copy than to keep with the whole page they are in
_BEGIN: Final = SegmentLimits(0, 1 << 62)  # the store begins a new segment with this append
_GO_ON: Final = SegmentLimits(1 << 62, 1 << 62)  # the store appends to the last segment
TOGETHER: Final = 16  # batches of a set that are appended at a time: a millisecond
_ALL: Final = -1  # acks=all: clients see durable messages only
_FILLED: Final = 1 << 31  # offsets that one batch can take
_EMPTY: Final = struct.Struct(">qiibIhiqqqhii")  # a batch's header, with no record behind it

OffsetBatches: TypeAlias = list[tuple[bytearray, int]]  # batches, and how many offsets each takes


class LegacyPartition(Partition):
    """As any other partition; `segments` are those that clients of 0.7 are told of."""

    __slots__ = ("_opening", "_undivided", "segments")

    def __init__(self, given: PartitionCollaborators, topic: str, index: int, config: TopicConfig) -> None:
        self.segments = LegacySegments(config.segment_limits)
        super().__init__(given, topic, index, config, self.segments)
        self._opening = given.opening
        self._undivided = 0  # sets that are being appended while others have their turns
        self.segment_limits = _GO_ON

    def configure(self, config: TopicConfig) -> None:
        """See `Partition.configure`."""
        super().configure(config)
        self.segments.limits = config.segment_limits
        self.segment_limits = _GO_ON

    def append(self, data: bytearray | memoryview, summary: BatchSummary, acks: int, now: int) -> AppendResult:
        """See `Partition.append`; `summary` counts the offsets that the batch takes, not its records."""
        return self._append(data, summary, acks, now, self._is_full(now))

    def append_messages(
        self, batches: OffsetBatches, now: int, begins: bool | None = None
    ) -> list["asyncio.Future[Any]"]:
        """Append the batches of one set, which no segment divides; the futures that end when they are durable.

        `begins`: in a new segment; None: if the last one is full. Raises as `append`.
        """
        if begins is None:
            begins = self._is_full(now)
        waiting = []
        for data, many in batches:
            *_, done = self._append(data, (len(data), many, now, 0, None), _ALL, now, begins)
            begins = False
            if done is not None:
                waiting.append(done)
        return waiting

    async def append_large_set(self, batches: OffsetBatches, now: int, pace: Pace) -> list["asyncio.Future[Any]"]:
        """As `append_messages`, some batches at a time: others go first between, and may append to this log, too."""
        waiting = []
        begins = self._is_full(now)
        self._undivided += 1
        try:
            for start in range(0, len(batches), TOGETHER):
                waiting += self.append_messages(batches[start : start + TOGETHER], now, begins)
                begins = False
                if pace.due():
                    await pace.turn()
        finally:
            self._undivided -= 1
        return waiting

    def _is_full(self, now: int) -> bool:
        """Whether the next append begins a new segment."""
        return not self._undivided and self.segments.is_full(now, self.config.segment_limits)

    async def begin_at(self, offset: int, now: int) -> None:
        """Let a log without messages start at `offset`: the positions below it were taken by messages that are gone.

        Raises as `append` and `delete_records`, and `StoreError`.
        """
        waiting: list[asyncio.Future[Any]] = []
        while (end := self.log.end) < offset:
            many = min(offset - end, _FILLED)
            waiting += self.append_messages([(_fill(many), many)], now)
        await asyncio.gather(*waiting)
        await self.log.flush()
        await self.log.delete_records(offset)

    def _append(
        self, data: bytearray | memoryview, summary: BatchSummary, acks: int, now: int, begins: bool
    ) -> AppendResult:
        """As `append`. `begins`: in a new segment."""
        at = self.log.end
        self.segment_limits = _BEGIN if begins else _GO_ON
        appended = super().append(data, summary, acks, now)
        if self.log.end != at:  # the batch was no repetition
            self.segments.note(at, self.log.end, now, begins=begins)
            if begins:
                self.saver.save_soon()
        return appended

    async def read(self, offset: int, max_bytes: int, copy: bool = False) -> ReadResult:
        """See `Partition.read`: the payloads as record batches, which are always copies."""
        limit = self.high_watermark.offset
        page = await self._read_values(offset, max(max_bytes, 1))
        if not page.data and offset < limit:
            self.log.gap_start, self.log.gap_end = offset, limit
        return page

    async def read_copied(self, offset: int, max_bytes: int) -> ReadResult:
        """See `Partition.read_copied`: the payloads as record batches."""
        return await self._read_values(offset, max_bytes)

    async def _read_values(self, offset: int, max_bytes: int) -> ReadResult:
        at = offset
        while (page := await super().read_copied(at, max_bytes)).data:
            values, at = await self._open(_join(page.data), at, max_bytes)
            if values:
                return ReadResult([values], at)
        return ReadResult([], offset)

    async def _open(self, batches: Buffer, offset: int, max_bytes: int) -> tuple[bytearray, int]:
        try:
            try:
                return to_values(batches, offset, max_bytes, INLINE_EXPANDED)
            except CodecError as error:
                if error.code != UNPACKS_TO_MUCH:
                    raise
            async with self._opening:
                opened: tuple[bytearray, int] = await run_in_thread(to_values, batches, offset, max_bytes, _EXPANDED)
                return opened
        except CodecError as error:
            raise KorvetError(Errors.CORRUPT_MESSAGE, f"{self.name} at {offset}: {error}") from error

    async def read_messages(self, start: int, end: int) -> list[Buffer]:
        """The bytes of 0.7's log from `start` up to `end`, which is durable; fewer only where the log has a gap.

        Raises `KorvetError` and `StoreError` as `Partition.read_copied`.
        """
        parts: list[Buffer] = []
        at = start
        while at < end:
            page = await self._read_stored(at, end)
            try:
                made = down_convert(page, at, end)
            except CodecError as error:
                raise KorvetError(Errors.CORRUPT_MESSAGE, f"{self.name} at {at}: {error}") from error
            if not made:
                break
            # A view keeps all of its page, which may be a batch of a MiB for a byte that was asked for.
            short = made < _SHORT or made < len(page) // 2
            parts.append(bytes(page[:made]) if short else page[:made])
            at += made
        return parts

    async def _read_stored(self, start: int, end: int) -> memoryview:
        """Batches of one segment, from that with position `start` about as far as `end`; they may be written over.

        Raises as `Partition.read_copied`.
        """
        self.check_offset(start)
        limit = self.high_watermark.offset
        if start >= limit:
            return memoryview(bytearray())
        edge = self.segments.find_edge(start)
        wanted = end - start
        page = await self.log.opened.read(
            start,
            min(wanted + (wanted >> 4) + _SPARE, _PAGE),
            limit if edge is None else min(limit, edge),
            copy=True,
        )
        view = memoryview(page.data[0] if len(page.data) == 1 else bytearray().join(page.data))
        return memoryview(bytearray(view)) if view.readonly else view


def _join(parts: list[Buffer]) -> Buffer:
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _fill(many: int) -> bytearray:
    """A batch of no record that takes so many offsets; its checksum is made with the time of append."""
    return bytearray(_EMPTY.pack(0, _EMPTY.size - 12, 0, 2, 0, 0, many - 1, 0, 0, -1, -1, -1, 0))
