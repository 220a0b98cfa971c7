"""A lock that clients take in turns: first the addresses they come from, then the connections of one address.

asyncio's lock serves the first that came: one change of a client waited 9 s behind 3,000 changes of 50 connections.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic
from weakref import WeakKeyDictionary

from korvet_fast.core.fair_queue import FairQueue, Turns


class FairLock(FairQueue):
    """One work at a time, until it lets go. Every other time, the client that held the lock least lately goes first."""

    def __init__(self) -> None:
        super().__init__()
        self._holder: Turns | None = None
        self._since = 0.0
        self._late_next = False

    @asynccontextmanager
    async def hold(self, client: Turns) -> AsyncIterator[None]:
        """Wait for this client's turn, which lasts until the end of the block. `client`: turns of this lock."""
        try:
            if self._running:
                await client.wait()
            else:  # nobody has it, and nobody waits
                self._running = True
                client.works.append(_go_on_at_once)
                self._begin(client)
            yield
        finally:
            if self._holder is client:  # else the loop ends before its turn came
                self._release(client)

    def _run(self) -> None:
        client = (self._take_late() if self._late_next else None) or self._take_first()
        assert client is not None
        self._late_next = not self._late_next
        self._begin(client)
        client.works[0]()

    def _begin(self, client: Turns) -> None:
        self._holder = client
        self._since = monotonic()

    def _release(self, client: Turns) -> None:
        self._holder = None
        client.works.popleft()
        now = monotonic()
        client.use(now - self._since)
        if client.works:
            self._place(client, now)
        self._go_on()


def _go_on_at_once() -> None:
    """Does nothing: stands for the waiter of a work that did not have to wait."""


class _Address:
    """The connections of one address: they take turns among themselves, and together have one of all."""

    __slots__ = ("lock", "turns")

    def __init__(self, lock: FairLock) -> None:
        self.lock = FairLock()
        self.turns = Turns(lock)


class ChangeLock:
    """One change at a time."""

    def __init__(self) -> None:
        self._lock = FairLock()
        self._addresses: WeakKeyDictionary[object, _Address] = WeakKeyDictionary()

    def open(self, address: object) -> "Changer":
        """Make a connection's changer. `address`: an object that all connections of one address have in common."""
        found = self._addresses.get(address)
        if found is None:
            found = self._addresses[address] = _Address(self._lock)
        return Changer(self._lock, found)


class Changer:
    """Somebody who changes things now and then: a connection, or the broker itself. These changes keep their order."""

    __slots__ = ("_address", "_lock", "_turns")

    def __init__(self, lock: FairLock, address: _Address) -> None:
        self._lock = lock
        self._address = address
        self._turns = Turns(address.lock)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait until no other change is under way and it is this one's turn; others wait until the end of the block.

        Not within another one of the same lock: it would never come.
        """
        address = self._address
        async with address.lock.hold(self._turns), self._lock.hold(address.turns):
            yield
