"""Turns of the loop: who goes first, how long a turn is, and that everybody has one."""

import asyncio
from collections import Counter
from collections.abc import Callable

import pytest

from korvet_fast.core import fair_queue
from korvet_fast.core.eager import run_inline
from korvet_fast.core.fair_queue import LEVELS, SLICE, TURN, FairQueue, Pace, Turns


class Time:
    """The queue's clocks: what passed, and for how much of it this thread had a processor."""

    passed = processor = 0.0


@pytest.fixture(autouse=True)
def clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time passes when a test says so: a busy machine takes processors away in the middle of a work."""
    monkeypatch.setattr(Time, "passed", 0.0)
    monkeypatch.setattr(Time, "processor", 0.0)
    monkeypatch.setattr(fair_queue, "monotonic", lambda: Time.passed)
    monkeypatch.setattr(fair_queue, "thread_time", lambda: Time.processor)


def wait(seconds: float) -> None:
    Time.passed += seconds


def burn(seconds: float) -> None:
    Time.passed += seconds
    Time.processor += seconds


async def work_on(turns: Turns, many: int, done: list[str], name: str) -> None:
    pace = Pace(turns)
    for _ in range(many):
        burn(SLICE / 2)
        done.append(name)
        if pace.due():
            await pace.turn()


def start(turns: Turns, many: int, done: list[str], name: str) -> "asyncio.Future[None]":
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    run_inline(work_on(turns, many, done, name), lambda _, error: over.set_result(None) if error is None else None)
    return over


def test_long_works_of_two_clients_take_turns() -> None:
    async def scenario() -> None:
        queue, done = FairQueue(), []
        await asyncio.gather(start(Turns(queue), 30, done, "a"), start(Turns(queue), 30, done, "b"))
        longest = max(len(run) for run in "".join(done).replace("ab", "a b").replace("ba", "b a").split())
        assert longest <= 8

    asyncio.run(scenario())


class Freed:
    """Takes a while to be freed, as a long answer does."""

    def __del__(self) -> None:
        burn(SLICE / 100)


def test_others_go_first_while_a_long_list_is_freed() -> None:
    async def discard(turns: Turns, items: list[Freed]) -> None:
        await Pace(turns).discard(items)

    async def scenario() -> None:
        queue, done = FairQueue(), []
        items = [Freed() for _ in range(2000)]
        freeing = asyncio.ensure_future(discard(Turns(queue), items))
        await asyncio.sleep(0)
        await start(Turns(queue), 1, done, "a")
        assert 0 < len(items) < 2000
        await freeing
        assert not items

    asyncio.run(scenario())


def test_a_pace_works_in_a_task_too() -> None:
    async def scenario() -> None:
        done: list[str] = []
        await asyncio.create_task(work_on(Turns(FairQueue()), 10, done, "a"))
        assert len(done) == 10

    asyncio.run(scenario())


def test_who_used_little_goes_before_who_used_much_and_these_get_on_too() -> None:
    async def scenario() -> None:
        queue, order = FairQueue(), []
        over = asyncio.Event()
        heavy = [Turns(queue) for _ in range(20)]
        for turns in heavy:
            turns.use(1.0)
            for _ in range(3):
                turns.put_off(lambda: (burn(SLICE), order.append("heavy")))
        light = [Turns(queue) for _ in range(3)]
        for turns in light:
            turns.put_off(lambda: order.append("light"))
        heavy[-1].put_off(over.set)
        await over.wait()
        assert order.count("light") == 3
        assert order.count("heavy") >= 3
        assert order[0] == "heavy"  # one in each turn
        until = len(order) - order[::-1].index("light")
        assert order[:until].count("heavy") <= 3  # and a light one after it, even where that took the whole turn

    asyncio.run(scenario())


@pytest.mark.parametrize(("work", "light"), [(wait, True), (burn, False)])
def test_time_without_a_processor_is_no_use(work: Callable[[float], None], light: bool) -> None:
    """A busy machine took it away for milliseconds, and the client waited behind those that had used so much."""

    async def scenario() -> None:
        turns, over = Turns(FairQueue()), asyncio.Event()
        turns.put_off(lambda: (work(0.02), over.set()))  # type: ignore[func-returns-value]
        await over.wait()
        assert turns.is_light(Time.passed) == light

    asyncio.run(scenario())


def test_who_used_some_goes_before_many_who_used_far_more() -> None:
    """A producer that had used 1.3 ms waited behind each of eighty attackers, 0.2 s long."""

    async def scenario() -> None:
        queue, order = FairQueue(), list[str]()
        over = asyncio.Event()
        many = [Turns(queue) for _ in range(80)]
        for turns in many:
            turns.use(1.0)
            turns.put_off(lambda: (burn(SLICE), order.append("much")))  # type: ignore[func-returns-value]
        some = Turns(queue)
        some.use(0.0015)
        some.put_off(lambda: order.append("some"))
        many[-1].put_off(over.set)
        await over.wait()
        assert order.index("some") <= 2
        assert order.count("much") == len(many)

    asyncio.run(scenario())


@pytest.mark.parametrize("level", range(1, len(LEVELS) + 1))
def test_each_level_gets_on_while_ever_new_clients_are_below(level: int) -> None:
    async def scenario() -> None:
        queue, over = FairQueue(), asyncio.Event()
        used = [0.0, *(limit * 1.5 for limit in LEVELS)]

        def enter(use: float) -> None:
            burn(SLICE)
            if not over.is_set():
                turns = Turns(queue)
                turns.use(use)
                turns.put_off(lambda: enter(use))

        for use in used[:level]:
            enter(use)
        late = Turns(queue)
        late.use(used[level])
        late.put_off(over.set)
        await asyncio.wait_for(over.wait(), 30)

    asyncio.run(scenario())


def test_an_address_with_connections_in_all_levels_takes_turns_with_one_of_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever used much had one turn in fourteen beside a stranger whose ever new connections had used all there is."""
    now = 0.0
    monkeypatch.setattr(fair_queue, "monotonic", lambda: now)
    monkeypatch.setattr(fair_queue, "thread_time", lambda: now)

    async def scenario() -> None:
        queue, over = FairQueue(), asyncio.Event()
        there = object()

        def come(used: float) -> None:
            nonlocal now
            now += SLICE
            if not over.is_set():
                turns = Turns(queue, there)
                turns.use(used)
                turns.put_off(lambda: come(used))

        for used in (0.0, *(limit * 1.5 for limit in LEVELS)):
            come(used)
            come(used)
        one = Turns(queue, object())
        one.use(1.0)
        one.put_off(over.set)
        turns = 0
        while not over.is_set():
            await asyncio.sleep(0)
            turns += 1
        assert turns <= 2

    asyncio.run(scenario())


@pytest.mark.parametrize("used", [0.0, 1.0])
def test_many_connections_of_one_address_go_in_turns_with_one_of_another(used: float) -> None:
    """A connection was behind all 3,000 of a stranger that had used as little of the loop as it had."""

    async def scenario() -> None:
        queue, order = FairQueue(), list[str]()
        over, last = asyncio.Event(), asyncio.Event()
        here, there = object(), object()
        many = [Turns(queue, there) for _ in range(300)]
        one = Turns(queue, here)
        for turns in (*many, one):
            turns.use(used)
        for turns in many:
            turns.put_off(lambda: order.append("many"))
        one.put_off(lambda: (order.append("one"), over.set()))  # type: ignore[func-returns-value]
        await over.wait()
        assert order.index("one") == 1
        many[0].put_off(last.set)
        await last.wait()
        assert order.count("many") == len(many)

    asyncio.run(scenario())


def test_the_loop_is_free_between_turns() -> None:
    async def scenario() -> None:
        queue = FairQueue()
        clients = [Turns(queue) for _ in range(50)]
        done = 0

        def work() -> None:
            nonlocal done
            burn(SLICE)
            done += 1

        for client in clients:
            client.put_off(work)
        turns = 0
        while done < len(clients):
            await asyncio.sleep(0)
            turns += 1
        assert turns >= len(clients) * SLICE / (TURN + SLICE)

    asyncio.run(scenario())


def test_a_work_that_fails_stops_nobody() -> None:
    async def scenario() -> None:
        said: list[str] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context["message"]))
        queue, over = FairQueue(), asyncio.Event()
        failing = Turns(queue)
        failing.put_off(lambda: 1 // 0)
        failing.put_off(over.set)
        await asyncio.wait_for(over.wait(), 120)
        assert said == ["a work that was put off failed"]

    asyncio.run(scenario())


def test_a_task_that_waits_for_its_turn_can_be_cancelled() -> None:
    async def scenario() -> None:
        turns = Turns(FairQueue())

        async def work() -> None:
            await turns.wait()

        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        turns.put_off(lambda: None)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())


def test_works_that_cause_more_work_are_few_in_a_turn() -> None:
    async def scenario() -> None:
        queue = FairQueue()
        turns: Counter[int] = Counter()
        turn = 0

        def pass_turn() -> None:
            nonlocal turn
            turn += 1
            asyncio.get_running_loop().call_soon(pass_turn)

        def cause() -> None:
            turns[turn] += 1
            queue.expect(TURN / 10)

        for _ in range(100):
            Turns(queue).put_off(cause)
        pass_turn()
        while turns.total() < 100:
            await asyncio.sleep(0)
        assert max(turns.values()) <= 11

    asyncio.run(scenario())


@pytest.mark.parametrize(("sockets", "works"), [(0.0, 2), (0.006, 6), (0.1, 8)])
def test_works_have_as_long_as_the_sockets_had(sockets: float, works: int, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(fair_queue, "monotonic", lambda: now)
    turns_of_loop: list[int] = []

    def spend(seconds: float) -> None:
        nonlocal now
        now += seconds

    def work() -> None:
        spend(0.001)
        turns_of_loop[-1] += 1

    def serve_sockets() -> None:
        spend(sockets)
        turns_of_loop.append(0)
        asyncio.get_running_loop().call_soon(serve_sockets)

    async def scenario() -> None:
        queue = FairQueue()
        serve_sockets()
        for _ in range(100):
            client = Turns(queue)
            client.use(1.0)  # much
            client.put_off(work)
        while len(turns_of_loop) < 8:
            await asyncio.sleep(0)

    asyncio.run(scenario())
    assert turns_of_loop[2:7] == [works] * 5


def test_what_a_work_counts_itself_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slice of a reply is sent in a turn; requests that waited for it start in that turn, and settle their time."""
    now = 0.0
    monkeypatch.setattr(fair_queue, "monotonic", lambda: now)
    monkeypatch.setattr(fair_queue, "thread_time", lambda: now)

    async def scenario() -> None:
        queue = FairQueue()
        client = Turns(queue)

        def work() -> None:
            nonlocal now
            now += TURN / 4
            before = now
            now += TURN / 2
            client.settle(before)

        client.put_off(work)
        await asyncio.sleep(0)
        assert queue.spent == pytest.approx(TURN * 3 / 4)
        assert not client.is_light(now)  # it used that much

    asyncio.run(scenario())
