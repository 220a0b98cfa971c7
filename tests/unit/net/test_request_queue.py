"""Memory of long answers: what was reserved for one is held until its reply is counted."""

import asyncio
from typing import Any

import pytest

from korvet_fast.net.limits import Limits, ServerLimits
from korvet_fast.wire.dialect import Reply
from net_scene import Peer, Scene, run, scene
from raw_connection import reset
from toy_dialect import ToyDialect, ToySession, frame

MIB = 1 << 20
POOL = 32 * MIB
ANSWER = 20 * MIB  # more than answers and the common quarter have together: one at a time


class Answers(ToyDialect):
    """A request reserves memory for its answer, waits for the gate of its name, and makes it, or fails."""

    def __init__(self) -> None:
        super().__init__()
        self.granted: list[bytes] = []
        self.made: list[bytes] = []

    def session(self, peer: str, client: Any = None) -> "AnswerSession":
        self.sessions.append(session := AnswerSession(self, client))
        return session


class AnswerSession(ToySession):
    """As `korvet_fast.wire.kafka.session` pays for what is costly."""

    def __init__(self, dialect: Answers, client: Any) -> None:
        super().__init__(dialect)
        self.answers = dialect
        self.client = client

    async def handle(self, frame_: bytearray) -> Reply:
        name = bytes(frame_)
        self.answers.started.append(name)
        if (granted := self.client.reserve(ANSWER)) is not None:
            await granted
        try:
            self.answers.granted.append(name)
            await self.answers.gate(name)
            if name.startswith(b"bug"):
                raise ZeroDivisionError("a bug of the test")
            self.answers.made.append(name)
            return [ANSWER.to_bytes(4, "big"), bytes(ANSWER)]
        finally:
            self.client.release(ANSWER)


async def ask_both(here: Scene, dialect: Answers, first: bytes) -> tuple[Peer, Peer]:
    """`first` has its memory, and `second`, of another connection, waits for the same."""
    one, two = await here.connect(), await here.connect()
    one.send(first)
    await here.until(lambda: dialect.granted == [first])
    two.send(b"second")
    await here.until(lambda: dialect.started == [first, b"second"])
    assert dialect.granted == [first]
    dialect.gate(b"second").set_result(None)
    return one, two


def test_the_next_long_answer_waits_until_the_first_is_taken() -> None:
    async def scenario() -> None:
        dialect = Answers()
        async with scene(ServerLimits(pool=POOL), dialect=dialect) as here:
            one, two = await ask_both(here, dialect, b"first")
            dialect.gate(b"first").set_result(None)
            await here.until(lambda: dialect.made == [b"first"])
            for _ in range(20):
                await asyncio.sleep(0)
            assert dialect.made == [b"first"]
            assert here.server.pool.used <= POOL
            assert len(await one.reply()) == ANSWER
            assert len(await two.reply()) == ANSWER

    run(scenario)


@pytest.mark.parametrize("lost", [False, True])
def test_what_was_reserved_is_free_again_where_there_is_no_answer(lost: bool) -> None:
    async def scenario() -> None:
        dialect = Answers()
        async with scene(ServerLimits(pool=POOL), dialect=dialect) as here:
            one, two = await ask_both(here, dialect, b"lost" if lost else b"bug")
            if lost:
                reset(one.writer)
                await here.until(lambda: len(here.server.connections) == 1)
            dialect.gate(b"lost" if lost else b"bug").set_result(None)
            assert len(await two.reply()) == ANSWER
            await here.until(lambda: here.server.pool.used == 0)

    run(scenario)


def test_who_closed_its_half_and_waits_for_memory_is_in_nobodys_way() -> None:
    """A client that was killed looks so, until it is sent something: others waited behind its requests."""

    async def scenario() -> None:
        dialect = Answers()
        async with scene(ServerLimits(pool=POOL), dialect=dialect) as here:
            one, two = await ask_both(here, dialect, b"first")
            two.writer.write_eof()
            await here.until(lambda: len(here.server.connections) == 1)
            three = await here.connect()
            three.send(b"third")
            dialect.gate(b"third").set_result(None)
            dialect.gate(b"first").set_result(None)
            assert len(await one.reply()) == ANSWER
            assert len(await three.reply()) == ANSWER
            assert dialect.granted == [b"first", b"third"]

    run(scenario)


def test_the_session_is_told_how_long_a_request_waited_once_it_was_whole() -> None:
    async def scenario() -> None:
        async with scene(limits=Limits(requests=1)) as here:
            peer, dialect = await here.connect(), here.dialect
            peer.send(b"wait first", b"echo second", b"echo third")
            await here.until(lambda: dialect.started == [b"wait first"])
            assert dialect.waits == []
            dialect.gate(b"first").set_result(None)
            for expected in (b"wait first", b"echo second", b"echo third"):
                assert await peer.reply() == expected
            (second, shorter), (third, longer) = dialect.waits
            assert (second, third) == (b"echo second", b"echo third")
            assert 0 < shorter <= longer
            assert await peer.ask(b"echo fourth") == b"echo fourth"
            assert len(dialect.waits) == 2  # it did not wait

    run(scenario)


class InTurns(ToyDialect):
    """A request takes three turns of the loop; one whose name begins with "gate" waits for its gate behind them."""

    def __init__(self) -> None:
        super().__init__()
        self.at_work = self.most = 0

    def session(self, peer: str, client: Any = None) -> "TurnsSession":
        self.sessions.append(session := TurnsSession(self, client))
        return session


class TurnsSession(ToySession):
    def __init__(self, dialect: InTurns, client: Any) -> None:
        super().__init__(dialect)
        self.in_turns = dialect
        self.client = client

    async def handle(self, frame_: bytearray) -> Reply:
        dialect = self.in_turns
        dialect.started.append(bytes(frame_))
        dialect.at_work += 1
        dialect.most = max(dialect.most, dialect.at_work)
        for _ in range(3):
            await self.client.turns.wait()
        dialect.at_work -= 1
        if frame_.startswith(b"gate"):
            await dialect.gate(bytes(frame_))
        return [frame(bytes(frame_))]


@pytest.mark.parametrize("together", [True, False])
def test_requests_are_not_started_while_one_before_them_waits_for_its_turn(together: bool) -> None:
    """They would only take memory: of hundreds of connections with hundreds of requests each, a GiB."""

    async def scenario() -> None:
        dialect = InTurns()
        async with scene(dialect=dialect) as here:
            peer = await here.connect()
            names = [b"%d" % number for number in range(150)]
            if together:
                peer.send(*names)
            else:
                for name in names:
                    peer.send(name)
                    await asyncio.sleep(0)
            assert [await peer.reply() for _ in names] == names
            assert dialect.most == 1

    run(scenario)


def test_what_waits_for_something_else_than_its_turn_holds_nobody_up() -> None:
    async def scenario() -> None:
        dialect = InTurns()
        async with scene(dialect=dialect) as here:
            peer = await here.connect()
            peer.send(b"gate 1", b"gate 2", b"3")
            await here.until(lambda: len(dialect.started) == 3)
            for name in (b"gate 2", b"gate 1"):
                dialect.gate(name).set_result(None)
            assert [await peer.reply() for _ in range(3)] == [b"gate 1", b"gate 2", b"3"]

    run(scenario)
