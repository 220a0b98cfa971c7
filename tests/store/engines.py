"""Ways to get a store, for tests that know nothing else of it."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from korvet_fast.store.embedded.store import EmbeddedStore
from korvet_fast.store.interface import Store
from store.faulty import Faulty, Plan

SEED = int(os.environ.get("KORVET_TEST_SEED", "20260101"))


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
