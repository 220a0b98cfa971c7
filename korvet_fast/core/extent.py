"""What there is of a partition, and reading it: from where to where, up to which offset consumers may read.

Offsets may have gaps: where other programs write (layout `entries`) they follow the clock, and what a server lost is
not filled again.
"""

import asyncio
import logging
from collections.abc import Callable

from korvet_fast.core import lookup
from korvet_fast.core.host import Host
from korvet_fast.core.lookup import Found
from korvet_fast.core.topic_config import TopicConfig
from korvet_fast.core.types import LATEST
from korvet_fast.core.watch import Watch
from korvet_fast.core.watermark import Watermark
from korvet_fast.errors import KorvetError, StoreError
from korvet_fast.store.interface import Bounds, Page

logger = logging.getLogger(__name__)

FRESH = 1.0  # seconds for which what is known of other programs' records is good enough
_NOWHERE = 1 << 63  # above all offsets


class Extent:
    """Records are at `start` <= offset < `end`, and consumers read those below `high_watermark`, which are durable.

    Below `start`, offsets from `removed` on may be read too: nothing ever was there, so nothing is missed. `led`: this
    broker is the one to ask.
    """

    __slots__ = (
        "_bare",
        "_bare_end",
        "_deleted",
        "_host",
        "_looked",
        "_mark",
        "_unfollow",
        "config",
        "end",
        "index",
        "led",
        "log",
        "removed",
        "single",
        "size",
        "start",
        "topic",
    )

    def __init__(self, host: Host, topic: str, index: int, config: TopicConfig, mark: Watermark) -> None:
        self.topic = topic
        self.index = index
        self.log = f"{topic}:{index}"
        self.config = config
        self.single = config.form.single  # other programs may write too
        self.start = self.end = self.size = self.removed = 0
        self.led = False
        self._host = host
        self._mark = mark
        self._bare, self._bare_end = _NOWHERE, 0  # nothing is at `_bare` <= offset < `_bare_end`
        self._looked = 0.0  # when the bounds were asked for
        self._unfollow: Callable[[], None] | None = None  # the store is to tell when another program has written
        self._deleted = False

    @property
    def high_watermark(self) -> int:
        return self._mark.offset

    @property
    def watches(self) -> list[Watch]:
        return self._mark.watches

    @property
    def draining(self) -> bool:
        return self._host.draining

    def wake(self) -> None:
        """Have everybody who waits here look again."""
        self._mark.wake()

    # -- reading -------------------------------------------------------------------------------------------------

    def check(self, offset: int) -> None:
        """Raises `KorvetError` unless a consumer may stand at this offset here.

        OFFSET_OUT_OF_RANGE, NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_OR_PARTITION (deleted meanwhile).
        """
        if not self.led or not self.removed <= offset <= self.end:
            self._miss(offset)

    async def read(self, offset: int, max_bytes: int) -> Page:
        """Whole durable batches from the one that holds `offset`, or the next one; at least one if there is one.

        Raises `StoreError`, or `KorvetError` as `check`.
        """
        if not self.led or not self.removed <= offset <= self.end:
            self._miss(offset)
        limit = self._mark.offset
        if offset >= limit:
            return Page([], offset)
        page = await self._host.store.read(self.log, offset, max_bytes, limit)
        if not page.data:
            self._bare, self._bare_end = offset, limit
        return page

    def _miss(self, offset: int) -> None:
        if self._deleted:
            raise KorvetError("UNKNOWN_TOPIC_OR_PARTITION", f"{self.log} was deleted")
        if not self.led:
            raise KorvetError("NOT_LEADER_OR_FOLLOWER", f"{self.log} is not led here")
        raise KorvetError("OFFSET_OUT_OF_RANGE", f"{offset}, but {self.log} holds {self.start} to {self.end}")

    def readable(self, offset: int) -> int:
        """About how many bytes `read` could give from `offset` on: exact near the end, else by the average record."""
        mark = self._mark
        if offset >= self._bare and mark.offset <= self._bare_end:
            return 0
        known = mark.count_readable(offset)
        if known is not None:
            return known
        records = mark.offset - max(offset, self.start)
        return max(1, self.size * records // max(1, self.end - self.start))

    async def find_time(self, ms: int) -> Found | None:
        """The first durable record at or after a time, exactly; None if all are older."""
        return await lookup.find_time(self._host.store, self.log, ms, self.start, self.high_watermark)

    async def latest_by_time(self) -> Found | None:
        """The first durable record with the largest time; None if there is no record."""
        return await lookup.find_latest(self._host.store, self.log, self.start, self.high_watermark)

    # -- other programs' records ---------------------------------------------------------------------------------

    async def look(self, fresh: float = FRESH) -> None:
        """Take notice of what other programs did, unless that was done in the last `fresh` seconds."""
        if self.single and self.led and self._host.clock.monotonic() - self._looked >= fresh:
            self._see(await self._host.store.bounds(self.log))

    def _see(self, bounds: Bounds) -> None:
        """These are the bounds, but for what is being appended. None of them moves back."""
        self._looked = self._host.clock.monotonic()
        self._take(bounds)
        if bounds.end <= self.end:
            self._mark.lift(min(bounds.durable, self.end))
            return
        self.end = bounds.end
        self._mark.lift(bounds.durable)
        self._await_durable()

    def _await_durable(self) -> None:
        """What was written by others, or before, is readable once it is durable."""
        if self.high_watermark < self.end:
            self._ask_durable()

    def _ask_durable(self) -> "asyncio.Future[None]":
        """An append of nothing tells when all is. Raises `Stale` or `Detached`."""
        sync, copies = self.config.sync, self.config.copies
        durable = self._host.store.append(self.log, (), self.end, sync=sync, copies=copies).durable
        self._mark.add(self.end, self.end, 0, durable)
        return durable

    def follow(self) -> None:
        """From now on, wake those who wait here when another program writes."""
        if self.single and self._unfollow is None:
            self._unfollow = self._host.store.follow(self.log, self.end, self._grow)

    def unfollow(self) -> None:
        """Nobody here is interested any more."""
        if self._unfollow is not None:
            self._unfollow()
            self._unfollow = None

    def _grow(self) -> None:
        self._unfollow = None
        self._host.start(self._look_now())

    async def _look_now(self) -> None:
        try:
            await self.look(0.0)
        except StoreError as error:
            logger.warning("%s: what another program wrote cannot be seen: %s", self.log, error.detail)
        self.wake()

    # -- taking away ---------------------------------------------------------------------------------------------

    async def delete_records(self, offset: int) -> int:
        """Records below `offset` (`LATEST`: below the high watermark) are gone; returns the new start.

        Raises `KorvetError` OFFSET_OUT_OF_RANGE for an offset that is negative or above the high watermark.
        """
        if offset == LATEST:
            offset = self.high_watermark
        if not self.led or not 0 <= offset <= self.high_watermark:
            self._miss(offset)
        if offset > self.start:
            self._take(await self._host.store.cut(self.log, start=offset))
        return self.start

    async def retire(self) -> None:
        """Delete what the topic's retention lets go."""
        ms, size = self.config.retention_ms, self.config.retention_bytes
        if self.led and self.end > self.start and (ms >= 0 or size >= 0):
            older_than = self._host.clock.wall() - ms if ms >= 0 else None
            larger_than = size if size >= 0 else None
            self._take(await self._host.store.cut(self.log, older_than=older_than, larger_than=larger_than))

    def _take(self, bounds: Bounds) -> None:
        """Where the log starts now."""
        self.size = bounds.size
        self.removed = max(self.removed, bounds.removed)
        if bounds.start > self.start:
            self.start = bounds.start
            self.wake()
