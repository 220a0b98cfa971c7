"""A store as the contract's tests see it: the same words for every engine.

Offsets are counted from the first that is written (`origin`): 0 where batches are whole, a time in Redis' entries.
Where batches are taken apart (not `whole`), readers get records, not the batches they came in.
"""

from typing import Any

from korvet_fast.store.interface import Store
from korvet_fast.store.types import (
    LARGE,
    Appending,
    Bounds,
    LeadershipGrant,
    LogFormat,
    OffsetConflict,
    ReadResult,
    RecordBatch,
    SegmentLimits,
)
from store.record_batches import LIMIT, make_record_batch, offsets


class Scene:
    """An open store, and logs in it. All offsets that go in and come out are relative."""

    def __init__(self, store: Store, log_format: LogFormat, origin: int) -> None:
        self.store = store
        self.log_format = log_format
        self.origin = origin
        self.whole = not log_format.entries_layout
        self._ends: dict[str, int] = {}  # of acquired logs that nothing was ever put into: where they really end

    def relate(self, offset: int) -> int:
        """An offset of the store's as tests have it: relative to `origin`, below which all is 0."""
        return max(0, offset - self.origin)

    async def acquire(self, log: str, *, epoch: int = 0, floor: int = 0) -> LeadershipGrant:
        """Take a log over, where there are others, and have what is in it made durable, as a broker does."""
        if self.store.shared is None:
            bounds = await self.store.bounds(log)
            granted = LeadershipGrant(bounds, epoch, bounds.end)
        else:
            floor = floor and floor + self.origin
            granted = await self.store.shared.acquire(log, self.log_format, epoch=epoch, floor=floor)
        bounds = granted.bounds
        self._ends[log] = bounds.end
        if bounds.durable < bounds.end:
            await self.store.open_log(log).append((), bounds.end, sync=True).durable
            bounds = await self.store.bounds(log)
        return granted._replace(bounds=self._relate(bounds), last_record_end=self.relate(granted.last_record_end))

    def make(self, first: int, count: int = 1, **what: Any) -> RecordBatch:
        """As `make_record_batch`."""
        return make_record_batch(first + self.origin, count, **what)

    def append(
        self,
        log: str,
        at: int,
        *counts: int,
        sync: bool = False,
        size: int = 20,
        time: int = 0,
        segment_limits: SegmentLimits = LARGE,
    ) -> Appending:
        """One append, a batch for each of `counts`; times rise by one a record."""
        batches = []
        first = at
        for count in counts:
            batches.append(self.make(first, count, time=time, size=size))
            first, time = first + count, time + count
        really = self._ends.get(log, self.origin)
        try:
            appending = self.store.open_log(log).append(
                batches,
                really if at == 0 and really < self.origin else at + self.origin,
                sync=sync,
                segment_limits=segment_limits,
            )
        except OffsetConflict as conflict:
            raise OffsetConflict(self.relate(conflict.end), conflict.fenced, conflict.given_up) from conflict
        if batches:
            self._ends.pop(log, None)
        return appending

    async def fill(self, log: str, *counts: int, **what: Any) -> Bounds:
        """An append of one batch for each of `counts`, behind the end; the bounds when all are durable."""
        if log not in self._ends and not (await self.bounds(log)).end:
            await self.acquire(log)
        end = (await self.bounds(log)).end
        time = what.pop("time", 0)
        durable = None
        for count in counts:
            durable = self.append(log, end, count, time=time, **what).durable
            end, time = end + count, time + count
        if durable is not None:
            await durable
        return await self.bounds(log)

    async def read(self, log: str, start: int, max_bytes: int, limit: int = LIMIT) -> ReadResult:
        """As `LogStore.read`."""
        page = await self.store.open_log(log).read(start + self.origin, max_bytes, limit + self.origin)
        return page._replace(next=self.relate(page.next))

    def offsets(self, page: ReadResult) -> list[int]:
        """The batches of a read's result."""
        return [self.relate(offset) for offset in offsets(page)]

    async def read_offsets(self, log: str, start: int, max_bytes: int, limit: int = LIMIT) -> list[int]:
        """The batches that a read gets."""
        return self.offsets(await self.read(log, start, max_bytes, limit))

    async def read_all(self, log: str, start: int = 0, max_bytes: int = 1 << 20) -> list[int]:
        """All offsets from the batch on that holds `start`, page by page."""
        found: list[int] = []
        while True:
            page = await self.read(log, start, max_bytes)
            if not page.data:
                return found
            found += [offset for offset in self.offsets(page) if not found or offset > found[-1]]
            assert page.next == found[-1] + 1
            start = page.next

    async def find_time(self, log: str, ms: int, start: int = 0) -> list[int]:
        """The batches that `LogStore.find_time` finds."""
        return self.offsets(await self.store.find_time(log, ms, start and start + self.origin))

    async def bounds(self, log: str) -> Bounds:
        """As `LogStore.bounds`."""
        return self._relate(await self.store.bounds(log))

    async def truncate(self, log: str, end: int) -> Bounds:
        """As `LogStore.truncate`."""
        return self._relate(await self.store.truncate(log, end + self.origin))

    async def delete_records(self, log: str, start: int) -> Bounds:
        """As `LogStore.delete_records`."""
        return self._relate(await self.store.delete_records(log, start + self.origin))

    async def apply_retention(self, log: str, **what: int) -> Bounds:
        """As `LogStore.apply_retention`."""
        return self._relate(await self.store.apply_retention(log, **what))

    async def drop(self, log: str) -> None:
        """As `LogStore.drop`."""
        self._ends.pop(log, None)
        await self.store.drop(log)

    async def measure_record(self, size: int = 20) -> int:
        """How many bytes a record of this size takes at rest, its time one of four digits."""
        bounds = await self.fill("scale:0", 1, size=size, time=1000)
        await self.drop("scale:0")
        return bounds.size

    def _relate(self, bounds: Bounds) -> Bounds:
        start, end, durable, size, latest, removed, lost = bounds
        relate = self.relate
        return Bounds(relate(start), relate(end), relate(durable), size, latest, relate(removed), relate(lost))
