"""Producer ids: no broker of a store gives one out that was given out before."""

import asyncio

from korvet_fast.core.generation import StoreGeneration
from korvet_fast.store.interface import KeyStore

_KEY = "producers"  # registry key: the first number not taken by any broker
_BLOCK = 1000  # numbers taken at a time
_SKIPPED = 1_000_000  # numbers left out where the registry may have lost which ones were taken


class ProducerIds:
    """Gives out producer ids, from blocks of numbers taken from the registry."""

    def __init__(self, store: KeyStore, generation: StoreGeneration) -> None:
        self._store = store
        self._generation = generation
        self._free = range(0)
        self._restored_in = generation.number
        self._allotting = asyncio.Lock()

    async def next(self) -> int:
        """A number never given out before. Raises `StoreError`."""
        async with self._allotting:
            if self._restored_in != self._generation.number:
                await self._restore()
            while not self._free:
                taken = await self._take(_BLOCK)
                if self._restored_in == self._generation.number:
                    self._free = taken
                else:  # the history broke meanwhile: these may have been taken before
                    await self._restore()
            first = self._free[0]
            self._free = self._free[1:]
            return first

    async def restore(self) -> None:
        """If the server's history broke, make the registry leave out the ids that may have been given out before."""
        if self._restored_in != self._generation.number:
            async with self._allotting:
                await self._restore()

    async def _restore(self) -> None:
        number = self._generation.number
        if self._restored_in != number:
            await self._take(_SKIPPED)
            self._restored_in = number

    async def _take(self, many: int) -> range:
        store = self._store
        while True:
            known = await store.load(_KEY)
            first = max(int(known or b"0"), self._free.stop)
            if await store.save(_KEY, b"%d" % (first + many), known):
                return range(first, first + many)
