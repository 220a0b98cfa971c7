"""Which worker owns a log, and so may write its files: a key of the registry for each log.

logs/orders:0    number of the worker, token of its process, leader epoch; number 0: nobody, the log was given up

A name in a key holds for as long as the process has its byte (locks.py). So one lock of the kernel's stands for all
logs that name a process, and none of them can have another owner while it lives, unless it gives the log up itself.
"""

import asyncio
from typing import Final, NamedTuple

from korvet_fast.errors import StoreError
from korvet_fast.store.types import CompareAndSet
from korvet_fast.store.workers.keys import PATIENCE, WorkerKeys
from korvet_fast.store.workers.locks import ByteLocks

PREFIX: Final = "logs/"
_AGAIN = 0.02  # seconds before a worker is asked again to give up a log
_NOBODY = 0


class Owner(NamedTuple):
    """The owner of a log, or the last one."""

    number: int = _NOBODY
    token: str = "-"  # noqa: S105  (names a process, opens nothing)
    epoch: int = -1

    def write(self) -> bytes:
        """The value of the log's key."""
        return f"{self.number} {self.token} {self.epoch}".encode()


def read_owner(value: bytes | None) -> Owner:
    """The owner that `Owner.write` wrote."""
    if value is None:
        return Owner()
    number, token, epoch = value.decode().split()
    return Owner(int(number), token, int(epoch))


class Owners:
    """The owners of logs, as the worker `number` with this token sees and changes them."""

    def __init__(self, keys: WorkerKeys, locks: ByteLocks, number: int, token: str) -> None:
        self._keys = keys
        self._locks = locks
        self._number = number
        self._token = token

    def is_elsewhere(self, owner: Owner) -> bool:
        """Whether another process owns the log, and may be alive."""
        mine = owner[:2] == (self._number, self._token)
        return owner.number != _NOBODY and not mine and self._locks.has(owner.number, owner.token)

    async def find(self, log: str) -> Owner:
        """The owner of a log. Raises `StoreError`."""
        return read_owner(await self._keys.load(PREFIX + log))

    async def acquire(self, log: str, epoch: int) -> int:
        """Make this worker the owner, under the epoch that is returned: `epoch`, or more.

        Another worker that owns the log is asked to give it up. Raises `StoreError` if it does not.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + PATIENCE
        while True:
            present = await self._keys.load(PREFIX + log)
            owner = read_owner(present)
            if self.is_elsewhere(owner):
                if loop.time() > deadline:
                    raise StoreError(f"{log} belongs to worker {owner.number}, which does not give it up")
                await self._ask_for(log, owner, deadline - loop.time())
                continue
            mine = Owner(self._number, self._token, max(epoch, owner.epoch + 1))
            if await self._keys.save(CompareAndSet(PREFIX + log, mine.write(), present)):
                return mine.epoch

    async def _ask_for(self, log: str, owner: Owner, left: float) -> None:
        asking = asyncio.get_running_loop().create_task(self._keys.release(owner.number, log))
        await asyncio.wait([asking], timeout=left)
        if not asking.done():
            asking.cancel()
            raise StoreError(f"{log} belongs to worker {owner.number}, which does not answer")
        asking.result()
        if await self.find(log) == owner:
            await asyncio.sleep(_AGAIN)  # it is not connected yet, or is about to take the log itself

    async def release(self, log: str) -> None:
        """Let others have a log; nothing happens if this worker does not own it. Raises `StoreError`."""
        await self._replace(log, keep_epoch=True)

    async def forget(self, log: str) -> None:
        """The log is no more: take its key away, if it names this worker. Raises `StoreError`."""
        await self._replace(log, keep_epoch=False)

    async def _replace(self, log: str, *, keep_epoch: bool) -> None:
        present = await self._keys.load(PREFIX + log)
        owner = read_owner(present)
        if owner[:2] == (self._number, self._token):
            value = Owner(epoch=owner.epoch).write() if keep_epoch else None
            await self._keys.save(CompareAndSet(PREFIX + log, value, present))
