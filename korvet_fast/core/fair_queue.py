"""Turns of the event loop, dealt out fairly among clients: long work is cut into slices, and others go first.

A work is a callback that was put off; its client is a connection. In each turn of the loop such works run for some 2
ms, or for as long as the sockets took since, up to 8 ms; then the loop serves sockets again. Clients that used less of
the loop lately go first, in a few levels; in one level addresses take turns, then the connections of one, with one work
each. Every turn serves a client of a level above the first as well, so no client waits for ever: there the addresses
take turns whatever their levels, and of one address who came first.
"""

import asyncio
from bisect import bisect_left
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from time import monotonic, thread_time
from typing import Any, Final, TypeVar

from korvet_fast.core.address_line import AddressLine
from korvet_fast.core.signal import Signal

SLICE: Final = 0.001  # seconds that one client's work may hold the loop at a time
TURN: Final = 0.002  # seconds of each turn of the loop for works that were put off
LONGEST: Final = 0.008  # seconds for them in a turn whose other part, which serves sockets, takes as long
WAIT_AFTER: Final = 0.004  # seconds of a turn of the loop after which what clients ask for waits for its own turn
NOTED: Final = 0.00025  # seconds: most requests are done within this
LITTLE: Final = 0.001  # seconds of use that still count as little
# Seconds of use up to which a client goes before those above. With two levels, one that had used 1.3 ms waited behind
# eighty that each used a hundred times as much.
LEVELS: Final = tuple(LITTLE * 2**doubled for doubled in range(7))
_MANY: Final = 200  # short works between two looks at the clock
_FADED: Final = 1.0  # seconds after which use is forgotten but for an eighth

Work = Callable[[], None]
S = TypeVar("S")
R = TypeVar("R")


class FairQueue:
    """Works that were put off. Uses of the loop shorter than `noted` seconds do not count."""

    def __init__(self, noted: float = NOTED) -> None:
        self.noted = noted
        self._lines = [AddressLine[Turns]() for _ in range(len(LEVELS) + 1)]
        # Clients of all lines but the first, by address, in the order in which they came there.
        self._late: OrderedDict[object, OrderedDict[Turns, None]] = OrderedDict()
        self._running = self._working = self._counting = False
        self._processor = 0.0  # seconds that this thread has had a processor, when that was asked last
        self._expected = 0.0  # seconds that works of this turn said they cause after it
        self.spent = 0.0  # seconds of this turn of the loop that were counted
        self._ended = 0.0  # when the works of the turn before ended, monotonic

    def count(self, seconds: float) -> None:
        """This turn of the loop took so much of somebody's work."""
        self.spent += seconds
        if not self._running and not self._counting:
            self._counting = True
            asyncio.get_running_loop().call_soon(self._next_turn)

    def note(self, seconds: float) -> float:
        """Count the time that somebody had the loop; returns how much of it was use. A work's is noted when it ends."""
        if self._working:
            return 0.0
        self.count(seconds)
        return min(seconds, self._processor_time())

    def expect(self, seconds: float) -> None:
        """A work of this turn causes so much more work of the loop, after the turn: fewer others run in it."""
        self._expected += seconds
        self.count(seconds)

    def enter(self, client: "Turns") -> None:
        """`client` has works now, and had none."""
        now = monotonic()
        self._place(client, now)
        if not self._running:
            self._ended = now
            self._go_on()

    def _processor_time(self) -> float:
        """Seconds that this thread had a processor since this was asked last: less than passed on a busy machine."""
        before, self._processor = self._processor, thread_time()
        return self._processor - before

    def _place(self, client: "Turns", now: float) -> None:
        client.line = client.level(now)
        self._lines[client.line].append(client.address, client)
        if client.line:
            self._late.setdefault(client.address, OrderedDict())[client] = None

    def _next_turn(self) -> None:
        self._counting = False
        self.spent = 0.0

    def _run(self) -> None:
        self.spent = self._expected = 0.0
        self._processor_time()
        now = monotonic()
        # As long as the sockets had: of many clients that used much, one a turn would not do where a turn takes 8 ms.
        until = now + min(max(TURN, now - self._ended), LONGEST)
        served = False  # somebody of the first line
        client = self._take_late() or self._take_first()
        while client is not None:
            served = served or not client.line
            self._working = True
            try:
                client.works[0]()
            except Exception as error:  # noqa: BLE001  a bug of ours must not stop everybody else's work
                context = {"message": "a work that was put off failed", "exception": error}
                asyncio.get_running_loop().call_exception_handler(context)
            self._working = False
            client.works.popleft()
            now = client.settle(now)
            if client.works:
                self._place(client, now)
            is_time = now + self._expected < until and self._expected < TURN
            client = self._take_first() if is_time or (self._lines[0] and not served) else None
        self._ended = now
        self._go_on()
        if not self._running:
            self.count(0.0)

    def _take_first(self) -> "Turns | None":
        """One of those that used least."""
        line = next(filter(None, self._lines), None)
        if line is None:
            return None
        client = line.popleft()
        if client.line:
            self._forget_late(client)
        return client

    def _take_late(self) -> "Turns | None":
        """One of those that did not use least: or they might never have a turn."""
        if not self._late:
            return None
        address = next(iter(self._late))
        self._late.move_to_end(address)
        client = next(iter(self._late[address]))
        self._forget_late(client)
        return self._lines[client.line].pop(address)  # it is the first of its address there, too

    def _forget_late(self, client: "Turns") -> None:
        clients = self._late[client.address]
        del clients[client]
        if not clients:
            del self._late[client.address]

    def _go_on(self) -> None:
        self._running = any(self._lines)
        if self._running:
            asyncio.get_running_loop().call_soon(self._run)


class Turns:
    """One client's works in the queue, and how much of the loop's time it used lately.

    `address`: an object that all clients of one address have in common; None: this client is alone at its own. `line`:
    the level in whose line this client waits.
    """

    __slots__ = ("_address", "_at", "_queue", "_used", "line", "works")

    def __init__(self, queue: FairQueue, address: object = None) -> None:
        self._queue = queue
        self._address = address
        self._used = 0.0
        self._at = 0.0
        self.line = 0
        self.works: deque[Work] = deque()

    @property
    def address(self) -> object:
        """The object that stands for the client's address."""
        return self if self._address is None else self._address

    def is_light(self, now: float) -> bool:
        """Whether this client used little of the loop lately."""
        return self._used <= LITTLE or self._fade(now) <= LITTLE

    def level(self, now: float) -> int:
        """How much of the loop this client used lately: an index into the lines of the queue."""
        return 0 if self.is_light(now) else bisect_left(LEVELS, self._used)  # which has faded by `now` there

    def use(self, seconds: float) -> None:
        """This client is about to take so much of the loop."""
        self._used = self._fade(monotonic()) + seconds

    def settle(self, since: float) -> float:
        """This client had the loop since then; returns the present time."""
        now = monotonic()
        if now - since > self._queue.noted and (used := self._queue.note(now - since)) > self._queue.noted:
            self._used = self._fade(now) + used
        return now

    def must_wait(self, now: float) -> bool:
        """Whether the others go first: this client used much, and this turn of the loop has been long already."""
        return self._queue.spent > WAIT_AFTER and not self.is_light(now)

    def put_off(self, work: Work) -> None:
        """Have `work` done in this client's next turn."""
        self.works.append(work)
        if len(self.works) == 1:
            self._queue.enter(self)

    def wait(self) -> "Turn":
        """An awaitable that ends when it is this client's turn again; to be awaited at once."""
        turn = Turn()
        self.put_off(turn.set)
        return turn

    def _fade(self, now: float) -> float:
        if self._used:
            self._used *= 0.125 ** ((now - self._at) / _FADED)
        self._at = now
        return self._used


class Turn(Signal):
    """A waiter for a client's turn; the waiter goes on within the turn."""

    __slots__ = ()

    def cancel(self, msg: object = None) -> bool:
        """A turn comes soon, so a task that is to end waits for it first: a turn that nobody takes would not end."""
        return False


class Pace:
    """Time that one request has held the loop: `if pace.due(): await pace.turn()` in every loop over its rows."""

    __slots__ = ("_turns", "_until")

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._until = monotonic() + SLICE

    def due(self) -> bool:
        """Whether the running handler has to let other clients have a turn."""
        return monotonic() >= self._until

    async def turn(self) -> None:
        """Let the others go first."""
        await self._turns.wait()
        self._until = monotonic() + SLICE

    async def map(self, work: Callable[[S], R], items: Sequence[S]) -> list[R]:
        """Do this with every item, and let the others go first between."""
        results: list[R] = []
        for start in range(0, len(items), _MANY):
            results += map(work, items[start : start + _MANY])
            if self.due():
                await self.turn()
        return results

    async def discard(self, items: list[Any]) -> None:
        """Empty a list whose items nobody else holds: to free a hundred thousand objects at once takes 50 ms."""
        while items:
            del items[-_MANY:]
            if self.due():
                await self.turn()


class BackgroundPace(Pace):
    """A `Pace` for work that belongs to no client: its turn comes after one pass of the event loop."""

    __slots__ = ()

    def __init__(self) -> None:
        self._until = monotonic() + SLICE

    async def turn(self) -> None:
        """Let the others go first."""
        await asyncio.sleep(0)
        self._until = monotonic() + SLICE
