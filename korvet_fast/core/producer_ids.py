"""Numbers for idempotent producers, none of them given out twice by all brokers of a store."""

import asyncio

from korvet_fast.core.host import Host

_KEY = "producers"  # registry key: the first number not taken by any broker
_BLOCK = 1000  # numbers taken at a time
_LEAP = 1_000_000  # numbers left out where the registry may have forgotten whom it gave some


class ProducerIds:
    """Takes blocks of numbers from the registry."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._free = range(0)
        self._forks = host.forks
        self._allotting = asyncio.Lock()

    async def next(self) -> int:
        """A number never given out before. Raises `StoreError`."""
        async with self._allotting:
            await self._restore()
            if not self._free:
                self._free = await self._take(_BLOCK)
            first = self._free[0]
            self._free = self._free[1:]
            return first

    async def restore(self) -> None:
        """If the server's history broke, make the registry leave out what it may have given out before."""
        if self._forks != self._host.forks:
            async with self._allotting:
                await self._restore()

    async def _restore(self) -> None:
        forks = self._host.forks
        if self._forks != forks:
            await self._take(_LEAP)
            self._forks = forks

    async def _take(self, many: int) -> range:
        store = self._host.store
        while True:
            known = await store.load(_KEY)
            first = max(int(known or b"0"), self._free.stop)
            if await store.save(_KEY, b"%d" % (first + many), known):
                return range(first, first + many)
