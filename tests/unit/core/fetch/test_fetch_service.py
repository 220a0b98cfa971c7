"""Fetch as a service: offsets and limits in, batches out, and no protocol anywhere."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from batches import read_values
from core_world import World, put_values, run_broker, send
from korvet_fast.core.client_session import ClientSession
from korvet_fast.core.fair_executor import FairExecutor
from korvet_fast.core.fetch.service import PartitionFetch, fetch, fetch_one
from korvet_fast.errors import KorvetError

MIB = 1 << 20
LONG = 90_000  # ms


@asynccontextmanager
async def open_session(data: Path) -> AsyncIterator[tuple[World, ClientSession]]:
    """A broker with a topic `t` of two partitions, of which the first has two batches, and a connection to it."""
    workers = FairExecutor(1, "check")
    try:
        async with run_broker(data, "durability=written") as world:
            topic = await world.broker.topics.create("t", 2, {})
            await send(topic.partitions[0], b"a", b"b")
            await send(topic.partitions[0], b"c")
            yield world, ClientSession(world.broker, workers)
    finally:
        workers.shutdown()


def values_of(part: PartitionFetch) -> list[bytes]:
    return [value for records in part.records for value in read_values(records)]


def test_what_one_partition_gives(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_session(tmp_path) as (_, session):
            part = await fetch_one(session, "t", (0, 0, MIB, -1), MIB, 1, LONG)
            assert values_of(part) == [b"a", b"b", b"c"]
            assert (part.index, part.error, part.high_watermark, part.log_start) == (0, None, 3, 0)
            first = await fetch_one(session, "t", (0, 0, 1, -1), MIB, 1, LONG)  # one batch, however large it is
            assert values_of(first) == [b"a", b"b"]
            nothing = await fetch_one(session, "t", (0, 0, MIB, -1), 0, 1, LONG)
            assert values_of(nothing) == []

    asyncio.run(scenario())


def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_session(tmp_path) as (_, session):
            for position, expected, watermark in (
                ((0, 4, MIB, -1), "OFFSET_OUT_OF_RANGE", 3),
                ((0, 0, MIB, 99), "UNKNOWN_LEADER_EPOCH", -1),
                ((5, 0, MIB, -1), "UNKNOWN_TOPIC_OR_PARTITION", -1),
            ):
                part = await fetch_one(session, "t", position, MIB, 1, LONG)
                assert isinstance(part.error, KorvetError)
                assert part.error.__traceback__ is None  # it is a value: the frames it went through are let go
                assert (part.error.error, part.high_watermark, part.records) == (expected, watermark, [])

    asyncio.run(scenario())


def test_many_share_the_bytes_and_an_error_is_told_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_session(tmp_path) as (world, session):
            await send(world.broker.partition("t", 1), b"d")
            positions = [(0, 2, MIB, -1), (1, 0, MIB, -1)]
            ((one, two),) = await fetch(session, [("t", positions)], MIB, 1, LONG)
            assert (values_of(one), values_of(two)) == ([b"c"], [b"d"])
            ((one, two),) = await fetch(session, [("t", positions)], 1, 1, LONG)
            assert (values_of(one), values_of(two)) == ([b"c"], [])
            ((one,), (other,)) = await fetch(session, [("t", positions[:1]), ("none", positions[1:])], MIB, MIB, LONG)
            assert values_of(one) == [b"c"]
            assert other.error is not None

    asyncio.run(scenario())


def test_a_long_poll_ends_with_an_append_or_when_its_connection_goes(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_session(tmp_path) as (world, session):
            partition = world.broker.partition("t", 1)
            waiting = asyncio.create_task(fetch_one(session, "t", (1, 0, MIB, -1), MIB, 1, LONG))
            while not session.delayed:
                await asyncio.sleep(0)
            put_values(partition, b"x")
            assert values_of(await waiting) == [b"x"]
            assert not session.delayed
            waiting = asyncio.create_task(fetch_one(session, "t", (1, 1, MIB, -1), MIB, 1, LONG))
            while not session.delayed:
                await asyncio.sleep(0)
            session.close()
            assert values_of(await waiting) == []
            assert values_of(await fetch_one(session, "t", (1, 1, MIB, -1), MIB, 1, LONG)) == []  # nobody waits now

    asyncio.run(scenario())


def test_a_long_poll_waits_on_while_its_log_is_closed_as_nobody_uses_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_session(tmp_path) as (world, session):
            partition = world.broker.partition("t", 0)
            waiting = asyncio.create_task(fetch_one(session, "t", (0, 3, MIB, -1), MIB, 1, LONG))
            while not session.delayed:
                await asyncio.sleep(0)
            for _ in range(2):
                await world.store.close_idle()
            assert world.store.store._logs["t:0"].is_closed
            assert put_values(partition, b"x") == 3
            assert values_of(await waiting) == [b"x"]

    asyncio.run(scenario())
