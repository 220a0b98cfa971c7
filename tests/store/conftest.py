"""The engines that the contract is tested on, and tests that are coroutines."""

import asyncio
import inspect
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from korvet_fast.store.embedded.store import EmbeddedStore
from korvet_fast.store.interface import Store
from store.faulty import Faulty, Plan


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test that is a coroutine runs in a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


class EmbeddedEngine:
    """Embedded stores over one directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def make(self, **options: Any) -> EmbeddedStore:
        """A store that is not open."""
        return EmbeddedStore(self.directory, **options)

    def crash(self, store: EmbeddedStore) -> None:
        """End a store as the death of the process would: nothing is flushed, nothing is said."""
        store._let_go()


class Engine:
    """One way to get a store; tests know nothing else of it."""

    def __init__(self, embedded: EmbeddedEngine, seed: int | None) -> None:
        self._embedded = embedded
        self._seed = seed
        self._inner: EmbeddedStore | None = None

    @asynccontextmanager
    async def store(self, **options: Any) -> AsyncIterator[Store]:
        """An open store, closed at the end unless it has crashed."""
        inner = self._inner = self._embedded.make(**options)
        store: Store = inner if self._seed is None else Faulty(inner, Plan(self._seed))
        await store.open()
        try:
            yield store
        finally:
            if self._inner is inner:
                self._inner = None
                await store.close()

    def crash(self) -> None:
        """Let the store that is open die."""
        assert self._inner is not None
        self._embedded.crash(self._inner)
        self._inner = None


SEED = int(os.environ.get("KORVET_TEST_SEED", "20260101"))


@pytest.fixture(params=["embedded", "embedded-faulty"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    """Every engine, and every engine again behind delays (their seed: KORVET_TEST_SEED)."""
    faulty = request.param.endswith("faulty")
    if faulty:
        print(f"KORVET_TEST_SEED={SEED}")
    return Engine(EmbeddedEngine(tmp_path / "data"), SEED if faulty else None)


@pytest.fixture
def embedded(tmp_path: Path) -> EmbeddedEngine:
    """The embedded engine alone, for what only files can suffer."""
    return EmbeddedEngine(tmp_path / "data")
