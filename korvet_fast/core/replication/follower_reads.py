"""Consumers at a follower: they read this broker's copy up to the high watermark that it knows (KIP-392).

To a fetch a `FollowerPartition` is a partition that can only be read, and its own log.
"""

import asyncio
from collections import deque
from typing import Final

from korvet_fast.core.partition.high_watermark import HighWatermark, WatermarkListener
from korvet_fast.core.partition.leader_epochs import epoch_error
from korvet_fast.core.replication.replica import LogListener, Replica
from korvet_fast.core.replication.replicas import Replicas
from korvet_fast.errors import Errors, KorvetError
from korvet_fast.store.types import ReadResult
from korvet_fast.types import Buffer

_PLENTY: Final = 1 << 30  # bytes: more than a fetch waits for


class FollowerPartition(LogListener):
    """A copy as consumers read it. `high_watermark`: as the leader told it, never above the end of the copy."""

    entries_layout: Final = False
    is_shared: Final = False

    __slots__ = ("_draining", "_replica", "_uncommitted", "high_watermark")

    def __init__(self, replica: Replica, draining: asyncio.Event) -> None:
        """`draining`: set when long polls are to be answered at once."""
        self._replica = replica
        self._draining = draining
        self._uncommitted: deque[tuple[int, int, int]] = deque()  # batches: first offset, end, bytes
        self.high_watermark = HighWatermark(lambda _: None)  # records counted here are on the disk
        self.high_watermark.reset(replica.high_watermark)

    # -- as the log of a fetch -----------------------------------------------------------------------------------

    @property
    def log(self) -> "FollowerPartition":
        return self

    @property
    def start(self) -> int:
        """The offset of the first record."""
        return self._replica.start

    @property
    def removed(self) -> int:
        """As `start`: there is no offset below that nothing was removed from."""
        return self._replica.start

    @property
    def end(self) -> int:
        """The offset after the last record of the copy."""
        return self._replica.end

    @property
    def told_high_watermark(self) -> int:
        """See `Partition.told_high_watermark`; what this copy told never goes back."""
        return self.high_watermark.offset

    @property
    def delayed_fetches(self) -> dict[WatermarkListener, None]:
        """The fetches that wait for the watermark."""
        return self.high_watermark.delayed_fetches

    @property
    def draining(self) -> bool:
        """Whether a waiting fetch must be answered now."""
        return self._draining.is_set()

    def subscribe(self) -> None:
        """Nobody else writes here."""

    async def refresh_bounds(self) -> None:
        """The bounds are those of the copy at any time."""

    def available_bytes(self, offset: int) -> int:
        """Bytes that can be read from `offset` on; plenty, where the copy was read for the first time behind it."""
        known = self.high_watermark.count_available_bytes(offset)
        return _PLENTY if known is None else known

    # -- as its partition ----------------------------------------------------------------------------------------

    def check_epoch(self, given: int) -> None:
        """As `Partition.check_epoch`, with the epoch of the leader that is followed."""
        if given != -1 and given != (known := self._replica.state.epoch):
            raise KorvetError(epoch_error(given, known), f"epoch {given} was given, the copy is at {known}")

    def check_offset(self, offset: int) -> None:
        """Raises `KorvetError` unless the copy has this offset, or ends there.

        OFFSET_OUT_OF_RANGE if the leader has it no more, or never had it: a client asks the leader then.
        OFFSET_NOT_AVAILABLE if the copy only lacks it yet.
        """
        replica = self._replica
        if offset > replica.end and (replica.lag != 0 or not replica.in_sync):
            raise KorvetError(Errors.OFFSET_NOT_AVAILABLE, f"{offset}, but this copy of {replica.name} is behind")
        if not replica.start <= offset <= replica.end:
            text = f"{offset}, but this copy of {replica.name} holds {replica.start} to {replica.end}"
            raise KorvetError(Errors.OFFSET_OUT_OF_RANGE, text)

    async def check_above_end(self, offset: int) -> None:
        """As `check_offset`."""
        self.check_offset(offset)

    async def read(self, offset: int, max_bytes: int, copy: bool = False) -> ReadResult:
        """As `Partition.read`. Raises OFFSET_NOT_AVAILABLE between the watermark and the end of the copy."""
        self.check_offset(offset)
        limit = self.high_watermark.offset
        if offset > limit:
            text = f"{offset}, but {self._replica.name} is known to be committed up to {limit} only"
            raise KorvetError(Errors.OFFSET_NOT_AVAILABLE, text)
        if offset == limit:
            return ReadResult([], offset)
        return await self._replica.opened.read(offset, max(1, max_bytes), limit, copy=copy)

    async def read_copied(self, offset: int, max_bytes: int) -> ReadResult:
        """As `Partition.read_copied`."""
        self.check_offset(offset)
        limit = self.high_watermark.offset
        if offset >= limit:
            return ReadResult([], offset)
        return await self._replica.opened.read(offset, max_bytes, limit, copy=True)

    # -- as who is told of the copy ------------------------------------------------------------------------------

    def appended(self, records: Buffer, end: int) -> None:
        """See `LogListener.appended`."""
        first = self._uncommitted[-1][1] if self._uncommitted else self.high_watermark.offset
        self._uncommitted.append((first, end, len(records)))

    async def truncated(self, end: int) -> None:
        """See `LogListener.truncated`."""
        while self._uncommitted and self._uncommitted[-1][1] > end:
            self._uncommitted.pop()
        if end < self.high_watermark.offset:
            self._begin_at(end)

    def restarted(self) -> None:
        """See `LogListener.restarted`."""
        self._uncommitted.clear()
        self._begin_at(self._replica.start)

    def _begin_at(self, offset: int) -> None:
        self.high_watermark.reset(offset)
        self.high_watermark.wake()

    def committed(self, high_watermark: int) -> None:
        """See `LogListener.committed`: fetches that wait count what they can read more."""
        while self._uncommitted and self._uncommitted[0][1] <= high_watermark:
            self.high_watermark.add(*self._uncommitted.popleft(), None)
        self.high_watermark.advance(high_watermark)


def find_follower(replicas: Replicas, log: str, topic: str, draining: asyncio.Event) -> FollowerPartition | None:
    """This broker's copy of a log that another one leads, for consumers; None if it has none.

    `topic`: the id of the log's topic, as hex. The first call makes the copy count its appends.
    """
    replica = replicas.logs.get(log)
    if replica is None or replica.progress is not None or replica.topic != topic:
        return None
    if not isinstance(replica.listener, FollowerPartition):
        replica.listener = FollowerPartition(replica, draining)
    return replica.listener


def wake_consumers(replicas: Replicas) -> None:
    """Have all fetches answered that wait at copies."""
    for replica in replicas.logs.values():
        if isinstance(replica.listener, FollowerPartition):
            replica.listener.high_watermark.wake()
