"""Produce as a service: batches and numbers in, outcomes out, and no protocol anywhere."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from batches import make_batch
from core_world import World, read_all, run_broker
from korvet_fast.core.client_session import ClientSession
from korvet_fast.core.fair_executor import FairExecutor
from korvet_fast.core.produce.order import ProduceTurn
from korvet_fast.core.produce.service import Batch, produce, produce_one
from korvet_fast.core.signal import Signal
from korvet_fast.core.timing_wheel import TimingWheel
from korvet_fast.errors import Errors, KorvetError


@asynccontextmanager
async def open_session(data: Path, *flags: str) -> AsyncIterator[tuple[World, ClientSession]]:
    """A broker with a topic `t` of two partitions, and a connection to it."""
    workers = FairExecutor(1, "check")
    try:
        async with run_broker(data, *flags) as world:
            await world.broker.topics.create("t", 2, {})
            yield world, ClientSession(world.broker, workers)
    finally:
        workers.shutdown()


def one(index: int, *values: bytes) -> Batch:
    return {"index": index, "records": make_batch(values)}


def name_of(error: object) -> str:
    assert isinstance(error, KorvetError)
    assert error.__traceback__ is None  # it is a value: the frames it went through are let go
    return error.error


def test_each_batch_has_an_outcome_in_its_place(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_session(tmp_path) as (world, session):
            topics = [("t", [one(0, b"a", b"b"), one(7, b"x"), one(1, b"c"), one(0, b"d")]), ("none", [one(0, b"x")])]
            (outcomes, others), failed = await produce(session, topics, -1, 1000)
            assert failed
            assert [(index, base) for index, _, base, _, _ in outcomes] == [(0, 0), (7, -1), (1, 0), (0, 2)]
            assert [name_of(error) if error else "" for _, error, *_ in outcomes + others] == [
                "",
                "UNKNOWN_TOPIC_OR_PARTITION",
                "",
                "",
                "UNKNOWN_TOPIC_OR_PARTITION",
            ]
            assert await read_all(world.broker.partition("t", 0)) == [b"a", b"b", b"d"]

    asyncio.run(scenario())


def test_one_batch_is_answered_at_once_if_nothing_is_waited_for(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_session(tmp_path, "durability=written") as (_, session):
            assert produce_one(session, "t", one(1, b"a"), 1, 1000) == (1, 0, 0, -1, 0)
            assert produce_one(session, "t", one(1, b"b"), 1, 1000) == (1, 0, 1, -1, 0)
            large = one(1, bytes(64 << 10))  # checked at once, as it is not compressed
            assert produce_one(session, "t", large, 1, 1000) == (1, 0, 2, -1, 0)

    asyncio.run(scenario())


def test_one_batch_that_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_session(tmp_path) as (_, session):
            broken = make_batch([b"x"])
            broken[-1] ^= 1
            for batch, acks, expected in (
                (one(0, b"x"), 2, "INVALID_REQUIRED_ACKS"),
                (one(9, b"x"), 1, "UNKNOWN_TOPIC_OR_PARTITION"),
                (Batch(index=0, records=broken), 1, "CORRUPT_MESSAGE"),
                (Batch(index=0, records=None), 1, "INVALID_RECORD"),
            ):
                outcome = produce_one(session, "t", batch, acks, 1000)
                assert not isinstance(outcome, tuple)
                index, error, *rest = await outcome
                assert (index, name_of(error), rest) == (batch["index"], expected, [-1, -1, -1])

    asyncio.run(scenario())


def test_time_is_up_before_acks_are_reached(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_session(tmp_path) as (world, session):
            world.store.hold = []
            outcome = produce_one(session, "t", one(0, b"a"), -1, 1)
            assert not isinstance(outcome, tuple)
            assert name_of((await outcome)[1]) == "REQUEST_TIMED_OUT"
            ((waited,),), _ = await produce(session, [("t", [one(1, b"a")])], -1, 1)
            assert name_of(waited[1]) == "REQUEST_TIMED_OUT"
            for held in world.store.hold:
                held.set_result(None)

    asyncio.run(scenario())


def test_many_partitions_whose_time_is_over_wait_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with open_session(tmp_path) as (world, session):
            seconds, add = list[float](), TimingWheel.add

            def note(wheel: TimingWheel, signal: Signal, left: float) -> object:
                seconds.append(left)
                return add(wheel, signal, left)

            monkeypatch.setattr(TimingWheel, "add", note)
            world.store.hold = []
            (outcomes,), _ = await produce(session, [("t", [one(0, b"a") for _ in range(500)])], -1, 0)
            for held in world.store.hold:
                held.set_result(None)
            assert {name_of(outcome[1]) for outcome in outcomes} == {"REQUEST_TIMED_OUT"}
            assert seconds == [0]  # each takes a tick of the wheel, however little is left

    asyncio.run(scenario())


def test_produces_of_a_connection_keep_their_order(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_session(tmp_path, "durability=written") as (world, session):
            first = ProduceTurn(session)  # a batch of it is still being checked
            second = asyncio.create_task(produce(session, [("t", [one(0, b"second")])], 1, 1000))
            third = produce_one(session, "t", one(0, b"third"), 1, 1000)
            assert not isinstance(third, tuple)
            await asyncio.sleep(0)
            ending = asyncio.ensure_future(third)
            other = ClientSession(world.broker, session._workers)
            apart = produce_one(other, "t", one(0, b"of another connection"), 1, 1000)
            if not isinstance(apart, tuple):
                await apart
            first.end()
            await asyncio.gather(second, ending)
            assert await read_all(world.broker.partition("t", 0)) == [b"of another connection", b"second", b"third"]
            assert session.last_produce is None

    asyncio.run(scenario())


def test_a_dialect_may_refuse_partitions_by_a_rule_of_its_own(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_session(tmp_path) as (_, session):

            def refuse(topic: str, index: int) -> KorvetError | None:
                return KorvetError(Errors.POLICY_VIOLATION) if index else None

            (outcomes,), failed = await produce(session, [("t", [one(0, b"a"), one(1, b"b")])], 1, 1000, refuse=refuse)
            assert failed
            assert not outcomes[0][1]
            assert name_of(outcomes[1][1]) == "POLICY_VIOLATION"

    asyncio.run(scenario())
