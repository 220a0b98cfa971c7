"""The pool by itself: bounded, fair, and somebody always gets on."""

from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from korvet_fast.net.pool import SMALL, Account, Charge, Kind, Pool
from korvet_fast.net.receive import Receive

LIMIT = 64 * SMALL


def make_pool() -> Pool:
    return Pool(LIMIT, lambda: None)


@dataclass
class Client:
    """A connection with at most one request: its frame arrives, decodes into work, gets an answer, which is taken."""

    pool: Pool
    account: Account
    stage: int = 0
    waits: bool = False
    held: list[Charge] = field(default_factory=list)
    wanted: Charge = (None, 0)

    def ask(self, kind: Kind, size: int) -> None:
        self.wanted = (kind, size)
        self.waits = not self.pool.reserve(self.account, kind, size, self.grant)
        if not self.waits:
            self.grant()

    def grant(self) -> None:
        self.waits = False
        self.held.append(self.wanted)
        self.stage += 1

    def go_on(self, size: int) -> None:
        """The next step of its request."""
        if self.stage == 0:
            self.ask(self.pool.of_frame(size), size)
        elif self.stage == 1:
            self.ask(self.pool.of_work(size), size)
        elif self.stage == 2:
            self.ask(self.pool.of_answer(size), size)
        else:
            self.end()

    def end(self) -> None:
        self.stage = 0
        self.waits = False
        held, self.held = self.held, []
        self.pool.give_back(self.account, held)


class PoolMachine(RuleBasedStateMachine):
    """Clients of three addresses do whatever they like."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = make_pool()
        self.clients = [Client(self.pool, self.pool.open(f"address {number % 3}")) for number in range(9)]

    @rule(which=st.integers(0, 8), size=st.one_of(st.integers(SMALL, 4 * SMALL), st.integers(1, 2 * LIMIT)))
    def step(self, which: int, size: int) -> None:
        if not self.clients[which].waits:
            self.clients[which].go_on(size)

    @rule(which=st.integers(0, 8))
    def lose(self, which: int) -> None:
        client = self.clients[which]
        self.pool.forget(client.account, lambda: None)
        client.end()

    @precondition(lambda self: any(client.waits for client in self.clients))
    @rule()
    def somebody_always_gets_on(self) -> None:
        """While those who do not wait end what they hold, everybody who waits is served."""
        for _ in range(100):
            if not any(client.waits for client in self.clients):
                return
            for client in self.clients:
                if not client.waits:
                    client.end()
        raise AssertionError("somebody waits for ever")

    @invariant()
    def all_is_counted(self) -> None:
        held = [charge for client in self.clients for charge in client.held]
        assert self.pool.used == sum(size for _, size in held)
        for kind in self.pool._kinds:
            assert kind.used == sum(size for each, size in held if each is kind)
        for client in self.clients:
            assert client.account.held == sum(size for _, size in client.held)

    @invariant()
    def what_is_held_is_bounded(self) -> None:
        """By the limit, and one reservation each of large frames, work and answers."""
        largest = [
            max((size for client in self.clients for each, size in client.held if each is kind), default=0)
            for kind in (self.pool.large_frames, self.pool.large_work, self.pool.large_answers)
        ]
        assert self.pool.used <= LIMIT + sum(largest)
        assert self.pool.frames.used <= LIMIT * 3 // 4

    @invariant()
    def nobody_waits_beside_room(self) -> None:
        for kind in self.pool._kinds:
            assert not kind or not self.pool._fits(kind, kind.first().size)


TestPool = PoolMachine.TestCase
TestPool.settings = settings(deadline=None, max_examples=100, stateful_step_count=40)


def wait_in_line(pool: Pool, account: Account, size: int, served: list[Account], many: int = 1) -> None:
    for _ in range(many):
        assert not pool.reserve(account, pool.frames, size, lambda: served.append(account))


def test_addresses_take_turns_and_then_their_connections() -> None:
    pool = make_pool()
    size = LIMIT // 16
    filling = pool.open("filling")
    pool.hold(filling, pool.frames, LIMIT)
    one, other, lone = pool.open("a"), pool.open("a"), pool.open("b")
    served: list[Account] = []
    wait_in_line(pool, one, size, served, 3)
    wait_in_line(pool, other, size, served)
    wait_in_line(pool, lone, size, served)
    pool.give_back(filling, [(pool.frames, LIMIT)])
    assert served == [one, lone, other, one, one]


def test_who_holds_much_is_passed_over_but_not_for_ever() -> None:
    pool = make_pool()
    size = LIMIT // 32
    greedy, filling = pool.open("a"), pool.open("b")
    pool.hold(greedy, pool.answers, LIMIT // 8)
    pool.hold(filling, pool.frames, LIMIT)
    served: list[Account] = []
    wait_in_line(pool, greedy, size, served)
    for number in range(20):
        wait_in_line(pool, pool.open(f"modest {number}"), size, served)
    for _ in range(21):
        pool.give_back(filling, [(pool.frames, LIMIT)])
        pool.hold(filling, pool.frames, LIMIT)
    assert len(served) == 21
    assert served.index(greedy) == 16


def test_ordinary_frames_find_their_half_whatever_large_ones_do() -> None:
    pool = make_pool()
    account = pool.open("a")
    assert pool.reserve(account, pool.large_frames, 2 * LIMIT, lambda: None)  # alone
    assert not pool.reserve(account, pool.large_frames, LIMIT // 8, lambda: None)
    for _ in range(8):
        assert pool.reserve(account, pool.frames, LIMIT // 16, lambda: None)
    assert not pool.reserve(account, pool.frames, LIMIT // 16, lambda: None)


@pytest.mark.parametrize("name", ["work", "answers"])
def test_those_who_want_little_do_not_wait_behind_one_who_wants_much(name: str) -> None:
    """Nor does that one wait for all of them: as soon as another large one has gone, there is room."""
    pool = make_pool()
    small, large = getattr(pool, name), getattr(pool, f"large_{name}")
    much, little = pool.open("a"), pool.open("b")
    served: list[Account] = []
    assert pool.reserve(much, large, 2 * LIMIT, lambda: None)  # alone, and more than there is
    assert not pool.reserve(much, large, LIMIT, lambda: served.append(much))
    for _ in range(2):
        assert pool.reserve(little, small, LIMIT // 16, lambda: None)
    assert not pool.reserve(little, small, LIMIT // 16, lambda: served.append(little))
    pool.give_back(little, [(small, LIMIT // 16)])
    assert served == [little]
    pool.give_back(much, [(large, 2 * LIMIT)])
    assert served == [little, much]


def test_slow_takers_of_answers_leave_room_for_others() -> None:
    pool = make_pool()
    rooms = []
    for _ in range(100):
        rooms.append(pool.answer_room())
        pool.hold(pool.open("a"), pool.of_answer(rooms[-1]), rooms[-1])
    assert rooms[0] == LIMIT // 8
    assert rooms[-1] == SMALL
    assert sum(room for room in rooms if room > SMALL) <= LIMIT * 3 // 8


def test_who_holds_little_reads_on_and_others_do_when_there_is_room() -> None:
    pool = make_pool()
    much, little = pool.open("a"), pool.open("b")
    again: list[str] = []
    pool.take(much, LIMIT + SMALL)
    pool.take(little, SMALL)
    assert pool.may_read(little, lambda: again.append("little"))
    assert not pool.may_read(much, lambda: again.append("much"))
    assert pool.short
    pool.take(much, -SMALL)
    assert not again
    pool.take(much, -SMALL)
    assert again == ["much"]
    assert not pool.short


def test_a_frame_that_is_dropped_while_it_waits_is_given_back_as_what_it_was_granted_as() -> None:
    pool = make_pool()
    other, account = pool.open("a"), pool.open("b")
    assert pool.reserve(other, pool.large_frames, LIMIT // 8, lambda: None)
    receive = Receive(pool, account, lambda: None)
    receive.note(100, LIMIT // 4)
    assert receive.waiting
    receive.drop()  # as when its connection is closed, and the peer has not taken the last replies yet
    pool.give_back(other, [(pool.large_frames, LIMIT // 8)])
    receive.drop()
    assert (pool.used, pool.large_frames.used, pool.frames.used, account.held) == (0, 0, 0, 0)
