"""A store that is late and fails, by a seed: for tests of everything that stands on a store."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, TypeVar

from korvet_fast.errors import StoreError
from korvet_fast.store.interface import OpenedLog, SharedStore, Store
from korvet_fast.store.types import (
    LARGE,
    Appending,
    Bounds,
    CompareAndSet,
    LeadershipGrant,
    LogFormat,
    ReadResult,
    RecordBatch,
    SegmentLimits,
    StoreTimes,
)

_Result = TypeVar("_Result")


@dataclass
class Plan:
    """Probabilities of faults in one call; `after`: the call fails although it was done, so its outcome is unknown."""

    seed: int
    turns: int = 5  # of the loop that a call may be late
    before: float = 0.0
    after: float = 0.0
    failures: int = 0  # how many there were
    random: Random = field(init=False)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)

    async def wait(self) -> None:
        """Be late."""
        for _ in range(self.random.randrange(self.turns + 1)):
            await asyncio.sleep(0)

    def fail(self, probability: float, when: str) -> None:
        """Perhaps raise `StoreError`."""
        if self.random.random() < probability:
            self.failures += 1
            raise StoreError(f"made to fail {when}, seed {self.seed}")


class FaultyShared:
    """The faulty shared store: other methods of the store, made as late and as faulty by `call`."""

    def __init__(self, inner: SharedStore, call: Callable[[Callable[[], Awaitable[Any]]], Awaitable[Any]]) -> None:
        self.processes = inner.processes
        self._inner = inner
        self._call = call

    def declare(self, log: str, log_format: LogFormat) -> None:
        self._inner.declare(log, log_format)

    async def acquire(
        self, log: str, log_format: LogFormat, *, epoch: int, floor: int, durable: int = 0
    ) -> LeadershipGrant:
        return await self._call(lambda: self._inner.acquire(log, log_format, epoch=epoch, floor=floor, durable=durable))

    async def is_leader(self, log: str) -> bool:
        return await self._call(lambda: self._inner.is_leader(log))

    def notify(
        self, log: str, end: int, on_append: Callable[[], None], wanted: Callable[[], bool] | None = None
    ) -> Callable[[], None]:
        return self._inner.notify(log, end, on_append, wanted)

    def on_data_loss(self, lost: Callable[[str], None]) -> None:
        self._inner.on_data_loss(lost)

    async def version(self, prefix: str) -> int:
        return await self._call(lambda: self._inner.version(prefix))


class Faulty:
    """Any `Store`, but worse. Order of appends and of one log's futures is kept, as the contract demands."""

    def __init__(self, inner: Store, plan: Plan) -> None:
        self.layouts, self.syncs = inner.layouts, inner.syncs
        self.shared = None if inner.shared is None else FaultyShared(inner.shared, self._call)
        self.producers, self.groups, self.plain_files = inner.producers, inner.groups, inner.plain_files
        self._inner = inner
        self._plan = plan
        self._late: dict[str, asyncio.Task[None]] = {}  # the last future of each log

    async def open(self) -> None:
        await self._inner.open()

    async def close(self) -> None:
        await asyncio.gather(*self._late.values(), return_exceptions=True)
        await self._inner.close()

    def read_times(self) -> StoreTimes:
        return self._inner.read_times()

    def durability_error(self, log: str | None, sync: bool, copies: int) -> str | None:
        return self._inner.durability_error(log, sync, copies)

    def open_log(self, log: str) -> OpenedLog:
        opened = self._inner.open_log(log)
        return OpenedLog(partial(self._append, log, opened), partial(self._read, opened))

    def _append(
        self,
        log: str,
        opened: OpenedLog,
        batches: Sequence[RecordBatch],
        at: int,
        sync: bool,
        copies: int = 1,
        segment_limits: SegmentLimits = LARGE,
    ) -> Appending:
        self._plan.fail(self._plan.before, "before the append")
        appending = opened.append(batches, at, sync=sync, copies=copies, segment_limits=segment_limits)
        self._plan.fail(self._plan.after, "after the append")
        task = asyncio.get_running_loop().create_task(self._be_late(self._late.get(log), appending.durable))
        self._late[log] = task
        task.add_done_callback(lambda ended: ended.exception())
        return Appending(appending.stored, task)

    async def _be_late(self, previous: "asyncio.Task[None] | None", durable: "asyncio.Future[None]") -> None:
        await self._plan.wait()
        if previous is not None:
            await asyncio.wait([previous])
        await durable
        self._plan.fail(self._plan.after, "after the flush")

    async def _call(self, work: Callable[[], Awaitable[_Result]]) -> _Result:
        await self._plan.wait()
        self._plan.fail(self._plan.before, "before the call")
        result = await work()
        self._plan.fail(self._plan.after, "after the call")
        await self._plan.wait()
        return result

    async def _read(
        self, opened: OpenedLog, start: int, max_bytes: int, limit: int, *, copy: bool = False
    ) -> ReadResult:
        return await self._call(lambda: opened.read(start, max_bytes, limit, copy=copy))

    async def bounds(self, log: str) -> Bounds:
        return await self._call(lambda: self._inner.bounds(log))

    async def find_time(self, log: str, ms: int, start: int = 0) -> ReadResult:
        return await self._call(lambda: self._inner.find_time(log, ms, start))

    async def truncate(self, log: str, end: int) -> Bounds:
        return await self._call(lambda: self._inner.truncate(log, end))

    async def delete_records(self, log: str, start: int) -> Bounds:
        return await self._call(lambda: self._inner.delete_records(log, start))

    async def apply_retention(
        self, log: str, *, older_than: int | None = None, larger_than: int | None = None
    ) -> Bounds:
        return await self._call(
            lambda: self._inner.apply_retention(log, older_than=older_than, larger_than=larger_than)
        )

    async def close_idle(self, wanted: Callable[[str], bool] | None = None) -> None:
        await self._call(lambda: self._inner.close_idle(wanted))

    async def drop(self, log: str) -> None:
        await self._call(lambda: self._inner.drop(log))

    async def load(self, key: str) -> bytes | None:
        return await self._call(lambda: self._inner.load(key))

    async def save(self, key: str, value: bytes | None, expected: bytes | None, *others: CompareAndSet) -> bool:
        return await self._call(lambda: self._inner.save(key, value, expected, *others))

    async def scan(self, prefix: str) -> dict[str, bytes]:
        return await self._call(lambda: self._inner.scan(prefix))
