"""Ways to get a store, for tests that know nothing else of it."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, Protocol

from korvet_fast.store.embedded.store import EmbeddedStore
from korvet_fast.store.interface import Store
from korvet_fast.store.redis.connection.url import parse_url
from korvet_fast.store.redis.store import RedisStore
from korvet_fast.store.types import WHOLE, LogFormat
from korvet_fast.store.workers.store import WorkerStore
from store.faulty import Faulty, Plan
from store.scene import Scene

SEED = int(os.environ.get("KORVET_TEST_SEED", "20260101"))
NOW = 1_700_000_000_000  # ms: where offsets begin that follow the clock

_numbers = count()


class Maker(Protocol):
    """Stores over one place."""

    log_format: LogFormat  # of logs
    origin: int  # the offset at which tests begin to write
    rewinds: bool  # what is at the end can be taken away

    def make(self, **options: Any) -> Store:
        """A store that is not open."""

    def crash(self, store: Any) -> None:
        """End a store as the death of the process would: nothing is flushed, nothing is said."""

    async def discard(self, store: Any) -> None:
        """The files left of a store that has crashed."""


class EmbeddedEngine:
    """Embedded stores over one directory."""

    log_format = WHOLE
    origin = 0
    rewinds = True

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def make(self, **options: Any) -> EmbeddedStore:
        """A store that is not open."""
        return EmbeddedStore(self.directory, **options)

    def crash(self, store: EmbeddedStore) -> None:
        """See `Maker.crash`."""
        store._release()

    async def discard(self, store: EmbeddedStore) -> None:
        """Nothing is left."""


class WorkersEngine:
    """Stores of the worker 1 over one directory."""

    log_format = WHOLE
    origin = 0
    rewinds = True

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def make(self, **options: Any) -> WorkerStore:
        """A store that is not open."""
        return WorkerStore(self.directory, 1, self.directory / "locks", **options)

    def crash(self, store: WorkerStore) -> None:
        """See `Maker.crash`."""
        store._release()

    async def discard(self, store: WorkerStore) -> None:
        """Nothing is left."""


class RedisEngine:
    """Redis stores over one namespace of a server."""

    rewinds = False

    def __init__(self, url: str, log_format: LogFormat) -> None:
        self.url = url
        self.log_format = log_format
        self.origin = NOW << log_format.bits if log_format.entries_layout else 0
        self.namespace = f"test{next(_numbers)}"
        self.timeout = 5.0  # seconds that an answer may take

    def make(self, **_: Any) -> RedisStore:
        """A store that is not open; options that are of files mean nothing here."""
        return RedisStore(parse_url(f"{self.url}?namespace={self.namespace}&socket_timeout={self.timeout}"))

    def crash(self, store: RedisStore) -> None:
        """See `Maker.crash`."""
        store.abort_appends()

    async def discard(self, store: RedisStore) -> None:
        """End its connections."""
        await store.close()


class Engine:
    """One way to get a store; tests know nothing else of it."""

    def __init__(self, maker: Maker, seed: int | None) -> None:
        self.rewinds = maker.rewinds
        self._maker = maker
        self._seed = seed
        self._inner: Store | None = None

    @asynccontextmanager
    async def scene(self, **options: Any) -> AsyncIterator[Scene]:
        """An open store, closed at the end unless it has crashed."""
        plan = options.pop("plan", None) or (None if self._seed is None else Plan(self._seed))
        inner = self._inner = self._maker.make(**options)
        store: Store = inner if plan is None else Faulty(inner, plan)
        assert {spent.count for spent in store.read_times() if spent is not None} == {0}
        await store.open()
        try:
            yield Scene(store, self._maker.log_format, self._maker.origin)
        finally:
            if self._inner is inner:
                self._inner = None
                await store.close()
            else:
                await self._maker.discard(inner)

    def crash(self) -> None:
        """Let the store that is open die."""
        assert self._inner is not None
        self._maker.crash(self._inner)
        self._inner = None
