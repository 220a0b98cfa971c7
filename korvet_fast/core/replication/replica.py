"""This broker's copy of one log: it appends there as the leader, or copies the leader's records (`copying.py`).

The store keeps the records; `Replica` knows the epochs that they were written under, the progress of the followers, and
who waits for the high watermark.
"""

import asyncio
import json
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from korvet_fast.core.partition.leader_epochs import LeaderEpochCache
from korvet_fast.core.replication.follower import FollowerState
from korvet_fast.core.replication.leader_progress import LeaderProgress
from korvet_fast.core.replication.peers import qualify
from korvet_fast.core.replication.quorum_progress import QuorumProgress
from korvet_fast.errors import StoreError
from korvet_fast.store.interface import CopyStore, OpenedLog
from korvet_fast.store.shared_future import SharedFuture
from korvet_fast.store.types import LARGE, Appending, OffsetConflict, RecordBatch, SegmentLimits
from korvet_fast.types import Buffer

logger = logging.getLogger(__name__)

PREFIX = "replica/"  # key in this broker's own store: this and the log's name
_NEVER = -1  # as an epoch: of an unclean election, where there was none


async def remove_copy(store: CopyStore, log: str, unclean: int) -> bool:
    """Remove what this broker has of a log that nobody opens. Raises `StoreError`.

    False: it is set aside, as the metadata log may have lost its topic since the copy was made. `unclean`: the epoch of
    that log's last unclean election.
    """
    saved = await store.load(PREFIX + log)
    known = json.loads(saved) if saved is not None else None
    gone = await _remove(store, log, keep=_may_be_lost(known, unclean))
    if saved is not None:
        await store.save(PREFIX + log, None, saved)
    return gone


def _may_be_lost(known: Mapping[str, Any] | None, unclean: int) -> bool:
    """Whether there was an unclean election since the copy with this document was made; None: there is no copy."""
    return known is not None and known.get("unclean", _NEVER) != unclean


async def _remove(store: CopyStore, log: str, *, keep: bool) -> bool:
    """Remove the files of a log; False: they are set aside, as there are records to `keep`. Raises `StoreError`."""
    bounds = await store.bounds(log)
    if not keep or bounds.start == bounds.end:
        await store.drop(log)
        return True
    place = await store.set_aside(log)
    logger.warning(
        "%s: its topic is gone from the metadata log, which an unclean election has cut. This broker's copy, offsets "
        "%d to %d, is not served any more, and lies in %s. If nobody needs it, remove that directory. To read it, move "
        "it to an empty directory as %s, start a broker without replication.peers over that, and create its topic",
        log,
        bounds.start,
        bounds.end - 1,
        place,
        log.replace(":", "-"),
    )
    return False


class LogListener:
    """Gets the events of a log, in the order of the log."""

    def check(self, records: Buffer) -> None:
        """Raises `StoreError` for fetched batches that may not stand in the log; nothing is appended then."""

    def appended(self, records: Buffer, end: int) -> None:
        """These batches were appended; the log ends at `end` now."""

    async def truncated(self, end: int) -> None:
        """The log ends at `end` now. Raises `StoreError`; it is called again then."""

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
    """`open`, then either `begin_leading` and `append`, or `copying.copy` what was fetched.

    `opened`: the log in the store; `start`, `end`: of it. `topic`: which topic of this name it is of, as hex.
    `progress`: of the followers, while this broker leads. `state`: as a follower; it is kept, and waits, while this
    broker leads. `is_new`: this broker never had all that is safe. `in_sync`: as the metadata log has it.
    `unclean`: the epoch of the metadata log's last unclean election when the copy was made, -1 if there was none.
    `tells_watermark`: followers are told of the watermark as soon as it moves, not only with the next batches; `told`
    has by follower the one that was told last. `failure`: why nothing can be copied at present, "" if it can; the
    leader is not asked again before `retry_at`, in monotonic seconds.
    """

    opened: OpenedLog

    __slots__ = (
        "_ahead",
        "_saved",
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
        "qualified_name",
        "retry_at",
        "segment_limits",
        "start",
        "state",
        "store",
        "tells_watermark",
        "told",
        "topic",
        "unclean",
    )

    def __init__(self, name: str, topic: str, store: CopyStore, listener: LogListener | None = None) -> None:
        self.name = name
        self.topic = topic
        self.qualified_name = qualify(name, topic)
        self.start = self.end = 0
        self.is_new = self.in_sync = True
        self.tells_watermark = False
        self.unclean = _NEVER
        self.failure, self.retry_at = "", 0.0
        self.told: dict[int, int] = {}
        self.epochs = LeaderEpochCache()
        self.state = FollowerState(self.epochs, 0, 0)
        self.progress: LeaderProgress | QuorumProgress | None = None
        self.segment_limits: SegmentLimits = LARGE
        self.changing = asyncio.Lock()  # held while the log is truncated, or its leadership begins
        self.store = store
        self.listener = listener or LogListener()
        self._saved: bytes | None = None
        self._waiting: deque[tuple[int, SharedFuture[None]]] = (
            deque()
        )  # appends the watermark has not reached, ends rising
        self._waking: set[asyncio.Future[None]] = set()  # fetches of followers that wait for more
        self._ahead: dict[int, tuple[int, float]] = {}  # followers whose disks are faster than ours: how far, and when

    async def open(self) -> None:
        """Read the log's bounds; records of another topic of this name go as in `remove_copy`. Raises `StoreError`."""
        store, key = self.store, PREFIX + self.name
        self._saved = await store.load(key)
        known = json.loads(self._saved) if self._saved is not None else None
        if known is None or known["topic"] != self.topic:
            await _remove(store, self.name, keep=_may_be_lost(known, self.unclean))
            known = {"epochs": [], "new": True, "unclean": self.unclean}
        self.is_new, self.unclean = known["new"], known.get("unclean", _NEVER)
        self.opened = store.open_log(self.name)
        bounds = await store.bounds(self.name)
        self.start, self.end = bounds.start, bounds.end
        self.epochs.replace((epoch, first) for epoch, first in known["epochs"] if first < bounds.end)
        await self.save_epochs()
        if bounds.durable < bounds.end:
            await self.flush()
        self.state = FollowerState(self.epochs, bounds.end, bounds.start)

    async def save_epochs(self) -> None:
        """Keep the epochs, durably: before the first batch of a new one is appended."""
        values: dict[str, Any] = {"topic": self.topic, "epochs": self.epochs.entries, "new": self.is_new}
        if self.unclean != _NEVER:
            values["unclean"] = self.unclean
        packed = json.dumps(values).encode()
        if packed == self._saved:
            return
        if not await self.store.save(PREFIX + self.name, packed, self._saved):
            raise StoreError(f"{PREFIX}{self.name} was changed by another writer")
        self._saved = packed

    async def flush(self) -> None:
        """Flush what is in the log. Raises `StoreError`."""
        durable = self.opened.append((), self.end, True).durable
        await asyncio.wait([durable])
        durable.result()

    async def drop(self, *, keep: bool = False) -> None:
        """Remove the log, or (`keep`) set its records aside. Raises `StoreError`."""
        self.stop_leading()
        async with self.changing:
            await _remove(self.store, self.name, keep=keep)
            self.start = self.end = 0
            self.listener.restarted()
            if self._saved is not None and await self.store.save(PREFIX + self.name, None, self._saved):
                self._saved = None

    # -- as the leader -----------------------------------------------------------------------------------------------

    async def begin_leading(self, epoch: int, make: Callable[[int, int], LeaderProgress | QuorumProgress]) -> None:
        """Lead under `epoch` from now on. `make` gets the end of the log and the watermark. Raises `StoreError`."""
        async with self.changing:
            self.stop_leading()
            self.state.forget_leader()
            if self.end or self.start:
                await self.flush()
            self.epochs.add(epoch, self.end)
            self.is_new = False
            await self.save_epochs()
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
        durable: SharedFuture[None] = SharedFuture(loop=asyncio.get_running_loop())
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
