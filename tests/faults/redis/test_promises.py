"""A Redis whose settings are changed while brokers use it: noticed soon, and treated as at their start."""

import asyncio
from collections.abc import Callable
from collections.abc import Set as AbstractSet

import pytest

from broker_process import BrokerProcess
from faults.redis.load import AGAIN
from faults.redis.log import wait_for_line
from kafka_server import RawClient, make_batch, run
from korvet_fast.wire.kafka.errors import CODES
from raw_connection import connect, read_places
from redis_server import RedisServer

Serve = Callable[..., BrokerProcess]
StartRedis = Callable[..., RedisServer]
LATER = AGAIN | {CODES["NOT_ENOUGH_REPLICAS"]}
# The append that was on its way when Redis gave its file up is there, and not flushed.
LATER_OR_THERE = LATER | {CODES["NOT_ENOUGH_REPLICAS_AFTER_APPEND"]}


async def send_until(
    client: RawClient, value: bytes, acks: int, *, taken: bool, refusals: AbstractSet[int] = LATER
) -> int:
    """How often it was taken."""
    count = 0
    while (code := (await client.produce("t", make_batch(value), acks=acks))["error_code"]) != 0 or not taken:
        if code:
            assert code in refusals
            if not taken:
                return count
        count += not code
        await asyncio.sleep(0.05)
    return count + 1


@pytest.mark.parametrize("acks", [1, -1])
def test_a_server_that_may_evict_from_now_on_gets_no_records(serve: Serve, start_redis: StartRedis, acks: int) -> None:
    async def scenario() -> None:
        async with connect(broker.port) as client:
            await client.create("t")
            count = await send_until(client, b"x", acks, taken=True)
            server.call("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
            count += await send_until(client, b"x", acks, taken=False)
            wait_for_line(broker, "takes none: its maxmemory-policy is allkeys-lru")
            server.call("CONFIG", "SET", "maxmemory-policy", "noeviction")
            count += await send_until(client, b"x", acks, taken=True)
            wait_for_line(broker, "can keep records again")
            assert len(await read_places(client, "t")) == count

    server = start_redis(appendonly="yes")
    broker = serve(server.url)
    run(scenario)


def test_a_file_that_is_given_up_ends_fsync(serve: Serve, start_redis: StartRedis) -> None:
    async def scenario() -> None:
        async with connect(broker.port) as client:
            await client.create("t", durability="fsync")
            await send_until(client, b"x", -1, taken=True)
            server.call("CONFIG", "SET", "appendonly", "no")
            await send_until(client, b"x", -1, taken=False, refusals=LATER_OR_THERE)
            row = await client.produce("t", make_batch(b"x"))
            assert row["error_code"] == CODES["NOT_ENOUGH_REPLICAS"]
            assert "appendonly yes" in row["error_message"]
            wait_for_line(broker, "keeps less than D2 now. Without durability=fsync, acks=all on")
            server.call("CONFIG", "SET", "appendonly", "yes")
            wait_for_line(broker, "keeps D2 now")

    server = start_redis(appendonly="yes")
    broker = serve(server.url)
    run(scenario)
