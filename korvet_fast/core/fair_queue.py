"""Turns of the event loop, dealt out fairly among clients: long work is cut into slices, and others go first.

A work is a callback that was put off; its client is a connection. In each turn of the loop such works run for some 2
ms, or for as long as the sockets took since, up to 8 ms; then the loop serves sockets again. Clients that used less of
the loop lately go first, in a few levels; in one level addresses take turns, then the connections of one, with one work
each. Every turn serves a client of a level above the first as well, so no client waits for ever.
"""

import asyncio
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence
from time import monotonic, thread_time
from typing import Any, Final, TypeVar

from korvet_fast.core.address_line import AddressLine
from korvet_fast.core.signal import Signal

SLICE: Final = 0.001  # seconds that one client's work may hold the loop at a time
TURN: Final = 0.002  # seconds of each turn of the loop for works that were put off
LONGEST: Final = 0.008  # seconds for them in a turn whose other part, which serves sockets, takes as long
NOTED: Final = 0.00025  # seconds of use that do not count: most requests are done within this
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
    """Works that were put off."""

    def __init__(self) -> None:
        self._lines = [AddressLine[Turns]() for _ in range(len(LEVELS) + 1)]
        self._late = 0  # the line above the first that was served out of order last
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
        self._lines[client.level(now)].append(client.address, client)

    def _next_turn(self) -> None:
        self._counting = False
        self.spent = 0.0

    def _run(self) -> None:
        self.spent = self._expected = 0.0
        self._processor_time()
        now = monotonic()
        # As long as the sockets had: of many clients that used much, one a turn would not do where a turn takes 8 ms.
        until = now + min(max(TURN, now - self._ended), LONGEST)
        first, served = self._lines[0], False
        line = self._take_late() or self._first_line()
        while line is not None and (
            (now + self._expected < until and self._expected < TURN) or (line is first and not served)
        ):
            served = served or line is first
            client = line.popleft()
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
            line = self._first_line()
        self._ended = now
        self._go_on()
        if not self._running:
            self.count(0.0)

    def _first_line(self) -> AddressLine["Turns"] | None:
        """The line of those that used least."""
        return next(filter(None, self._lines), None)

    def _take_late(self) -> AddressLine["Turns"] | None:
        """A line above the first, each in its turn: or their clients might never have one."""
        for _ in LEVELS:
            self._late = self._late % len(LEVELS) + 1
            if self._lines[self._late]:
                return self._lines[self._late]
        return None

    def _go_on(self) -> None:
        self._running = self._first_line() is not None
        if self._running:
            asyncio.get_running_loop().call_soon(self._run)


class Turns:
    """One client's works in the queue, and how much of the loop's time it used lately.

    `address`: an object that all clients of one address have in common; None: this client is alone at its own.
    """

    __slots__ = ("_address", "_at", "_queue", "_used", "works")

    def __init__(self, queue: FairQueue, address: object = None) -> None:
        self._queue = queue
        self._address = address
        self._used = 0.0
        self._at = 0.0
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
        if now - since > NOTED and (used := self._queue.note(now - since)) > NOTED:
            self._used = self._fade(now) + used
        return now

    def must_wait(self, now: float) -> bool:
        """Whether the others go first: this client used much, and this turn of the loop has been long already."""
        return self._queue.spent > TURN and not self.is_light(now)

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
