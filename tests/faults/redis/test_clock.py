"""The clock of the Redis server jumps (reliability F33): ids, retention and ownership do not stand on it."""

import asyncio
import time
from collections.abc import Callable

from broker_process import BrokerProcess
from faults.clock import HOUR, Clock
from faults.redis.load import Load, create_topic
from kafka_server import make_batch, run
from raw_connection import connect, read_places
from redis_server import RedisServer

Serve = Callable[..., BrokerProcess]
StartRedis = Callable[..., RedisServer]


def server_time(server: RedisServer) -> int:
    seconds, micros = server.call("TIME")
    return int(seconds) * 1000 + int(micros) // 1000


def test_jumps_under_load(serve: Serve, start_redis: StartRedis, clock: Clock) -> None:
    server = start_redis(appendonly="yes", before=clock.before)
    broker = serve(server.url)
    create_topic(broker.bootstrap, "load", 2)
    load = Load(broker.bootstrap)
    with load.running():
        for shift in (-HOUR, 2 * HOUR, 0):
            load.wait_for(100)
            clock.shift(shift)
            assert abs(server_time(server) - time.time() * 1000 - shift) < HOUR / 2
        load.wait_for(100)
    assert load.check(broker.port) == set()


def test_retention_stands_on_record_times(serve: Serve, start_redis: StartRedis, clock: Clock) -> None:
    """Neither a server far ahead nor one far behind makes a broker take away what is young, or keep what is old."""

    async def scenario() -> None:
        async with connect(broker.port) as client:
            for number, shift in enumerate((2 * HOUR, -2 * HOUR)):
                topic = f"t{number}"
                await client.create(topic, retention_ms=str(HOUR // 2))
                clock.shift(shift)
                now = int(time.time() * 1000)
                await client.produce(topic, make_batch(b"old", time_ms=now - HOUR))
                young = await client.produce(topic, make_batch(b"young", time_ms=now))
                await client.produce(topic, make_batch(b"younger", time_ms=now))
                while (await client.fetch(topic, young["base_offset"]))["log_start_offset"] != young["base_offset"]:
                    await asyncio.sleep(0.02)
                left = await read_places(client, topic, start=young["base_offset"])
                assert [value for _, value in left] == [b"young", b"younger"]

    server = start_redis(appendonly="yes", before=clock.before)
    broker = serve(server.url, "log.retention.check.interval.ms=100")
    run(scenario)
