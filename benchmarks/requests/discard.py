"""A store that discards: what a request costs above it is all that is left to measure."""

import asyncio
from collections.abc import Callable, Sequence

from korvet_fast.store.interface import (
    BATCHES,
    LARGE,
    Appending,
    Attached,
    Bounds,
    Change,
    Entry,
    Form,
    Page,
    Piece,
    Stale,
)


def _end_nothing() -> None:
    """What ends a `follow` that has nothing to tell."""


class Discard:
    """A `Store` that keeps of each log its first batch, so that there is something to fetch, and where it ends.

    Everything is stored and durable at once. Keys and values are kept.
    """

    layouts: tuple[str, ...] = (BATCHES,)
    shared = False
    syncs = False

    def __init__(self) -> None:
        self._first: dict[str, bytes] = {}
        self._bounds: dict[str, Bounds] = {}
        self._values: dict[str, bytes] = {}
        self._changes = 0

    async def open(self) -> None:
        done = asyncio.get_running_loop().create_future()
        done.set_result(None)
        self._appended = Appending(done, done)

    async def close(self) -> None:
        """Nothing was kept that could be lost."""

    def listen(self, forked: Callable[[str], None]) -> None:
        """Its history does not break."""

    def declare(self, log: str, form: Form) -> None:
        """There is one form."""

    async def attach(self, log: str, form: Form, *, epoch: int, floor: int) -> Attached:
        bounds = await self.bounds(log)
        return Attached(bounds, epoch, bounds.end, b"")

    def follow(self, log: str, end: int, grown: Callable[[], None]) -> Callable[[], None]:
        return _end_nothing

    def refusal(self, log: str | None, sync: bool, copies: int) -> str | None:
        return None

    async def changed(self, prefix: str) -> int:
        return self._changes

    def append(
        self, log: str, entries: Sequence[Entry], at: int, *, sync: bool, copies: int = 1, piece: Piece = LARGE
    ) -> Appending:
        bounds = self._bounds.get(log)
        if bounds is None:
            self._first[log] = bytes(entries[0].data)
        elif bounds.end != at:
            raise Stale(bounds.end)
        end = entries[-1].last + 1
        self._bounds[log] = Bounds(0, end, end, len(self._first[log]), entries[-1].timestamp)
        return self._appended

    async def read(self, log: str, start: int, max_bytes: int, limit: int) -> Page:
        if start != 0 or log not in self._first:
            return Page([], start)
        return Page([self._first[log]], self._bounds[log].end)

    async def bounds(self, log: str) -> Bounds:
        return self._bounds.get(log, Bounds(0, 0, 0, 0))

    async def find_time(self, log: str, ms: int, start: int = 0) -> Page:
        return await self.read(log, start, 0, 0)

    async def cut(
        self,
        log: str,
        *,
        start: int | None = None,
        end: int | None = None,
        older_than: int | None = None,
        larger_than: int | None = None,
    ) -> Bounds:
        return await self.bounds(log)

    async def drop(self, log: str) -> None:
        self._first.pop(log, None)
        self._bounds.pop(log, None)

    def show(self, log: str, group: str, offset: int | None) -> None:
        """Nobody looks into it."""

    async def load(self, key: str) -> bytes | None:
        return self._values.get(key)

    async def save(self, key: str, value: bytes | None, expected: bytes | None, *others: Change) -> bool:
        changes = (Change(key, value, expected), *others)
        if any(self._values.get(change.key) != change.expected for change in changes):
            return False
        self._changes += 1
        for change in changes:
            if change.value is None:
                self._values.pop(change.key, None)
            else:
                self._values[change.key] = change.value
        return True

    async def scan(self, prefix: str) -> dict[str, bytes]:
        return {key: value for key, value in sorted(self._values.items()) if key.startswith(prefix)}
