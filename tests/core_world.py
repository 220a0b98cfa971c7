"""A broker core over a real embedded store, with a clock that stands still and a store that fails when told to."""

import asyncio
import shutil
from asyncio import Future
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from batches import NOW, make_batch, read_values
from korvet_fast import _native
from korvet_fast.config import read_settings
from korvet_fast.core.broker import Broker
from korvet_fast.core.clock import Clock
from korvet_fast.core.partition.partition import Partition
from korvet_fast.endpoint import Endpoint
from korvet_fast.errors import StoreError
from korvet_fast.store.embedded.store import EmbeddedStore
from korvet_fast.store.interface import OpenedLog
from korvet_fast.store.types import LARGE, Appending, Bounds, RecordBatch, SegmentLimits
from shared_store import Server, SharedStore

LIMIT = 1 << 30
BLIND = ("broker.heartbeat.interval.ms=1000000000", "broker.session.timeout.ms=2000000000")


class AppendResult(NamedTuple):
    """The result of `Partition.append`, by name."""

    base_offset: int
    log_append_time: int
    log_start_offset: int
    done: "Future[Any] | None"


class StillClock(Clock):
    """Time that moves when a test says so."""

    def __init__(self) -> None:
        self.ms = NOW
        self.seconds = 1000.0

    def wall(self) -> int:
        return self.ms

    def monotonic(self) -> float:
        return self.seconds


class MovableClock(Clock):
    """Time that goes on as always, and further ahead when a test says so."""

    ahead = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead


class Unruly:
    """An embedded store whose appends fail, or stay undecided, when told to; everything else is the store's own."""

    def __init__(self, store: EmbeddedStore) -> None:
        self.store = store
        self.refuse: Exception | None = None  # raised by appends, before anything is stored
        self.refuse_cut: Exception | None = None
        self.fail = ""  # "stored" or "durable": that future of an append has failed already when it returns
        self.hold: list[Future[None]] | None = None  # a list: appends are stored, and durable when the test says so
        self.durable: int | None = None  # bounds say that no more than this is durable
        self.reads = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

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
        if self.refuse is not None:
            raise self.refuse
        appending = self.store.open_log(log).append(batches, at, sync=sync, segment_limits=segment_limits)
        if self.fail:
            failed: Future[None] = asyncio.get_running_loop().create_future()
            failed.set_exception(StoreError("failed at once"))
            failed.exception()  # nobody has to ask
            return replace(appending, at_once=False, **{self.fail: failed})
        if self.hold is None:
            return appending
        self.hold.append(asyncio.get_running_loop().create_future())
        return Appending(appending.stored, self.hold[-1])

    async def bounds(self, log: str) -> Bounds:
        bounds = await self.store.bounds(log)
        return bounds if self.durable is None else bounds._replace(durable=min(bounds.durable, self.durable))

    async def delete_records(self, log: str, start: int) -> Any:
        if self.refuse_cut is not None:
            raise self.refuse_cut
        return await self.store.delete_records(log, start)

    async def apply_retention(self, log: str, **what: Any) -> Any:
        if self.refuse_cut is not None:
            raise self.refuse_cut
        return await self.store.apply_retention(log, **what)

    async def _read(self, log: str, start: int, max_bytes: int, limit: int, *, copy: bool = False) -> Any:
        self.reads += 1
        return await self.store.open_log(log).read(start, max_bytes, limit, copy=copy)


class World:
    """A broker that runs, its clock and its store."""

    def __init__(self, broker: Broker, clock: StillClock, store: Unruly) -> None:
        self.broker = broker
        self.clock = clock
        self.store = store


@asynccontextmanager
async def run_broker(data: Path, *flags: str, addresses: Sequence[Endpoint] = ()) -> AsyncIterator[World]:
    """A broker over `data` with `name=value` settings, that advertises `addresses`; closed cleanly at the end."""
    clock = StillClock()
    store = Unruly(EmbeddedStore(data))
    broker = Broker(store, read_settings(flags), clock)
    await broker.open(addresses)
    try:
        yield World(broker, clock, store)
    finally:
        await broker.close()


class SharedWorld:
    """A broker over a shared store, its clock, and a partition once it is created.

    It does not see who else is there after its start: of several, each may take itself for the leader.
    """

    def __init__(self, server: Server, *flags: str) -> None:
        self.server = server
        self.store = SharedStore(server)
        self.clock = StillClock()
        self.broker = Broker(self.store, read_settings([*flags, *BLIND]), self.clock)
        self.broker.cluster.refresh_soon = lambda: None

    async def seize(self) -> None:
        """Take over whatever there is."""
        for topic in self.broker.topics:
            for partition in topic.partitions:
                if not partition.leadership.leads:
                    await partition.leader.become_leader()

    async def create(self, **configs: str) -> Partition:
        """A topic `t` of one partition with these settings (`_` for `.`)."""
        own = {name.replace("_", "."): value for name, value in configs.items()}
        return (await self.broker.topics.create("t", 1, own)).partitions[0]

    @property
    def partition(self) -> Partition:
        topic = self.broker.topics.get("t")
        assert topic is not None
        return topic.partitions[0]

    def later(self) -> None:
        """Long enough that what is known of other programs is not good enough any more."""
        self.clock.seconds += 2


@asynccontextmanager
async def run_shared(server: Server, *flags: str) -> AsyncIterator[SharedWorld]:
    """A broker that shares a server with others, and has taken everything over; closed cleanly at the end."""
    world = SharedWorld(server, *flags)
    await world.broker.open()
    await world.seize()
    try:
        yield world
    finally:
        await world.broker.close()


async def send(partition: Partition, *values: bytes, acks: int = -1, **options: Any) -> int:
    """Append one batch of values and wait for what acks asks for; the base offset."""
    return await settle(put(partition, make_batch(values, **options), acks))


def put(partition: Partition, batch: bytearray, acks: int = 1) -> AppendResult:
    """Check and append, as Produce does."""
    return AppendResult(*partition.append(batch, _native.validate_batch(batch, LIMIT), acks, partition._clock.wall()))


def put_values(partition: Partition, *values: bytes) -> int:
    """Append one batch of values; the base offset."""
    return put(partition, make_batch(values)).base_offset


async def settle(appended: AppendResult) -> int:
    """Wait for what acks asked for; the base offset."""
    if appended.done is None:
        return appended.base_offset
    placed = await asyncio.shield(appended.done)
    await asyncio.sleep(0)  # a future that had ended already: its other callbacks come now
    return appended.base_offset if placed is None else int(placed.base_offset)


async def read_all(partition: Partition, offset: int = 0) -> list[bytes]:
    """All values that a consumer gets from `offset` on, whole batches."""
    values: list[bytes] = []
    while True:
        page = await partition.read(offset, 1 << 20)
        if not page.data:
            return values
        values += [value for part in page.data for value in read_values(part)]
        offset = page.next


def copy_as_crashed(data: Path, to: Path) -> Path:
    """The files that a kill -9 at this moment would leave on disk."""
    shutil.copytree(data, to)
    return to
