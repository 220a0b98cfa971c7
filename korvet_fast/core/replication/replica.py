"""This broker's copy of one log: it appends there as the leader, or copies the leader's records.

The store keeps the records; `Replica` knows the epochs that they were written under, the progress of the followers, and
who waits for the high watermark.
"""

import asyncio
import json
import logging
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from korvet_fast._native import Batch, batch_headers
from korvet_fast.core.fair_queue import BackgroundPace
from korvet_fast.core.partition.leader_epochs import EpochOffset, LeaderEpochCache
from korvet_fast.core.replication.follower import FollowerState
from korvet_fast.core.replication.leader_progress import LeaderProgress
from korvet_fast.core.replication.quorum_progress import QuorumProgress
from korvet_fast.errors import StoreError
from korvet_fast.store.interface import CopyStore, OpenedLog
from korvet_fast.store.shared_future import SharedFuture
from korvet_fast.store.types import LARGE, Appending, OffsetConflict, RecordBatch, SegmentLimits
from korvet_fast.types import Buffer

logger = logging.getLogger(__name__)

# Before others may have a turn, so many fetched batches are appended, or so many bytes of them, about.
_AT_ONCE = 64
_PART = 512 << 10

PREFIX = "replica/"  # key in this broker's own store: this and the log's name


async def remove_copy(store: CopyStore, log: str) -> None:
    """Remove what this broker has of a log that nobody opens. Raises `StoreError`."""
    await store.drop(log)
    saved = await store.load(PREFIX + log)
    if saved is not None:
        await store.save(PREFIX + log, None, saved)


class LogListener:
    """Gets the events of a log, in the order of the log."""

    def appended(self, records: Buffer, end: int) -> None:
        """These batches were appended; the log ends at `end` now."""

    def truncated(self, end: int) -> None:
        """The log ends at `end` now."""

    def restarted(self) -> None:
        """The log is empty now."""

    def committed(self, high_watermark: int) -> None:
        """The records below `high_watermark` are committed, and stay."""


class OutOfRange(Exception):
    """A follower asks for an offset that the log does not have; `start`: where it starts."""

    def __init__(self, start: int) -> None:
        super().__init__(start)
        self.start = start


class Replica:
    """`open`, then either `begin_leading` and `append`, or `copy` what was fetched.

    `opened`: the log in the store; `start`, `end`: of it. `topic`: which topic of this name it is of, as hex.
    `progress`: of the followers, while this broker leads. `state`: as a follower; it is kept, and waits, while this
    broker leads. `is_new`: this broker never had all that is safe. `in_sync`: as the metadata log has it.
    `tells_watermark`: followers are told of the watermark as soon as it moves, not only with the next batches; `told`
    has by follower the one that was told last. `failure`: why nothing can be copied at present, "" if it can; the
    leader is not asked again before `retry_at`, in monotonic seconds.
    """

    opened: OpenedLog

    __slots__ = (
        "_ahead",
        "_saved",
        "_store",
        "_waiting",
        "_waking",
        "changing",
        "end",
        "epochs",
        "failure",
        "in_sync",
        "is_new",
        "listener",
        "name",
        "opened",
        "progress",
        "retry_at",
        "segment_limits",
        "start",
        "state",
        "tells_watermark",
        "told",
        "topic",
    )

    def __init__(self, name: str, topic: str, store: CopyStore, listener: LogListener | None = None) -> None:
        self.name = name
        self.topic = topic
        self.start = self.end = 0
        self.is_new = self.in_sync = True
        self.tells_watermark = False
        self.failure, self.retry_at = "", 0.0
        self.told: dict[int, int] = {}
        self.epochs = LeaderEpochCache()
        self.state = FollowerState(self.epochs, 0, 0)
        self.progress: LeaderProgress | QuorumProgress | None = None
        self.segment_limits: SegmentLimits = LARGE
        self.changing = asyncio.Lock()  # held while the log is truncated, or its leadership begins
        self._store = store
        self.listener = listener or LogListener()
        self._saved: bytes | None = None
        self._waiting: deque[tuple[int, SharedFuture]] = deque()  # appends the watermark has not reached, ends rising
        self._waking: set[asyncio.Future[None]] = set()  # fetches of followers that wait for more
        self._ahead: dict[int, tuple[int, float]] = {}  # followers whose disks are faster than ours: how far, and when

    async def open(self) -> None:
        """Read the log's bounds; records of another topic of this name are removed. Raises `StoreError`."""
        store, key = self._store, PREFIX + self.name
        self._saved = await store.load(key)
        known = json.loads(self._saved) if self._saved is not None else None
        if known is None or known["topic"] != self.topic:
            await store.drop(self.name)
            known = {"epochs": [], "new": True}
        self.is_new = known["new"]
        self.opened = store.open_log(self.name)
        bounds = await store.bounds(self.name)
        self.start, self.end = bounds.start, bounds.end
        self.epochs.replace((epoch, first) for epoch, first in known["epochs"] if first < bounds.end)
        await self._save_epochs()
        if bounds.durable < bounds.end:
            await self._flush()
        self.state = FollowerState(self.epochs, bounds.end, bounds.start)

    async def _save_epochs(self) -> None:
        """Keep the epochs, durably: before the first batch of a new one is appended."""
        packed = json.dumps({"topic": self.topic, "epochs": self.epochs.entries, "new": self.is_new}).encode()
        if packed == self._saved:
            return
        if not await self._store.save(PREFIX + self.name, packed, self._saved):
            raise StoreError(f"{PREFIX}{self.name} was changed by another writer")
        self._saved = packed

    async def _flush(self) -> None:
        durable = self.opened.append((), self.end, True).durable
        await asyncio.wait([durable])
        durable.result()

    async def drop(self) -> None:
        """Remove the log. Raises `StoreError`."""
        self.stop_leading()
        async with self.changing:
            await self._store.drop(self.name)
            self.start = self.end = 0
            self.listener.restarted()
            if self._saved is not None and await self._store.save(PREFIX + self.name, None, self._saved):
                self._saved = None

    # -- as the leader -----------------------------------------------------------------------------------------------

    async def begin_leading(self, epoch: int, make: Callable[[int, int], LeaderProgress | QuorumProgress]) -> None:
        """Lead under `epoch` from now on. `make` gets the end of the log and the watermark. Raises `StoreError`."""
        async with self.changing:
            self.stop_leading()
            self.state.forget_leader()
            if self.end or self.start:
                await self._flush()
            self.epochs.add(epoch, self.end)
            self.is_new = False
            await self._save_epochs()
            self.state.epoch = epoch
            self.progress = make(self.end, min(self.state.high_watermark, self.end))

    def stop_leading(self) -> None:
        """Follow from now on; appends under way end with `OffsetConflict`, as another broker may have the log."""
        progress, self.progress = self.progress, None
        if progress is None:
            return
        self.state = FollowerState(self.epochs, self.end, min(progress.high_watermark, self.end), progress.epoch)
        self._ahead.clear()
        self.told.clear()
        self._fail(OffsetConflict(-1, fenced=True))
        self.wake()

    def append(self, batches: Sequence[RecordBatch], at: int) -> Appending:
        """As `store.interface.Append`, but `durable` ends when the watermark is there."""
        progress = self.progress
        if progress is None:
            raise OffsetConflict(-1, fenced=True)
        local = self.opened.append(batches, at, True, 1, self.segment_limits)
        durable = SharedFuture(loop=asyncio.get_running_loop())
        end = at
        if batches:
            end = self.end = batches[-1].last + 1
            for batch in batches:
                self.listener.appended(batch.data, batch.last + 1)
        if end <= progress.high_watermark:
            durable.set_result(None)
        else:
            self._waiting.append((end, durable))
        if local.durable.done():
            self._note_flush(progress, end, local.durable)
        else:
            local.durable.add_done_callback(partial(self._note_flush, progress, end))
        self.wake()
        return Appending(local.stored, durable)

    def _note_flush(self, progress: LeaderProgress | QuorumProgress, end: int, flushed: "asyncio.Future[None]") -> None:
        """This broker's disk has everything below `end`, or failed."""
        if self.progress is not progress:
            return
        if (failure := flushed.exception()) is not None:
            self._fail(failure)
            return
        moved = progress.appended(end)
        for follower, (offset, when) in list(self._ahead.items()):
            if offset <= progress.end:
                del self._ahead[follower]
                moved = progress.fetched(follower, offset, when) or moved
        if moved:
            self.advance()

    def note_fetch(self, follower: int, offset: int, now: float) -> None:
        """A follower has everything below `offset`. Raises `OutOfRange` for what this log never had, or has no more."""
        progress = self.progress
        assert progress is not None, "who leads is asked first"
        if not self.start <= offset <= self.end:
            raise OutOfRange(self.start)
        if offset > progress.end:
            self._ahead[follower] = offset, now
            offset = progress.end
        if progress.fetched(follower, offset, now):
            self.advance()

    def advance(self) -> None:
        """The watermark moved: tell those who wait for it."""
        assert self.progress is not None
        reached = self.progress.high_watermark
        while self._waiting and self._waiting[0][0] <= reached:
            self._waiting.popleft()[1].set_result(None)
        self.listener.committed(reached)
        if self.tells_watermark:
            self.wake()

    def _fail(self, failure: BaseException) -> None:
        waiting, self._waiting = self._waiting, deque()
        for _, future in waiting:
            future.set_exception(failure)
            future.exception()

    def wake(self) -> None:
        """There is more to fetch, or another leader: fetches that wait are answered."""
        waking, self._waking = self._waking, set()
        for future in waking:
            if not future.done():
                future.set_result(None)

    def await_more(self, future: "asyncio.Future[None]") -> None:
        """Have this future end as soon as there is more to fetch."""
        self._waking.add(future)

    def forget(self, future: "asyncio.Future[None]") -> None:
        """The fetch that waited is over."""
        self._waking.discard(future)

    @property
    def high_watermark(self) -> int:
        """The high watermark, as far as this broker knows it."""
        return self.progress.high_watermark if self.progress is not None else self.state.high_watermark

    @property
    def lag(self) -> int:
        """How many offsets this copy has to fetch to have all that is safe; -1 while that is not known."""
        if self.progress is not None:
            return 0
        return max(0, self.state.target - self.end) if self.state.target >= 0 else -1

    # -- as a follower -----------------------------------------------------------------------------------------------

    async def settle_divergence(self, epoch: int, asked: int, answer: EpochOffset) -> None:
        """Truncate the records that the leader of `epoch` does not have, by its answer for `asked`.

        Raises `StoreError`.
        """
        async with self.changing:
            if self.progress is not None:
                return
            await self._flush()  # records that this broker wrote as the leader: a fetch says that they are on the disk
            state, epochs, high_watermark = self.state, list(self.epochs.entries), self.state.high_watermark
            end = state.find_divergence(epoch, asked, answer)
            if end is None:
                return
            try:
                await self._truncate(max(end, self.start))
            except StoreError:  # the log is as it was: the leader is asked again
                self.epochs.replace(epochs)
                state.end, state.high_watermark, state.asking = self.end, high_watermark, asked
                raise

    async def _truncate(self, end: int) -> None:
        state, before = self.state, self.end
        bounds = await self._store.truncate(self.name, end)
        text = "%s: the leader has nothing from offset %d on: %d offsets were cut off here"
        logger.info(text, self.name, bounds.end, before - bounds.end)
        self.end = bounds.end
        self.epochs.truncate(bounds.end)
        state.appended(bounds.end)
        state.high_watermark = min(state.high_watermark, bounds.end)
        await self._save_epochs()
        self.listener.truncated(bounds.end)

    async def restart(self, start: int) -> None:
        """Begin anew at `start`: the leader has nothing below. Raises `StoreError`."""
        async with self.changing:
            if self.progress is not None:
                return
            await self._store.restart(self.name, start)
            self.opened = self._store.open_log(self.name)
            self.start = self.end = start
            self.state.restart(start)
            self.listener.restarted()
            await self._save_epochs()

    async def copy(self, epoch: int, offset: int, records: Buffer) -> bool:
        """Append batches fetched at `offset` from the leader of `epoch`, and flush them. Raises `StoreError`.

        Returns False where they no longer belong there: the log has changed meanwhile.
        """
        pace = BackgroundPace()
        batches = batch_headers(records, True)
        if not batches:
            raise StoreError(f"{self.name}: the leader of epoch {epoch} sent no whole batch")
        if batches[0].base_offset < offset and self.start == self.end == offset:
            await self.restart(batches[0].base_offset)  # the leader's log starts within this batch
            offset = batches[0].base_offset
        data, durable = memoryview(records), None
        step = max(1, min(_AT_ONCE, _PART * len(batches) // len(data)))
        async with self.changing:
            if self.progress is not None or not self.state.accepts(epoch, offset):
                return False
            try:
                for start in range(0, len(batches), step):
                    if pace.due():
                        await pace.turn()
                        if not self.state.accepts(epoch, offset):
                            return False
                    durable = await self._append_copied(epoch, data, batches[start : start + step])
            finally:
                if durable is not None:
                    await asyncio.wait([durable])
                    durable.result()
                    self.state.appended(self.end)
            return True

    async def _append_copied(self, epoch: int, data: memoryview, batches: Sequence[Batch]) -> "asyncio.Future[None]":
        """Append batches of `data`, all or none; the future ends when they are flushed. Raises `StoreError`."""
        self._check(epoch, self.end, [(each.base_offset, each.last_offset, each.leader_epoch) for each in batches])
        last = self.epochs.last
        for each in batches:
            self.epochs.add(each.leader_epoch, each.base_offset)
        if self.epochs.last != last:
            await self._save_epochs()
        rows = [
            RecordBatch(
                data[each.start : each.start + each.size], each.base_offset, each.last_offset, each.max_timestamp
            )
            for each in batches
        ]
        durable = self.opened.append(rows, self.end, True, 1, self.segment_limits).durable
        self.end = batches[-1].last_offset + 1
        for row in rows:
            self.listener.appended(row.data, row.last + 1)
        return durable

    def _check(self, epoch: int, offset: int, batches: Sequence[tuple[int, int, int]]) -> None:
        """Raises `StoreError` unless these batches (first, last, epoch) belong behind the log."""
        known = self.epochs.last
        for first, last, written_in in batches:
            if first != offset or not known <= written_in <= epoch:
                raise StoreError(
                    f"{self.name}: the leader of epoch {epoch} sent offset {first} of epoch {written_in}, but the log "
                    f"goes on at {offset} in epoch {known}"
                )
            offset, known = last + 1, written_in

    async def follow_leader_log(self, start: int, high_watermark: int) -> None:
        """Take over the leader's watermark, and where its log starts. Raises `StoreError`."""
        if self.progress is None and self.state.update_high_watermark(high_watermark):
            self.listener.committed(self.state.high_watermark)
        if self.is_new and self.end >= high_watermark:
            async with self.changing:  # a leadership that begins meanwhile saves its epoch under the same key
                self.is_new = False
                await self._save_epochs()
        if self.start < start <= self.end:
            async with self.changing:
                bounds = await self._store.delete_records(self.name, start)
                self.start = bounds.start
                self.epochs.trim(self.start)
