"""A connection as its session sees it: turns of the loop, and memory for answers."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from korvet_fast.core.fair_queue import FairQueue, Turns
from korvet_fast.net.pool import SMALL, Account, AddressAccount, Charge, Pool

LEAST: Final = SMALL  # bytes that every answer may take


class Client:
    """The `Client` of `core.client_session`.

    `starting`: a request has begun and has waited for nothing yet. `asked`: bytes that its answer may take. `released`:
    bytes reserved for the answer of the request that ends now; they are held until the answer is counted. `muting`: has
    the connection start nothing for so many seconds; None when it is lost.
    """

    __slots__ = (
        "_held",
        "_pool",
        "_waiters",
        "account",
        "asked",
        "encrypted",
        "muting",
        "released",
        "starting",
        "turns",
    )

    def __init__(self, queue: FairQueue, pool: Pool, account: Account, *, encrypted: bool = False) -> None:
        self.encrypted = encrypted
        self.muting: Callable[[float], None] | None = None
        self.turns = Turns(queue, account.address)
        self.starting = False
        self._pool = pool
        self.account = account
        self.asked = 0
        self._held = 0  # bytes held for the answers of requests that wait
        self._waiters: set[asyncio.Future[None]] = set()
        self.released: list[Charge] = []

    @property
    def address(self) -> AddressAccount:
        """See `core.client_session.Client`."""
        return self.account.address

    @property
    def waits(self) -> bool:
        """Whether a request waits for memory for its answer."""
        return bool(self._waiters)

    def answer_room(self) -> int:
        """See `core.client_session.Client`. The pool holds nothing for a request that ends without waiting."""
        if self.asked or self._held:
            return LEAST
        room = self._pool.answer_room()
        self.asked = room
        if not self.starting:
            self.hold_room()
        return room

    def hold_room(self) -> None:
        """Hold the bytes that a request asked for: it did not end at once."""
        if self.asked:
            self._held, self.asked = self.asked, 0
            self._pool.hold(self.account, self._pool.of_answer(self._held), self._held)

    def free_room(self) -> None:
        """Give back the bytes held for an answer: its request ended, and did not end at once."""
        if self._held:
            size, self._held = self._held, 0
            self.release(size)

    def take_released(self) -> list[Charge]:
        """Take the charges that were reserved for an answer; the answer itself is counted now."""
        charges, self.released = self.released, []
        return charges

    def reserve(self, size: int) -> "asyncio.Future[None] | None":
        """See `core.client_session.Client`."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def grant() -> None:
            self._waiters.discard(waiter)
            waiter.set_result(None)

        if self._pool.reserve(self.account, self._pool.of_answer(size), size, grant):
            return None
        self._waiters.add(waiter)
        return waiter

    def release(self, size: int) -> None:
        """See `core.client_session.Client`. The request ends with this: `RequestQueue` counts its reply right after."""
        self.released.append((self._pool.of_answer(size), size))

    def hold(self, size: int, late: "asyncio.Future[Any]") -> None:
        """See `core.client_session.Client`."""
        kind = self._pool.of_frame(size) if size > SMALL else None
        self._pool.hold(self.account, kind, size)
        late.add_done_callback(lambda _: self._pool.give_back(self.account, [(kind, size)]))

    def mute(self, seconds: float) -> None:
        """See `core.client_session.Client`."""
        if self.muting is not None:
            self.muting(seconds)

    def cancel(self) -> None:
        """Cancel the waits for memory: the connection is lost, and the pool has forgotten it."""
        self.muting = None
        for waiter in self._waiters:
            waiter.cancel()
