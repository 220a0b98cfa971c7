"""One partition: offsets, idempotence, durability. Appends start in the order of the calls and end in any order."""

import asyncio
import logging
from typing import NamedTuple

from korvet_fast import _native
from korvet_fast.core import lookup
from korvet_fast.core.epochs import Epoch
from korvet_fast.core.host import Host
from korvet_fast.core.lookup import Found
from korvet_fast.core.producers import Stored
from korvet_fast.core.state import State
from korvet_fast.core.topic_config import TopicConfig
from korvet_fast.core.types import LATEST
from korvet_fast.core.watch import Watch
from korvet_fast.core.watermark import Watermark
from korvet_fast.errors import KorvetError, StoreError
from korvet_fast.store.interface import Bounds, Entry, Page, Stale

logger = logging.getLogger(__name__)

SAVE_EVERY = 64 << 20  # bytes appended between two saves of the state: what an opening after a crash reads again


class Appended(NamedTuple):
    """Where a batch went. `log_append_time` in ms, -1 if the records keep their own times.

    `done` is None if what `acks` asked for is reached already; else it ends with None or a `StoreError`. It is shared
    with other requests: never cancel it (await it through `asyncio.wait` or `asyncio.shield`).
    """

    base_offset: int
    log_append_time: int
    log_start_offset: int
    done: "asyncio.Future[None] | None"


class Partition:
    """Offsets `start` <= o < `end` are held; consumers read below `high_watermark`, which is durable."""

    __slots__ = (
        "_deleted",
        "_failure",
        "_host",
        "_mark",
        "_recovery",
        "_reported",
        "_saving",
        "_state",
        "_unsaved",
        "config",
        "end",
        "index",
        "log",
        "size",
        "start",
        "topic",
    )

    def __init__(self, host: Host, topic: str, index: int, config: TopicConfig) -> None:
        self.topic = topic
        self.index = index
        self.log = f"{topic}:{index}"
        self.config = config
        self.start = self.end = self.size = 0
        self._host = host
        self._mark = Watermark(self._doubt)
        self._state = State(self.log)
        self._unsaved = 0  # bytes appended since the state was saved
        self._saving: asyncio.Task[None] | None = None
        self._deleted = False
        self._failure = ""  # why the end of the log is in doubt; appends are refused until the store has been asked
        self._reported = ""
        self._recovery: asyncio.Task[None] | None = None

    @property
    def high_watermark(self) -> int:
        return self._mark.offset

    @property
    def leader_epoch(self) -> int:
        return self._host.epoch

    @property
    def watches(self) -> list[Watch]:
        return self._mark.watches

    @property
    def draining(self) -> bool:
        return self._host.draining

    # -- from rest and back to rest ------------------------------------------------------------------------------

    async def open(self, saved: bytes | None) -> bool:
        """Take up where the log ends; whether `catch_up` must follow. `saved`: what the registry has of the state."""
        bounds = await self._host.store.bounds(self.log)
        self._state.load(bounds, saved, self._host.clock.monotonic())
        self._stand(bounds)
        return self._state.saved_end < self.end

    async def catch_up(self) -> None:
        """Learn from the log what the saved state does not know."""
        host, state = self._host, self._state
        bounds = await host.store.bounds(self.log)
        self._unsaved = await state.catch_up(host.store, bounds, host.clock.monotonic())
        if state.saved_end < 0:
            # The useless copy must go: the log will grow past its end, and it would be believed then.
            await self.save()

    def _stand(self, bounds: Bounds) -> None:
        self.start, self.end, self.size = bounds.start, bounds.end, bounds.size
        self._mark.reset(min(max(self.high_watermark, bounds.durable), bounds.end))
        if self.high_watermark < self.end:
            # An append of nothing: what is in the log already is to become durable, and then readable.
            durable = self._host.store.append(self.log, (), self.end, sync=True).durable
            self._mark.add(self.end, self.end, 0, durable)

    @property
    def is_saved(self) -> bool:
        """Whether the registry knows the present state."""
        return self._state.saved_end == self.end

    async def save(self) -> None:
        """Put producers and epochs into the registry, so that the next opening reads only what comes after."""
        end = self.end
        packed = self._state.pack(end)
        self._unsaved = 0
        await self._mark.wait()
        if end <= self.high_watermark and not self._deleted:
            await self._state.save(self._host.store, packed, end)

    async def drop(self) -> None:
        """Remove everything; the partition answers UNKNOWN_TOPIC_OR_PARTITION from now on."""
        self._deleted = True
        self.wake()
        running = [task for task in (self._saving, self._recovery) if task is not None and not task.done()]
        if running:
            await asyncio.wait(running)
        await self._host.store.drop(self.log)
        await self._state.drop(self._host.store)

    # -- writing -------------------------------------------------------------------------------------------------

    def wants(self, batch: _native.Batch) -> int | None:
        """The compression this batch is to be brought to before `append`, or None if it can stay as it is."""
        wanted = self.config.compression
        return None if wanted is None or wanted == batch.compression else wanted

    def append(self, data: bytearray | memoryview, batch: _native.Batch, *, acks: int) -> Appended:
        """Put one checked batch at the end of the log; `data` is stamped in place. `acks` as in Kafka: 0, 1 or -1.

        Raises `StoreError`, or `KorvetError`: MESSAGE_TOO_LARGE, INVALID_RECORD, INVALID_TIMESTAMP,
        NOT_ENOUGH_REPLICAS, UNKNOWN_TOPIC_OR_PARTITION (deleted meanwhile), and what `Producers.check` raises.
        Nothing is stored then.
        """
        host, config, state, size = self._host, self.config, self._state, batch.size
        if self._deleted or self._failure:
            self._refuse()
        if size > config.max_message_bytes:
            raise KorvetError("MESSAGE_TOO_LARGE", f"{size} bytes, but {self.topic} takes {config.max_message_bytes}")
        if batch.control or batch.transactional:
            raise KorvetError("INVALID_RECORD", "control and transactional batches are not taken")
        if batch.log_append_time:
            raise KorvetError("INVALID_TIMESTAMP", "a producer may not mark its times as the broker's")
        if acks == -1 and config.min_insync_replicas > 1:
            raise KorvetError("NOT_ENOUGH_REPLICAS", f"one copy is kept, {config.min_insync_replicas} are asked for")
        idempotent = batch.producer_id >= 0
        if idempotent and (before := state.producers.check(batch)) is not None:
            return self._repeat(before, acks)
        base, epoch, now = self.end, host.epoch, host.clock.wall()
        if config.log_append_time:
            time = now
            _native.restamp(data, base, epoch, None, now)
        else:
            time = batch.max_timestamp
            if time > now + config.after_max_ms:
                raise KorvetError("INVALID_TIMESTAMP", f"{time} is more than {config.after_max_ms} ms ahead of {now}")
            _native.restamp(data, base, epoch, time, None)
        end = base + batch.count
        try:
            entries = (Entry(data, base, end - 1, time),)
            stored, durable = host.store.append(self.log, entries, base, sync=config.sync, piece=config.piece)
            if stored.done():
                stored.result()
            if durable.done():
                durable.result()
        except Stale as stale:
            raise self._doubt(f"{self.log} ends at {stale.end}, not at {base}: another writer was here") from None
        except StoreError as error:
            raise self._doubt(error.detail) from None
        self.end = end
        self.size += size
        self._unsaved += size
        if idempotent:
            state.producers.add(batch, base, time, host.clock.monotonic())
        if epoch != state.epochs.last:
            state.epochs.add(epoch, base)
        self._mark.add(base, end, size, durable)
        if self._unsaved >= SAVE_EVERY and (self._saving is None or self._saving.done()):
            self._saving = host.start(self.save())
        awaited = durable if acks == -1 else stored
        return Appended(base, now if config.log_append_time else -1, self.start, None if awaited.done() else awaited)

    def _repeat(self, before: Stored, acks: int) -> Appended:
        """Answer a repetition as the first time: same offset, and not before the first one is durable."""
        done = self._mark.find_round(before.last_offset) if acks == -1 else None
        time = before.timestamp if self.config.log_append_time else -1
        return Appended(before.base_offset, time, self.start, done)

    def _refuse(self) -> None:
        if self._deleted:
            raise KorvetError("UNKNOWN_TOPIC_OR_PARTITION", f"{self.log} was deleted")
        raise self._doubt(self._failure)

    def _doubt(self, reason: str) -> StoreError:
        """An append failed, so the end of the log has to be asked for before the next one; the error to raise."""
        if self._deleted:
            return StoreError(reason)  # what was under way went with the log
        if reason != self._reported:
            logger.error("%s: %s", self.log, reason)
            self._reported = reason
        self._failure = reason
        if self._recovery is None or self._recovery.done():
            self._recovery = self._host.start(self._recover())
        return StoreError(reason)

    async def _recover(self) -> None:
        try:
            await self._look_again()
        except StoreError as error:
            self._doubt(error.detail)

    async def _look_again(self) -> None:
        """Stand where the store says the log ends. Raises `StoreError`; the partition is then in doubt as before."""
        lost = await self._mark.wait()
        self._mark.forget_rounds()
        store = self._host.store
        bounds = await store.bounds(self.log)
        if lost or bounds.end != self.end or self.high_watermark < self.end:
            self._state.load(bounds, await store.load(self._state.key), self._host.clock.monotonic())
            self._stand(bounds)
            await self.catch_up()
            await self._mark.wait()
            if self.high_watermark < self.end:
                raise StoreError(f"what {self.log} holds above offset {self.high_watermark} cannot be made durable")
        self._failure = ""

    # -- reading -------------------------------------------------------------------------------------------------

    async def read(self, offset: int, max_bytes: int) -> Page:
        """Whole durable batches from the one that holds `offset`; at least one if there is one.

        Raises `StoreError`, or `KorvetError` OFFSET_OUT_OF_RANGE below `start` or above `end`.
        """
        if not self.start <= offset <= self.end or self._deleted:
            self._miss(offset)
        limit = self._mark.offset
        if offset >= limit:
            return Page([], offset)
        return await self._host.store.read(self.log, offset, max_bytes, limit)

    def _miss(self, offset: int) -> None:
        if self._deleted:
            raise KorvetError("UNKNOWN_TOPIC_OR_PARTITION", f"{self.log} was deleted")
        raise KorvetError("OFFSET_OUT_OF_RANGE", f"{offset}, but {self.log} holds {self.start} to {self.end}")

    def readable(self, offset: int) -> int:
        """About how many bytes `read` could give from `offset` on: exact near the end, else by the average record."""
        known = self._mark.count_readable(offset)
        if known is not None:
            return known
        records = self.high_watermark - max(offset, self.start)
        return max(1, self.size * records // max(1, self.end - self.start))

    async def find_time(self, ms: int) -> Found | None:
        """The first durable record at or after a time, exactly; None if all are older."""
        return await lookup.find_time(self._host.store, self.log, ms, self.start, self.high_watermark)

    async def latest_by_time(self) -> Found | None:
        """The first durable record with the largest time; None if there is no record."""
        return await lookup.find_latest(self._host.store, self.log, self.start, self.high_watermark)

    def epoch_end(self, epoch: int) -> Epoch:
        """(epoch, end offset) of the largest leader epoch up to `epoch`; (-1, -1) if it is newer than the broker's."""
        if epoch == self._host.epoch:
            return epoch, self.end
        return self._state.epochs.find_end(epoch, self.start, self.end) if epoch < self._host.epoch else (-1, -1)

    def wake(self) -> None:
        """Have everybody who waits here look again."""
        self._mark.wake()

    # -- taking away ---------------------------------------------------------------------------------------------

    async def delete_records(self, offset: int) -> int:
        """Records below `offset` (`LATEST`: below the high watermark) are gone; returns the new start.

        Raises `KorvetError` OFFSET_OUT_OF_RANGE for an offset that is negative or above the high watermark.
        """
        if offset == LATEST:
            offset = self.high_watermark
        if not 0 <= offset <= self.high_watermark or self._deleted:
            self._miss(offset)
        if offset > self.start:
            self._take(await self._host.store.cut(self.log, start=offset))
        return self.start

    async def retire(self) -> None:
        """Delete what the topic's retention lets go."""
        ms, size = self.config.retention_ms, self.config.retention_bytes
        if self.end > self.start and (ms >= 0 or size >= 0) and not self._deleted:
            older_than = self._host.clock.wall() - ms if ms >= 0 else None
            larger_than = size if size >= 0 else None
            self._take(await self._host.store.cut(self.log, older_than=older_than, larger_than=larger_than))

    def expire_producers(self, before: float) -> None:
        """Forget idempotent producers last heard of earlier than `before` (monotonic seconds)."""
        self._state.producers.expire(before)

    def _take(self, bounds: Bounds) -> None:
        self.size = bounds.size
        if bounds.start > self.start:
            self.start = bounds.start
            self._state.epochs.trim(bounds.start)
            self.wake()
