"""A server in memory, and stores that share it: what core must cope with where others write, take over and forget.

The rules are those of `store.interface`; `tests/store` holds the engines to the same ones. Everything is answered one
turn of the loop later, unless a test holds it back.
"""

import asyncio
from asyncio import Future
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from batches import make_batch
from korvet_fast import _native
from korvet_fast.errors import OutcomeUnknown, StoreError, TooFewCopies
from korvet_fast.store.interface import OpenedLog
from korvet_fast.store.types import (
    BATCHES,
    ENTRIES,
    LARGE,
    Appending,
    Bounds,
    CompareAndSet,
    LeadershipGrant,
    LogFormat,
    NotLeader,
    OffsetConflict,
    ReadResult,
    RecordBatch,
    SegmentLimits,
    StoreTimes,
)

_HEAD = 61


@dataclass
class Stream:
    """A log on the server."""

    batches: list[RecordBatch] = field(default_factory=list)
    epoch: int = 0
    end: int = 0  # as the last append by a broker left it
    last_record_end: int = 0  # after the last record there ever was
    removed: int = 0
    lost: int = 0
    durable: int | None = None  # all of it, if this is not told
    epochs: list[tuple[int, int]] = field(default_factory=list)

    @property
    def bounds(self) -> Bounds:
        end = max(self.end, self.last_record_end)
        start = self.batches[0].first if self.batches else end
        latest = max((batch.timestamp for batch in self.batches), default=-1)
        durable = end if self.durable is None else self.durable
        return Bounds(
            start, end, durable, sum(len(batch.data) for batch in self.batches), latest, self.removed, self.lost
        )


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
        first = max(offset, stream.last_record_end)
        stream.batches.append(RecordBatch(bytes(make_batch([value], base_offset=first)), first, first, offset >> 10))
        stream.last_record_end = first + 1
        for store in self.stores:
            store.tell(log, first)
        return first

    def lose(self, log: str, last_record_end: int) -> None:
        """Forget the records from `last_record_end` on, as a replica does that never had them."""
        stream = self.stream(log)
        stream.batches = [batch for batch in stream.batches if batch.last < last_record_end]
        stream.end = stream.last_record_end = last_record_end

    def delete(self, log: str) -> None:
        """Another program deletes what is there, and whoever leads goes on."""
        stream = self.stream(log)
        stream.batches, stream.removed, stream.lost = [], stream.end, stream.end

    def change_history(self, why: str) -> None:
        """Everybody learns that the history broke."""
        for store in self.stores:
            store.change_history(why)


class SharedStore:
    """One program's store on a server. `held`: a list, and appends wait in it until a test calls what it holds."""

    syncs = False
    plain_files = processes = None

    def __init__(self, server: Server, layouts: tuple[str, ...] = (ENTRIES, BATCHES)) -> None:
        self.shared = self.producers = self.groups = self
        self.layouts = layouts
        self.server = server
        self.held: list[Callable[[], None]] | None = None
        self.refuses: str | None = None  # what `durability_error` answers
        self.lacking = False  # replicas: nothing becomes durable
        self.acquired: dict[str, tuple[int, int]] = {}  # log -> epoch, the end that the next append will find
        self.log_formats: dict[str, LogFormat] = {}
        self.reading = self.most = 0  # reads under way, and how many were at the most
        self.scans: list[str] = []  # prefixes
        self._under_way: list[Appending] = []
        self._subscriptions: list[tuple[str, int, Callable[[], None]]] = []
        self._lost: Callable[[str], None] = lambda why: None
        server.stores.append(self)

    async def open(self) -> None:
        await self._answer()

    async def close(self) -> None:
        self.server.stores.remove(self)

    def on_data_loss(self, lost: Callable[[str], None]) -> None:
        self._lost = lost

    def declare(self, log: str, log_format: LogFormat) -> None:
        self.log_formats[log] = log_format

    def durability_error(self, log: str | None, sync: bool, copies: int) -> str | None:
        return self.refuses

    async def version(self, prefix: str) -> int:
        await self._answer()
        return self.server.changes[prefix]

    async def _answer(self) -> None:
        await asyncio.sleep(0)
        if self.server.down:
            raise StoreError("the server is down")

    async def acquire(
        self, log: str, log_format: LogFormat, *, epoch: int, floor: int, durable: int = 0
    ) -> LeadershipGrant:
        await self._answer()
        stream = self.server.stream(log)
        stream.epoch = max(stream.epoch + 1, epoch)
        stream.end = max(stream.end, stream.last_record_end, floor)
        stream.epochs = [*(each for each in stream.epochs if each[1] < stream.end), (stream.epoch, stream.end)]
        self.acquired[log] = stream.epoch, stream.end
        self.log_formats[log] = log_format
        return LeadershipGrant(
            stream.bounds,
            stream.epoch,
            stream.last_record_end,
            tuple(stream.epochs) if log_format.entries_layout else (),
        )

    def recent_headers(self, log: str) -> bytes:
        batches = self.server.stream(log).batches
        return b"".join(bytes(batch.data[:8]) + b"\0\0\0\x31" + batch.data[12:_HEAD] for batch in batches)

    def forget_producer(self, log: str, producer: int) -> None:
        """Headers are those of the batches."""

    def open_log(self, log: str) -> OpenedLog:
        return OpenedLog(partial(self._append, log), partial(self._read, log))

    def _append(
        self,
        log: str,
        batches: Sequence[RecordBatch],
        at: int,
        sync: bool,
        copies: int = 1,
        segment_limits: SegmentLimits = LARGE,
    ) -> Appending:
        if log not in self.acquired:
            raise NotLeader(f"{log} is not acquired")
        loop = asyncio.get_running_loop()
        stored: Future[None] = loop.create_future()
        appending = Appending(stored, loop.create_future())
        if not batches:
            if not self.lacking:
                loop.call_soon(self._end, appending, None)
            else:
                self._end(appending, None)
            return appending
        self._under_way.append(appending)
        (batch,) = batches
        epoch, expected = self.acquired[log]
        assert at >= expected, "core proposes an end that is below the last append's"
        self.acquired[log] = epoch, batch.last + 1
        kept = batch._replace(data=bytes(batch.data))

        def apply() -> None:
            self._end(appending, self._apply(log, kept, epoch, expected))

        if self.held is None:
            loop.call_soon(apply)
        else:
            self.held.append(apply)
        return appending

    def _apply(self, log: str, batch: RecordBatch, epoch: int, expected: int) -> Exception | None:
        stream = self.server.stream(log)
        if self.server.down or self.server.full:
            return StoreError("the server is down" if self.server.down else "OOM")
        if stream.epoch != epoch:
            self.acquired.pop(log, None)
            return OffsetConflict(-1, fenced=True)
        if self.server.greedy:
            self.server.add(log, batch.first, b"foreign")
        if stream.end != expected or batch.first < stream.last_record_end:
            self.acquired[log] = epoch, stream.end
            return OffsetConflict(stream.bounds.end)
        stream.batches.append(batch)
        stream.end = stream.last_record_end = batch.last + 1
        return None

    def _end(self, appending: Appending, error: Exception | None) -> None:
        for future in (appending.stored, appending.durable):
            if future.done():
                continue
            if error is None and (not self.lacking or future is appending.stored):
                future.set_result(None)
            else:
                future.set_exception(error or TooFewCopies("there are no replicas"))
                future.exception()
        if appending in self._under_way:
            self._under_way.remove(appending)

    def change_history(self, why: str) -> None:
        for appending in list(self._under_way):
            self._end(appending, OutcomeUnknown(why))
        self.acquired.clear()
        self._lost(why)

    async def _read(self, log: str, start: int, max_bytes: int, limit: int, *, copy: bool = False) -> ReadResult:
        self.reading += 1
        self.most = max(self.most, self.reading)
        await self._answer()
        self.reading -= 1
        data: list[bytes | bytearray | memoryview] = []
        following, size = start, 0
        for batch in self.server.stream(log).batches:
            if batch.last < start or batch.first >= limit:
                continue
            if data and size + len(batch.data) > max_bytes:
                break
            data.append(batch.data)
            size += len(batch.data)
            following = batch.last + 1
        return ReadResult(data, following)

    async def bounds(self, log: str) -> Bounds:
        await self._answer()
        return self.server.stream(log).bounds

    async def find_time(self, log: str, ms: int, start: int = 0) -> ReadResult:
        await self._answer()
        for batch in self.server.stream(log).batches:
            if batch.last >= start and batch.timestamp >= ms:
                return ReadResult([batch.data], batch.last + 1)
        return ReadResult([], start)

    async def truncate(self, log: str, end: int) -> Bounds:
        return await self.bounds(log)

    async def delete_records(self, log: str, start: int) -> Bounds:
        await self._answer()
        stream = self.server.stream(log)
        stream.batches = [batch for batch in stream.batches if batch.last >= start]
        stream.removed = max(stream.removed, start)
        return stream.bounds

    async def apply_retention(
        self, log: str, *, older_than: int | None = None, larger_than: int | None = None
    ) -> Bounds:
        return await self.bounds(log)

    def read_times(self) -> StoreTimes:
        return StoreTimes()

    async def close_idle(self, wanted: Callable[[str], bool] | None = None) -> None:
        """Nothing is open."""

    async def drop(self, log: str) -> None:
        await self._answer()
        self.server.streams.pop(log, None)

    def mirror_offset(self, log: str, group: str, offset: int | None) -> None:
        self.server.shown[log, group] = offset

    async def load(self, key: str) -> bytes | None:
        await self._answer()
        return self.server.keys.get(key)

    async def save(self, key: str, value: bytes | None, expected: bytes | None, *others: CompareAndSet) -> bool:
        await self._answer()
        changes = (CompareAndSet(key, value, expected), *others)
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

    async def is_leader(self, log: str) -> bool:
        await self._answer()
        return log in self.acquired and self.server.stream(log).epoch == self.acquired[log][0]

    def notify(
        self, log: str, end: int, on_append: Callable[[], None], wanted: Callable[[], bool] | None = None
    ) -> Callable[[], None]:
        subscription = (log, end, on_append)
        self._subscriptions.append(subscription)
        last_record_end = self.server.stream(log).last_record_end
        if last_record_end > end:
            asyncio.get_running_loop().call_soon(self.tell, log, last_record_end - 1)
        return lambda: self._subscriptions.remove(subscription) if subscription in self._subscriptions else None

    def tell(self, log: str, offset: int) -> None:
        """Another program put something at `offset`."""
        for subscription in [one for one in self._subscriptions if one[0] == log and one[1] <= offset]:
            self._subscriptions.remove(subscription)
            subscription[2]()


def first_record(batch: bytes | bytearray | memoryview) -> int:
    """The offset of a batch's first record."""
    return int(_native.batch_headers(batch, False)[0].base_offset)
