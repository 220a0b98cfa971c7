"""The clock of the Redis server jumps (reliability F33): ids, retention and ownership do not stand on it."""

import asyncio
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from faults.redis.load import Load, create_topic
from kafka_server import make_batch, run
from raw_connection import connect, read_places
from redis_server import RedisServer
from requirement import require

HOUR = 3_600_000  # ms
Serve = Callable[..., BrokerProcess]
StartRedis = Callable[..., RedisServer]


class Clock:
    """The wall clock of a process that was started with `before`."""

    def __init__(self, library: Path, file: Path) -> None:
        self.before = ("env", f"LD_PRELOAD={library}", f"CLOCK_SHIFT={file}")
        self._file = file
        file.write_bytes(struct.pack("=q", 0))

    def shift(self, ms: int) -> None:
        """From now on it is so far from the truth."""
        with self._file.open("r+b") as file:
            file.write(struct.pack("=q", ms))


@pytest.fixture(scope="session")
def clock_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("clock") / "clock.so"
    source = Path(__file__).with_name("clock.c")
    subprocess.run([require("cc"), "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
    return library


@pytest.fixture
def clock(clock_library: Path, tmp_path: Path) -> Clock:
    return Clock(clock_library, tmp_path / "shift")


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
