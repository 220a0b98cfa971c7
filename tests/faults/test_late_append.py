"""An append on its way to Redis arrives after another broker took the log over (reliability F12): it is refused."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from broker_process import BrokerProcess
from faults.redis.load import read_partition
from faults.redis.proxy import RedisProxy
from kafka_server import RawClient, error_of, make_batch, run
from raw_connection import connect, find_leaders
from redis_server import PROGRAMS, RedisServer, find_program

REFUSALS = ("NOT_LEADER_OR_FOLLOWER", "KAFKA_STORAGE_ERROR")
TOPICS = [f"t{number}" for number in range(20)]  # each at either broker by chance: at both of them


async def produce(clients: Sequence[RawClient], topic: str, value: bytes) -> None:
    """As soon as one of the brokers leads."""
    while True:
        for client in clients:
            error = error_of(await client.produce(topic, make_batch(value)))
            if not error:
                return
            assert error in REFUSALS, error
        await asyncio.sleep(0.02)


async def read_values(client: RawClient, topic: str) -> list[bytes]:
    return [value for _, value in await read_partition(client, topic, 0)]


async def wait_for_one_of(client: RawClient, leader: BrokerProcess) -> str:
    """A topic that this broker leads, as soon as it leads one."""
    while True:
        for topic in TOPICS:
            if await find_leaders(client, topic) == [leader.port]:
                return topic
        await asyncio.sleep(0.02)


async def send_late(asked: RawClient, topic: str, link: RedisProxy) -> "asyncio.Task[Any] | None":
    """An append that is held on its way to Redis; None if the broker led the topic no more."""
    come = link.hold()
    late = asyncio.create_task(asked.produce(topic, make_batch(b"late")))
    while b"EXEC" not in link.trace[come:]:
        if late.done():
            assert error_of(late.result()) in REFUSALS
            link.release()
            return None
        await asyncio.sleep(0.02)
    return late


@pytest.mark.parametrize("layout", ["entries", "batches"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_what_comes_after_a_successor_is_not_stored(program: str, layout: str, tmp_path: Path) -> None:
    """The successor has appended nothing yet: the fence alone tells the two apart, not the offset."""

    async def scenario() -> None:
        async with connect(slow.port) as asked, connect(other.port) as successor:
            for topic in TOPICS:
                assert error_of(await asked.create(topic)) == ""
            await wait_for_one_of(successor, other)
            late = None
            while late is None:  # a busy machine may have the topic move meanwhile
                topic = await wait_for_one_of(successor, slow)
                await produce([asked, successor], topic, b"before")
                before = await read_values(successor, topic)
                late = await send_late(asked, topic, link)
            while await find_leaders(successor, topic) != [other.port]:
                await asyncio.sleep(0.02)
            link.release()
            assert error_of(await late) != ""
            assert await read_values(successor, topic) == before
            await produce([successor, asked], topic, b"after")  # the slow one may have taken it back
            assert await read_values(successor, topic) == [*before, b"after"]

    # Longer than a busy machine lets a broker stand still: none but the held one shall be taken for dead.
    settings = (f"storage.layout={layout}", "broker.heartbeat.interval.ms=300", "broker.session.timeout.ms=5000")
    with (
        RedisServer(find_program(program), tmp_path / "redis", appendonly="yes") as server,
        RedisProxy(server.port) as link,
        BrokerProcess(tmp_path / "a", *settings, store=link.url) as slow,
        BrokerProcess(tmp_path / "b", *settings, store=server.url) as other,
    ):
        run(scenario)
        assert "Traceback" not in "".join(slow.log + other.log)
