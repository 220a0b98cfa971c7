"""Turns of the loop and of a lock in virtual time: whatever clients do, each has its turns, in a bounded time."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from korvet_fast.core import fair_lock, fair_queue
from korvet_fast.core.fair_lock import ChangeLock
from korvet_fast.core.fair_queue import LEVELS, LONGEST, FairQueue, Turns
from twin.profile import examples

ADDRESSES, EACH = 3, 3  # and connections of each
LONG = 0.004  # seconds that the longest work takes
NUMBERS = st.integers(0, ADDRESSES * EACH - 1)  # of connections; each third is of the same address
SECONDS = st.floats(0.00001, LONG)
USES = st.sampled_from([0.0, *(limit * 1.5 for limit in LEVELS)])  # seconds: one of each level


class Address:
    """The address that several connections share."""


class VirtualLoop(RuleBasedStateMachine):
    """An event loop whose turns are rules, and a clock that stands still between them."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1.0
        self.passed = 0  # turns of the loop
        self.addresses = [Address() for _ in range(ADDRESSES)]
        self.tasks: list[asyncio.Task[None]] = []
        self.cancelled: set[asyncio.Task[None]] = set()
        self.failures: list[object] = []
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(lambda _, context: self.failures.append(context))
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(fair_queue, "monotonic", lambda: self.now)
        self.patch.setattr(fair_lock, "monotonic", lambda: self.now)
        self.patch.setattr(fair_queue, "thread_time", lambda: self.now)

    @rule()
    def take_turn(self) -> None:
        """One turn of the loop."""
        self.passed += 1
        self.loop.call_soon(self.loop.stop)
        self.loop.run_forever()
        assert not self.failures

    @rule(seconds=st.sampled_from([0.0001, 0.003, 0.5]))
    def let_time_pass(self, seconds: float) -> None:
        self.now += seconds

    @precondition(lambda self: self.tasks)
    @rule(which=st.integers(0))
    def cancel(self, which: int) -> None:
        task = self.tasks[which % len(self.tasks)]
        if task.cancel():
            self.cancelled.add(task)

    def teardown(self) -> None:
        try:
            for task in self.tasks:
                assert task.done()
                assert task.cancelled() == (task in self.cancelled)
                assert task.cancelled() or isinstance(task.exception(), ZeroDivisionError | None)
        finally:
            self.loop.close()
            self.patch.undo()


@dataclass
class Client:
    """A connection, and the numbers of its works that wait.

    Of the first of them: `light`: its client had used little when it came; `begun`, `done`: turns of the loop, and
    works of all, that there had been; `ahead`: connections of its address that waited, itself included; for a light
    one, only those that had used little.
    """

    address: int
    turns: Turns
    waiting: deque[int] = field(default_factory=deque)
    light: bool = False
    begun: int = 0
    done: int = 0
    ahead: int = 0


class QueueMachine(VirtualLoop):
    """Clients of three addresses have works put off, wait in tasks that are cancelled, and come again as new ones."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = FairQueue()
        self.done = 0  # works of all
        self.asked = 0  # works of all
        addresses = self.addresses * EACH
        self.all = [Client(number % ADDRESSES, Turns(self.queue, one)) for number, one in enumerate(addresses)]

    def ask(self, client: Client) -> int:
        self.asked += 1
        client.waiting.append(self.asked)
        if len(client.waiting) == 1:
            self.begin(client, light=client.turns.is_light(self.now))
        return self.asked

    def begin(self, client: Client, *, light: bool) -> None:
        client.begun, client.done, client.light = self.passed, self.done, light
        ahead = [one for one in self.all if one.waiting and one.address == client.address]
        client.ahead = sum(not light or one.turns.is_light(self.now) for one in ahead)

    def do(self, client: Client, number: int, seconds: float) -> None:
        assert client.waiting.popleft() == number, "the works of one client keep their order, and each is done once"
        turns, works = self.passed - client.begun, self.done - client.done
        assert turns <= ADDRESSES * client.ahead  # each turn has a light one and another one, by address
        assert works <= turns + 1 + ADDRESSES * client.ahead or not client.light
        self.now += seconds
        self.done += 1
        self.begin(client, light=False)  # whether it still is, is known after its use was counted

    def put_off(self, client: Client, seconds: float, then: Callable[[], None] | None = None) -> None:
        number = self.ask(client)

        def work() -> None:
            self.do(client, number, seconds)
            if then is not None:
                then()

        client.turns.put_off(work)

    @rule(number=NUMBERS, seconds=SECONDS)
    def ask_for_a_turn(self, number: int, seconds: float) -> None:
        self.loop.call_soon(self.put_off, self.all[number], seconds)

    @rule(number=NUMBERS, seconds=SECONDS)
    def wait_in_a_task(self, number: int, seconds: float) -> None:
        client = self.all[number]

        async def wait() -> None:
            asked = self.ask(client)
            try:
                await client.turns.wait()
            finally:  # who is cancelled has its turn first
                self.do(client, asked, seconds)

        self.tasks.append(self.loop.create_task(wait()))

    @rule(number=NUMBERS, seconds=USES)
    def use(self, number: int, seconds: float) -> None:
        if not self.all[number].waiting:
            self.all[number].turns.use(seconds)

    @rule(address=st.integers(0, ADDRESSES - 1), used=USES, seconds=SECONDS, times=st.integers(1, 60))
    def come_again(self, address: int, used: float, seconds: float, times: int) -> None:
        """Ever new connections of an address have a work each, and no use but what they begin with."""

        def come(left: int) -> None:
            client = Client(address, Turns(self.queue, self.addresses[address]))
            client.turns.use(used)
            self.all.append(client)
            self.put_off(client, seconds, (lambda: come(left - 1)) if left else None)

        self.loop.call_soon(come, times)

    @rule()
    def take_turn(self) -> None:
        before = self.now
        super().take_turn()
        assert self.now - before <= LONGEST + 2 * LONG, "the sockets are served between"

    def teardown(self) -> None:
        """Each turn does one work at least, after the first, in which tasks begin to wait."""
        self.take_turn()
        while (done := self.done) < self.asked:
            self.take_turn()
            assert self.done > done
        self.take_turn()
        super().teardown()


class LockMachine(VirtualLoop):
    """Clients of three addresses take a lock, and let it go: they have done, they failed, or they were cancelled."""

    def __init__(self) -> None:
        super().__init__()
        lock = ChangeLock()
        self.changers = [lock.open(self.addresses[number % ADDRESSES]) for number in range(ADDRESSES * EACH)]
        self.orders: list[list[int]] = [[] for _ in self.changers]
        self.asked = 0
        self.holds: asyncio.Future[None] | None = None

    @rule(number=NUMBERS)
    def change(self, number: int) -> None:
        self.asked += 1
        self.tasks.append(self.loop.create_task(self.hold(number, self.asked)))

    async def hold(self, number: int, asked: int) -> None:
        async with self.changers[number].turn():
            assert self.holds is None
            self.holds = self.loop.create_future()
            self.orders[number].append(asked)
            try:
                await self.holds
            finally:
                self.holds = None

    @rule(seconds=SECONDS, fails=st.booleans())
    def let_go(self, seconds: float, fails: bool) -> None:
        if self.holds is not None and not self.holds.done():
            self.now += seconds
            if fails:
                self.holds.set_exception(ZeroDivisionError())
            else:
                self.holds.set_result(None)

    @invariant()
    def changes_of_a_client_keep_their_order(self) -> None:
        assert all(order == sorted(order) for order in self.orders)

    def teardown(self) -> None:
        """Whoever waits has the lock when those before have let it go."""
        for _ in range(8 * len(self.tasks)):
            self.let_go(0.001, fails=False)
            self.take_turn()
        super().teardown()


TestQueue = QueueMachine.TestCase
TestQueue.settings = examples(100)
TestLock = LockMachine.TestCase
TestLock.settings = examples(100)
