"""Brokers that start while a replica is away: what was acknowledged stays readable, and the end never goes back."""

import asyncio
import time
from collections.abc import Callable

import pytest

from broker_process import BrokerProcess
from kafka_server import INCREMENTAL_ALTER_CONFIGS, LIST_OFFSETS, RawClient, error_of, make_batch, run
from korvet_fast.types import EARLIEST, LATEST, MAX_TIMESTAMP
from raw_connection import connect, read_places
from redis_server import RedisServer

Serve = Callable[..., BrokerProcess]
StartRedis = Callable[..., RedisServer]
RECORDS = 500
AGES_AGO = 1_500_000_000_000  # ms


@pytest.fixture
def servers(start_redis: StartRedis) -> tuple[RedisServer, RedisServer]:
    """A master, and the one replica that min.insync.replicas=2 needs."""
    master, replica = start_redis(appendonly="yes"), start_redis(appendonly="yes")
    replica.follow(master)
    replica.wait_for_stream(master)
    return master, replica


async def ask(client: RawClient, timestamp: int, version: int = 7) -> tuple[str, int]:
    """The error's name and the offset that ListOffsets tells."""
    partition = {"partition_index": 0, "timestamp": timestamp}
    answer = await client.ask(LIST_OFFSETS, version, topics=[{"name": "t", "partitions": [partition]}])
    row = answer["topics"][0]["partitions"][0]
    return error_of(row), row["offset"]


async def fill(client: RawClient, **configs: str) -> int:
    """Acknowledged records; the log's end."""
    await client.create("t", min_insync_replicas="2", **configs)
    end = 0
    for number in range(0, RECORDS, 100):
        values = [b"%d" % each for each in range(number, number + 100)]
        while True:
            row = await client.produce("t", make_batch(*values, time_ms=AGES_AGO), timeout_ms=30_000)
            if error_of(row) == "":
                break
            assert error_of(row) in ("NOT_LEADER_OR_FOLLOWER", "NOT_ENOUGH_REPLICAS"), row
        end = row["base_offset"] + 100
    assert await ask(client, LATEST) == ("", end)
    return int(end)


@pytest.mark.parametrize("away", ["paused", "dead"])
def test_finding_1_3_what_was_durable_is_shown_after_a_clean_restart(
    serve: Serve, servers: tuple[RedisServer, RedisServer], away: str
) -> None:
    """And its retention goes on, though the replica stays away."""
    master, replica = servers
    end = 0

    async def before() -> None:
        nonlocal end
        async with connect(broker.port) as client:
            end = await fill(client, retention_ms="-1")

    async def after() -> None:
        async with connect(restarted.port) as client:
            assert await ask(client, LATEST) == ("", end)
            assert [value for _, value in await read_places(client, "t")] == [b"%d" % each for each in range(RECORDS)]
            assert (await ask(client, MAX_TIMESTAMP))[0] == ""
            config = {"name": "retention.ms", "config_operation": 0, "value": "1000"}
            resources = [{"resource_type": 2, "resource_name": "t", "configs": [config]}]
            answer = await client.ask(INCREMENTAL_ALTER_CONFIGS, 1, resources=resources)
            assert error_of(answer["responses"][0]) == ""
            deadline = time.monotonic() + 240
            while (earliest := await ask(client, EARLIEST)) != ("", end):
                assert time.monotonic() < deadline, earliest
                assert await ask(client, LATEST) == ("", end)
                await asyncio.sleep(0.02)

    broker = serve(master.url)
    run(before)
    assert broker.stop() == 0
    if away == "dead":
        replica.kill()
    else:
        replica.pause()
    restarted = serve(master.url, "log.retention.check.interval.ms=50")
    run(after)


def test_finding_1_3_the_end_is_not_told_while_it_may_be_earlier_than_before(
    serve: Serve, servers: tuple[RedisServer, RedisServer]
) -> None:
    """KIP-207. The broker dies, so nothing tells what was durable until the replica answers."""
    master, replica = servers
    end = 0

    async def before() -> None:
        nonlocal end
        async with connect(broker.port) as client:
            end = await fill(client)

    async def after() -> None:
        async with connect(restarted.port) as client:
            deadline = time.monotonic() + 240
            while (await ask(client, LATEST))[0] == "NOT_LEADER_OR_FOLLOWER":  # the dead broker may still lead it
                assert time.monotonic() < deadline
                await asyncio.sleep(0.02)
            for timestamp, version in ((LATEST, 7), (MAX_TIMESTAMP, 7), (LATEST, 5), (AGES_AGO + 1, 7)):
                assert (await ask(client, timestamp, version))[0] == "OFFSET_NOT_AVAILABLE"
            assert (await ask(client, LATEST, 4))[0] == "LEADER_NOT_AVAILABLE"
            assert (await ask(client, EARLIEST))[0] == ""
            assert (await client.fetch("t", 0))["high_watermark"] == -1
            replica.resume()
            deadline = time.monotonic() + 240
            while (latest := await ask(client, LATEST)) != ("", end):
                assert (latest[0], time.monotonic() < deadline) == ("OFFSET_NOT_AVAILABLE", True), latest
                await asyncio.sleep(0.02)
            assert (await client.fetch("t", 0))["high_watermark"] == end
            assert [value for _, value in await read_places(client, "t")] == [b"%d" % each for each in range(RECORDS)]

    broker = serve(master.url)
    run(before)
    broker.kill()
    replica.pause()
    restarted = serve(master.url)
    run(after)
