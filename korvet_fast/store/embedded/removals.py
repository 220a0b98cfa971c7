"""One removal of records at a time in each log: one that waits long for its flushes keeps no other log waiting."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from weakref import WeakValueDictionary


class Removals:
    """Locks of logs, by name; a lock is there while somebody has it or waits for it."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def lock(self, log: str) -> asyncio.Lock:
        """Held while records of the log are removed."""
        lock = self._locks.get(log)
        if lock is None:
            lock = self._locks[log] = asyncio.Lock()
        return lock

    def under_way(self, log: str) -> bool:
        """Whether records of the log are being removed."""
        lock = self._locks.get(log)
        return lock is not None and lock.locked()

    @asynccontextmanager
    async def stop(self, logs: Collection[str]) -> AsyncIterator[None]:
        """Wait for the removals of all `logs`, which may grow meanwhile; inside the context none begins."""
        async with AsyncExitStack() as held:
            stopped: set[str] = set()
            while fresh := set(logs) - stopped:
                for log in fresh:
                    await held.enter_async_context(self.lock(log))
                stopped |= fresh
            yield
