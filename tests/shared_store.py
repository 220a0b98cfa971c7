"""A server in memory, and stores that share it: what core must cope with where others write, take over and forget.

The rules are those of `store.interface`; `tests/store` holds the engines to the same ones. Everything is answered one
turn of the loop later, unless a test holds it back.
"""

import asyncio
from asyncio import Future
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from batches import make_batch
from korvet_fast import _native
from korvet_fast.errors import OutcomeUnknown, StoreError, TooFewCopies
from korvet_fast.store.interface import (
    BATCHES,
    ENTRIES,
    LARGE,
    Appending,
    Attached,
    Bounds,
    Change,
    Detached,
    Entry,
    Form,
    Page,
    Piece,
    Stale,
)

_HEAD = 61


@dataclass
class Stream:
    """A log on the server."""

    entries: list[Entry] = field(default_factory=list)
    epoch: int = 0
    end: int = 0  # as the last append by a broker left it
    top: int = 0  # after the last record there ever was
    removed: int = 0
    durable: int | None = None  # all of it, if this is not told
    epochs: list[tuple[int, int]] = field(default_factory=list)

    @property
    def bounds(self) -> Bounds:
        end = max(self.end, self.top)
        start = self.entries[0].first if self.entries else end
        latest = max((entry.timestamp for entry in self.entries), default=-1)
        durable = end if self.durable is None else self.durable
        return Bounds(start, end, durable, sum(len(entry.data) for entry in self.entries), latest, self.removed)


class Server:
    """Streams and keys. `down`: nothing is answered; `full`: nothing is appended, though logs are taken over."""

    def __init__(self) -> None:
        self.streams: dict[str, Stream] = {}
        self.keys: dict[str, bytes] = {}
        self.shown: dict[tuple[str, str], int | None] = {}  # log, group: its position
        self.changes: Counter[str] = Counter()
        self.stores: list[SharedStore] = []
        self.down = False
        self.full = False
        self.greedy = False  # another program is always faster than the appends are

    def stream(self, log: str) -> Stream:
        return self.streams.setdefault(log, Stream())

    def add(self, log: str, offset: int, value: bytes) -> int:
        """Another program's record, at `offset` or after the last one; where it went."""
        stream = self.stream(log)
        first = max(offset, stream.top)
        stream.entries.append(Entry(bytes(make_batch([value], base_offset=first)), first, first, offset >> 10))
        stream.top = first + 1
        for store in self.stores:
            store.tell(log, first)
        return first

    def lose(self, log: str, top: int) -> None:
        """Forget the records from `top` on, as a replica does that never had them."""
        stream = self.stream(log)
        stream.entries = [entry for entry in stream.entries if entry.last < top]
        stream.end = stream.top = top

    def fork(self, why: str) -> None:
        """Everybody learns that the history broke."""
        for store in self.stores:
            store.fork(why)


class SharedStore:
    """One program's store on a server. `held`: a list, and appends wait in it until a test calls what it holds."""

    shared = True
    syncs = False

    def __init__(self, server: Server, layouts: tuple[str, ...] = (ENTRIES, BATCHES)) -> None:
        self.layouts = layouts
        self.server = server
        self.held: list[Callable[[], None]] | None = None
        self.refuses: str | None = None  # what `refusal` answers
        self.lacking = False  # replicas: nothing becomes durable
        self.attached: dict[str, tuple[int, int]] = {}  # log -> epoch, the end that the next append will find
        self.forms: dict[str, Form] = {}
        self.reading = self.most = 0  # reads under way, and how many were at the most
        self.scans: list[str] = []  # prefixes
        self._under_way: list[Appending] = []
        self._follows: list[tuple[str, int, Callable[[], None]]] = []
        self._forked: Callable[[str], None] = lambda why: None
        server.stores.append(self)

    async def open(self) -> None:
        await self._answer()

    async def close(self) -> None:
        self.server.stores.remove(self)

    def listen(self, forked: Callable[[str], None]) -> None:
        self._forked = forked

    def declare(self, log: str, form: Form) -> None:
        self.forms[log] = form

    def refusal(self, log: str | None, sync: bool, copies: int) -> str | None:
        return self.refuses

    async def changed(self, prefix: str) -> int:
        await self._answer()
        return self.server.changes[prefix]

    async def _answer(self) -> None:
        await asyncio.sleep(0)
        if self.server.down:
            raise StoreError("the server is down")

    async def attach(self, log: str, form: Form, *, epoch: int, floor: int) -> Attached:
        await self._answer()
        stream = self.server.stream(log)
        stream.epoch = max(stream.epoch + 1, epoch)
        stream.end = max(stream.end, stream.top, floor)
        stream.epochs = [*(each for each in stream.epochs if each[1] < stream.end), (stream.epoch, stream.end)]
        self.attached[log] = stream.epoch, stream.end
        self.forms[log] = form
        headers = b"".join(bytes(entry.data[:8]) + b"\0\0\0\x31" + entry.data[12:_HEAD] for entry in stream.entries)
        attached = Attached(stream.bounds, stream.epoch, stream.top, b"")
        return attached._replace(headers=headers, epochs=tuple(stream.epochs)) if form.single else attached

    def append(
        self, log: str, entries: Sequence[Entry], at: int, *, sync: bool, copies: int = 1, piece: Piece = LARGE
    ) -> Appending:
        if log not in self.attached:
            raise Detached(f"{log} is not attached")
        loop = asyncio.get_running_loop()
        stored: Future[None] = loop.create_future()
        appending = Appending(stored, loop.create_future())
        if not entries:
            if not self.lacking:
                loop.call_soon(self._end, appending, None)
            else:
                self._end(appending, None)
            return appending
        self._under_way.append(appending)
        (entry,) = entries
        epoch, expected = self.attached[log]
        assert at >= expected, "core proposes an end that is below the last append's"
        self.attached[log] = epoch, entry.last + 1
        kept = entry._replace(data=bytes(entry.data))

        def apply() -> None:
            self._end(appending, self._apply(log, kept, epoch, expected))

        if self.held is None:
            loop.call_soon(apply)
        else:
            self.held.append(apply)
        return appending

    def _apply(self, log: str, entry: Entry, epoch: int, expected: int) -> Exception | None:
        stream = self.server.stream(log)
        if self.server.down or self.server.full:
            return StoreError("the server is down" if self.server.down else "OOM")
        if stream.epoch != epoch:
            self.attached.pop(log, None)
            return Stale(-1, fenced=True)
        if self.server.greedy:
            self.server.add(log, entry.first, b"foreign")
        if stream.end != expected or entry.first < stream.top:
            self.attached[log] = epoch, stream.end
            return Stale(stream.bounds.end)
        stream.entries.append(entry)
        stream.end = stream.top = entry.last + 1
        return None

    def _end(self, appending: Appending, error: Exception | None) -> None:
        for future in appending:
            if future.done():
                continue
            if error is None and (not self.lacking or future is appending.stored):
                future.set_result(None)
            else:
                future.set_exception(error or TooFewCopies("there are no replicas"))
                future.exception()
        if appending in self._under_way:
            self._under_way.remove(appending)

    def fork(self, why: str) -> None:
        for appending in list(self._under_way):
            self._end(appending, OutcomeUnknown(why))
        self.attached.clear()
        self._forked(why)

    async def read(self, log: str, start: int, max_bytes: int, limit: int) -> Page:
        self.reading += 1
        self.most = max(self.most, self.reading)
        await self._answer()
        self.reading -= 1
        data: list[bytes | bytearray | memoryview] = []
        following, size = start, 0
        for entry in self.server.stream(log).entries:
            if entry.last < start or entry.first >= limit:
                continue
            if data and size + len(entry.data) > max_bytes:
                break
            data.append(entry.data)
            size += len(entry.data)
            following = entry.last + 1
        return Page(data, following)

    async def bounds(self, log: str) -> Bounds:
        await self._answer()
        return self.server.stream(log).bounds

    async def find_time(self, log: str, ms: int, start: int = 0) -> Page:
        await self._answer()
        for entry in self.server.stream(log).entries:
            if entry.last >= start and entry.timestamp >= ms:
                return Page([entry.data], entry.last + 1)
        return Page([], start)

    async def cut(
        self,
        log: str,
        *,
        start: int | None = None,
        end: int | None = None,
        older_than: int | None = None,
        larger_than: int | None = None,
    ) -> Bounds:
        await self._answer()
        stream = self.server.stream(log)
        if start is not None:
            stream.entries = [entry for entry in stream.entries if entry.last >= start]
            stream.removed = max(stream.removed, start)
        return stream.bounds

    async def drop(self, log: str) -> None:
        await self._answer()
        self.server.streams.pop(log, None)

    def show(self, log: str, group: str, offset: int | None) -> None:
        self.server.shown[log, group] = offset

    async def load(self, key: str) -> bytes | None:
        await self._answer()
        return self.server.keys.get(key)

    async def save(self, key: str, value: bytes | None, expected: bytes | None, *others: Change) -> bool:
        await self._answer()
        changes = (Change(key, value, expected), *others)
        if any(self.server.keys.get(each.key) != each.expected for each in changes):
            return False
        self.server.changes[key[: key.find("/") + 1]] += 1
        for each in changes:
            if each.value is None:
                self.server.keys.pop(each.key, None)
            else:
                self.server.keys[each.key] = each.value
        return True

    async def scan(self, prefix: str) -> dict[str, bytes]:
        self.scans.append(prefix)
        await self._answer()
        return {key: value for key, value in sorted(self.server.keys.items()) if key.startswith(prefix)}

    def follow(self, log: str, end: int, grown: Callable[[], None]) -> Callable[[], None]:
        followed = (log, end, grown)
        self._follows.append(followed)
        top = self.server.stream(log).top
        if top > end:
            asyncio.get_running_loop().call_soon(self.tell, log, top - 1)
        return lambda: self._follows.remove(followed) if followed in self._follows else None

    def tell(self, log: str, offset: int) -> None:
        """Another program put something at `offset`."""
        for followed in [one for one in self._follows if one[0] == log and one[1] <= offset]:
            self._follows.remove(followed)
            followed[2]()


def first_record(batch: bytes | bytearray | memoryview) -> int:
    """The offset of a batch's first record."""
    return int(_native.headers(batch, False)[0].base_offset)
