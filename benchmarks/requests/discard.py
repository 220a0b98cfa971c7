"""A store that discards: what a request costs above it is all that is left to measure."""

import asyncio
from collections.abc import Callable, Sequence
from typing import NoReturn

from korvet_fast.store.interface import OpenedLog
from korvet_fast.store.types import (
    BATCHES,
    LARGE,
    Appending,
    Bounds,
    CompareAndSet,
    OffsetConflict,
    ReadResult,
    RecordBatch,
    SegmentLimits,
)


class DiscardedLog:
    """A log of which the first batch is kept, so that there is something to fetch, and where it ends."""

    __slots__ = ("_appended", "bounds", "first")

    def __init__(self, appended: Appending) -> None:
        self._appended = appended
        self.first: bytes | None = None
        self.bounds = Bounds(0, 0, 0, 0)

    def append(
        self,
        batches: Sequence[RecordBatch],
        at: int,
        sync: bool,
        copies: int = 1,
        segment_limits: SegmentLimits = LARGE,
    ) -> Appending:
        if self.first is None:
            self.first = bytes(batches[0].data)
        elif self.bounds.end != at:
            raise OffsetConflict(self.bounds.end)
        end = batches[-1].last + 1
        self.bounds = Bounds(0, end, end, len(self.first), batches[-1].timestamp)
        return self._appended

    async def read(self, start: int, max_bytes: int, limit: int, *, copy: bool = False) -> ReadResult:
        if start != 0 or self.first is None:
            return ReadResult([], start)
        return ReadResult([self.first], self.bounds.end)


class Discard:
    """A `Store` of such logs. Everything is stored and durable at once. Keys and values are kept."""

    layouts: tuple[str, ...] = (BATCHES,)
    syncs = False
    shared = producers = groups = plain_files = None

    def __init__(self) -> None:
        self._logs: dict[str, DiscardedLog] = {}
        self._values: dict[str, bytes] = {}

    async def open(self) -> None:
        done = asyncio.get_running_loop().create_future()
        done.set_result(None)
        self._appended = Appending(done, done, at_once=True)

    async def close(self) -> None:
        """Nothing was kept that could be lost."""

    def read_times(self) -> NoReturn:  # no name of the package that earlier commits lack
        raise NotImplementedError("nobody reads the metrics")

    def durability_error(self, log: str | None, sync: bool, copies: int) -> str | None:
        return None

    def _find(self, log: str) -> DiscardedLog:
        return self._logs.setdefault(log, DiscardedLog(self._appended))

    def open_log(self, log: str) -> OpenedLog:
        found = self._find(log)
        return OpenedLog(found.append, found.read)

    async def bounds(self, log: str) -> Bounds:
        return self._find(log).bounds

    async def find_time(self, log: str, ms: int, start: int = 0) -> ReadResult:
        return await self._find(log).read(start, 0, 0)

    async def truncate(self, log: str, end: int) -> Bounds:
        return await self.bounds(log)

    async def delete_records(self, log: str, start: int) -> Bounds:
        return await self.bounds(log)

    async def apply_retention(
        self, log: str, *, older_than: int | None = None, larger_than: int | None = None
    ) -> Bounds:
        return await self.bounds(log)

    async def close_idle(self, wanted: Callable[[str], bool] | None = None) -> None: ...

    async def drop(self, log: str) -> None:
        self._logs.pop(log, None)

    async def load(self, key: str) -> bytes | None:
        return self._values.get(key)

    async def save(self, key: str, value: bytes | None, expected: bytes | None, *others: CompareAndSet) -> bool:
        changes = (CompareAndSet(key, value, expected), *others)
        if any(self._values.get(change.key) != change.expected for change in changes):
            return False
        for change in changes:
            if change.value is None:
                self._values.pop(change.key, None)
            else:
                self._values[change.key] = change.value
        return True

    async def scan(self, prefix: str) -> dict[str, bytes]:
        return {key: value for key, value in sorted(self._values.items()) if key.startswith(prefix)}
