"""A partition's log: its start and end, the bytes that can be read, deletion of records, retention.

Offsets may have gaps: where other programs write (layout `entries`) they follow the clock, and what a server lost is
not filled again.
"""

import asyncio
import logging
from collections.abc import Callable

from korvet_fast.core.partition import time_lookup
from korvet_fast.core.partition.collaborators import PartitionCollaborators
from korvet_fast.core.partition.high_watermark import HighWatermark, WatermarkListener
from korvet_fast.core.partition.leader_epochs import LeaderEpochCache
from korvet_fast.core.partition.leadership import Leadership
from korvet_fast.core.partition.renewal import renew
from korvet_fast.core.partition.time_lookup import Offload, OffsetAndTimestamp, run_in_thread
from korvet_fast.core.topic_config import TopicConfig
from korvet_fast.errors import StoreError
from korvet_fast.store.interface import OpenedLog
from korvet_fast.store.shared_future import SharedFuture
from korvet_fast.store.types import Bounds

logger = logging.getLogger(__name__)

FRESH = 1.0  # seconds that the bounds may be out of date, where other programs write too
NOWHERE = 1 << 63  # above all offsets


class PartitionLog:
    """Records are at `start` <= offset < `end`, and consumers read those below the high watermark, which are durable.

    Below `start`, offsets from `removed` on may be read too: nothing ever was there, so nothing is missed. From
    `gap_start` to `gap_end` there are no records. `inherited_end`: where the log ended when this broker acquired it.
    `told_end`: readers may have been told a high watermark up to here by then, by this broker or a former leader.
    `refreshed_at`: the monotonic time at which the bounds were read. `entries_layout`: every record is an entry of its
    own, and other programs may write too. `opened`: the log in the store, from the first acquisition on.
    """

    opened: OpenedLog

    __slots__ = (
        "_asked",
        "_clock",
        "_draining",
        "_inherited_records_end",
        "_leadership",
        "_losses",
        "_lost",
        "_report",
        "_store",
        "_tasks",
        "_unsubscribe",
        "config",
        "end",
        "entries_layout",
        "epochs",
        "gap_end",
        "gap_start",
        "high_watermark",
        "inherited_end",
        "name",
        "opened",
        "refreshed_at",
        "removed",
        "size",
        "start",
        "told_end",
    )

    def __init__(
        self,
        name: str,
        config: TopicConfig,
        leadership: Leadership,
        high_watermark: HighWatermark,
        epochs: LeaderEpochCache,
        given: PartitionCollaborators,
    ) -> None:
        self.name = name
        self.config = config
        self.entries_layout = config.log_format.entries_layout
        self.start = self.end = self.size = self.removed = 0
        self.high_watermark = high_watermark
        self.epochs = epochs
        self.inherited_end = self._inherited_records_end = self.told_end = 0
        self.gap_start, self.gap_end = NOWHERE, 0
        self.refreshed_at = 0.0
        self._leadership = leadership
        self._store = given.store
        self._clock = given.clock
        self._tasks = given.tasks
        self._report = given.log
        self._losses = given.losses
        self._asked: SharedFuture[None] | None = None  # ends when the store has told the bounds
        self._lost = 0  # losses below this offset are reported already
        self._draining = given.draining
        self._unsubscribe: Callable[[], None] | None = None  # the store is to tell when another program has written

    @property
    def last_record_end(self) -> int:
        """The offset after the last record: `end`, unless there is a gap below it."""
        return self._inherited_records_end if self.inherited_end == self.end else self.end

    @property
    def is_shared(self) -> bool:
        """Whether other programs can acquire the log behind this broker's back."""
        return self._store.shared is not None

    @property
    def acknowledged_end(self) -> int:
        """The offset after the last record that clients can rely on."""
        return min(self.high_watermark.stored, self.last_record_end)

    @property
    def delayed_fetches(self) -> dict[WatermarkListener, None]:
        """The fetches that wait for records of this log."""
        return self.high_watermark.delayed_fetches

    @property
    def draining(self) -> bool:
        """Whether a waiting fetch must be answered now, with the records that are there."""
        return self._draining.is_set()

    # -- reading -------------------------------------------------------------------------------------------------

    def available_bytes(self, offset: int) -> int:
        """About how many bytes can be read from `offset` on: exact near the end, else by the average record."""
        high_watermark = self.high_watermark
        if offset >= self.gap_start and high_watermark.offset <= self.gap_end:
            return 0
        known = high_watermark.count_available_bytes(offset)
        if known is not None:
            return known
        records = high_watermark.offset - max(offset, self.start)
        return max(1, self.size * records // max(1, self.end - self.start))

    async def find_time(self, ms: int, offload: Offload = run_in_thread) -> OffsetAndTimestamp | None:
        """The first durable record at or after a time, exactly; None if all are older.

        `offload`: see `time_lookup`.
        """
        limit = self.high_watermark.offset
        return await time_lookup.find_time(self._store, self.name, ms, self.start, limit, offload)

    async def find_latest(self, offload: Offload = run_in_thread) -> OffsetAndTimestamp | None:
        """The first durable record with the largest time; None if there is no record."""
        return await time_lookup.find_latest(self._store, self.name, self.start, self.high_watermark.offset, offload)

    # -- bounds --------------------------------------------------------------------------------------------------

    def begin(self, bounds: Bounds, records_end: int, told: int) -> None:
        """This broker has acquired the log, and it has these bounds. `records_end`: the offset after the last record.

        `told`: see `told_end`.
        The high watermark rises when all of the log is durable.
        """
        self.start, self.end, self.size, self.removed = bounds.start, bounds.end, bounds.size, bounds.removed
        self.inherited_end, self._inherited_records_end = bounds.end, records_end
        self.told_end = min(told, bounds.end)
        self._lost = bounds.lost
        self.gap_start, self.gap_end = records_end, bounds.end
        self.refreshed_at = self._clock.monotonic()
        self.high_watermark.reset(min(max(self.high_watermark.offset, bounds.durable), bounds.end))
        self._await_durable()

    def settle_idle(self, end: int) -> None:
        """Nobody has used the log for a while: see `idle.py`. `end`: the end of the log, newly made."""
        self.end = end
        self.start = start = renew(self.start, end)
        self.removed = renew(self.removed, start, end)
        self.inherited_end = inherited = renew(self.inherited_end, end, start)
        self._inherited_records_end = renew(self._inherited_records_end, inherited, end, start)
        self.told_end = renew(self.told_end, inherited, end, start)
        self.gap_start = renew(self.gap_start, NOWHERE, end, inherited, start)
        self.gap_end = renew(self.gap_end, end, inherited)
        self.size = renew(self.size)
        if self._clock.monotonic() - self.refreshed_at >= FRESH:
            self.refreshed_at = 0.0

    async def refresh_bounds(self, fresh: float = FRESH) -> None:
        """Read the bounds from the store, as other programs may have written; at most once in `fresh` seconds.

        Afterwards the records that were found are durable, or their flush has failed. Raises `StoreError`.
        """
        if self.entries_layout and self._leadership.leads and self._clock.monotonic() - self.refreshed_at >= fresh:
            # One question at a time: a crowd would have the store answer the same for each of its requests.
            await (self._asked or self._ask_for_bounds())

    async def _ask_for_bounds(self) -> None:
        asked = self._asked = SharedFuture(loop=asyncio.get_running_loop())
        try:
            bounds, end = await self._store.bounds(self.name), self.end
            self.observe(bounds)
            if bounds.end > end:
                await self.high_watermark.wait()
        except BaseException as error:
            unknown = StoreError(f"{self.name}: its end was not found out")
            asked.fail(error if isinstance(error, StoreError) else unknown)
            raise
        else:
            asked.set_result(None)
        finally:
            self._asked = None

    def observe(self, bounds: Bounds) -> None:
        """Take over bounds that the store reports; appends under way may be missing in them. None of them moves back.

        While it is not certain where the log ends, nothing is done: recovery asks for the bounds itself.
        """
        if not self._leadership.knows_end:
            return
        self.refreshed_at = self._clock.monotonic()
        self._take(bounds)
        if bounds.end <= self.end:
            self.high_watermark.advance(min(bounds.durable, self.end))
            return
        self.end = bounds.end
        self.high_watermark.advance(bounds.durable)
        self._await_durable()

    def _await_durable(self) -> None:
        """Records of other programs, or of former leaders, can be read once they are durable."""
        if self.high_watermark.offset < self.end:
            self.flush()

    def flush(self) -> "asyncio.Future[None]":
        """Append nothing: the future that ends when all of the log is durable.

        Raises `OffsetConflict` or `NotLeader`.
        """
        sync, copies = self.config.sync, self.config.copies
        durable = self.opened.append((), self.end, sync=sync, copies=copies).durable
        self.high_watermark.add(self.end, self.end, 0, durable)
        return durable

    # -- other programs' records ---------------------------------------------------------------------------------

    def subscribe(self) -> None:
        """Have delayed fetches woken when another program writes."""
        shared = self._store.shared
        if shared is not None and self.entries_layout and self._unsubscribe is None:
            self._unsubscribe = shared.notify(self.name, self.end, self._notice, self._has_delayed_fetches)

    def unsubscribe(self) -> None:
        """Nobody here is interested in other programs' records any more."""
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None

    def _has_delayed_fetches(self) -> bool:
        return bool(self.high_watermark.delayed_fetches)

    def _notice(self) -> None:
        self._unsubscribe = None
        if self._has_delayed_fetches():  # else the next fetch asks for the bounds: thousands of consumers may have left
            self._tasks.start(self._refresh_now())

    async def _refresh_now(self) -> None:
        try:
            if (asked := self._asked) is not None:
                await asked  # the store may have answered before the other program wrote
            await self.refresh_bounds(0.0)
        except StoreError as error:
            text = f"{self.name}: the records of other programs cannot be seen: {error.detail}"
            self._report.warn("other programs' records", text)
        self.high_watermark.wake()

    # -- deleting records ----------------------------------------------------------------------------------------

    async def delete_records(self, offset: int) -> None:
        """Delete the records below `offset`, which is not above the high watermark. Raises `StoreError`."""
        if (start := self.start) < offset:
            try:
                self._take(await self._store.delete_records(self.name, offset))
                text = f"{self.name}: a client deleted records, from offset {start} to below {self.start}"
                self._report.tell("records deleted", text)
            except StoreError:
                self._take(await self._store.bounds(self.name))  # some of them may be gone
                raise

    async def apply_retention(self) -> None:
        """Delete the records that the topic's retention no longer keeps, and log that. Raises `StoreError`."""
        ms, size = self.config.retention_ms, self.config.retention_bytes
        if not self._leadership.leads or self.end <= self.start:
            return
        if ms >= 0 or size >= 0:
            older_than = self._clock.settled_wall() - ms if ms >= 0 else None
            larger_than = size if size >= 0 else None
            start, before = self.start, self.size
            self._take(await self._store.apply_retention(self.name, older_than=older_than, larger_than=larger_than))
            if self.start > start:
                text = "%s: retention (%d ms, %d bytes) removed offsets %d to below %d, %.1f MB; %.1f MB are left"
                logger.info(text, self.name, ms, size, start, self.start, (before - self.size) / 1e6, self.size / 1e6)
        elif self.is_shared:
            self.observe(await self._store.bounds(self.name))  # another program may have deleted the log

    def _take(self, bounds: Bounds) -> None:
        """Take over size and start from the bounds; the start never moves back."""
        if bounds.lost > self._lost:
            self._losses.report(self.name, max(self.start, self._lost), bounds.lost)
            self._lost = bounds.lost
        if bounds.size != self.size:
            self.size = bounds.size
        self.removed = max(self.removed, bounds.removed)
        if bounds.start > self.start:
            self.start = bounds.start
            self.high_watermark.wake()
        self.epochs.trim(self.start)
