"""A store as the contract's tests see it: the same words for every engine.

Offsets are counted from the first that is written (`origin`): 0 in files, 1 in Redis' batches, a time in Redis'
entries. Where batches are taken apart (not `whole`), readers get records, not the batches they came in.
"""

from typing import Any

from korvet_fast.store.interface import LARGE, Appending, Attached, Bounds, Entry, Form, Page, Piece, Stale, Store
from store.entries import LIMIT, make_entry, offsets


class Scene:
    """An open store, and logs in it. All offsets that go in and come out are relative."""

    def __init__(self, store: Store, form: Form, origin: int) -> None:
        self.store = store
        self.form = form
        self.origin = origin
        self.whole = not form.single
        self._ends: dict[str, int] = {}  # of attached logs that nothing was ever put into: where they really end

    def relate(self, offset: int) -> int:
        """What tests call an offset of the store's; whatever lies below `origin` is 0."""
        return max(0, offset - self.origin)

    async def attach(self, log: str, *, epoch: int = 0, floor: int = 0) -> Attached:
        """Take a log over, and have what is in it made durable, as a broker does."""
        attached = await self.store.attach(log, self.form, epoch=epoch, floor=floor and floor + self.origin)
        bounds = attached.bounds
        self._ends[log] = bounds.end
        if bounds.durable < bounds.end:
            await self.store.append(log, (), bounds.end, sync=True).durable
            bounds = await self.store.bounds(log)
        return attached._replace(bounds=self._relate(bounds), top=self.relate(attached.top))

    def make(self, first: int, count: int = 1, **what: Any) -> Entry:
        """As `make_entry`."""
        return make_entry(first + self.origin, count, **what)

    def append(
        self, log: str, at: int, *counts: int, sync: bool = False, size: int = 20, time: int = 0, piece: Piece = LARGE
    ) -> Appending:
        """One append, a batch for each of `counts`; times rise by one a record."""
        entries = []
        first = at
        for count in counts:
            entries.append(self.make(first, count, time=time, size=size))
            first, time = first + count, time + count
        really = self._ends.get(log, self.origin)
        try:
            appending = self.store.append(
                log, entries, really if at == 0 and really < self.origin else at + self.origin, sync=sync, piece=piece
            )
        except Stale as stale:
            raise Stale(self.relate(stale.end), stale.fenced) from stale
        if entries:
            self._ends.pop(log, None)
        return appending

    async def fill(self, log: str, *counts: int, **what: Any) -> Bounds:
        """An append of one batch for each of `counts`, behind the end; the bounds when all are durable."""
        if log not in self._ends and not (await self.bounds(log)).end:
            await self.attach(log)
        end = (await self.bounds(log)).end
        time = what.pop("time", 0)
        durable = None
        for count in counts:
            durable = self.append(log, end, count, time=time, **what).durable
            end, time = end + count, time + count
        if durable is not None:
            await durable
        return await self.bounds(log)

    async def read(self, log: str, start: int, max_bytes: int, limit: int = LIMIT) -> Page:
        """As `Store.read`."""
        page = await self.store.read(log, start + self.origin, max_bytes, limit + self.origin)
        return page._replace(next=self.relate(page.next))

    def offsets(self, page: Page) -> list[int]:
        """What a page holds."""
        return [self.relate(offset) for offset in offsets(page)]

    async def read_offsets(self, log: str, start: int, max_bytes: int, limit: int = LIMIT) -> list[int]:
        """What a read gets."""
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
        """What the page of `Store.find_time` holds."""
        return self.offsets(await self.store.find_time(log, ms, start and start + self.origin))

    async def bounds(self, log: str) -> Bounds:
        """As `Store.bounds`."""
        return self._relate(await self.store.bounds(log))

    async def cut(self, log: str, *, start: int | None = None, end: int | None = None, **what: int) -> Bounds:
        """As `Store.cut`."""
        if start is not None:
            what["start"] = start + self.origin
        if end is not None:
            what["end"] = end + self.origin
        return self._relate(await self.store.cut(log, **what))

    async def drop(self, log: str) -> None:
        """As `Store.drop`."""
        self._ends.pop(log, None)
        await self.store.drop(log)

    async def weigh(self, size: int = 20) -> int:
        """How many bytes a record of this size takes at rest, its time one of four digits."""
        bounds = await self.fill("scale:0", 1, size=size, time=1000)
        await self.drop("scale:0")
        return bounds.size

    def _relate(self, bounds: Bounds) -> Bounds:
        start, end, durable, size, latest, removed = bounds
        relate = self.relate
        return Bounds(relate(start), relate(end), relate(durable), size, latest, relate(removed))
