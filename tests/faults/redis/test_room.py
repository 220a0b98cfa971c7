"""A Redis without room (reliability F08, F09, F10): nothing is half written, what is there is served, and it passes."""

import asyncio
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from counts import note_values
from faults.redis.load import AGAIN
from faults.redis.log import wait_for_line
from kafka_server import DELETE_RECORDS, RawClient, make_batch, run
from korvet_fast.wire.kafka.errors import CODES
from raw_connection import connect, read_places, start_producer
from redis_server import RedisServer

Serve = Callable[..., BrokerProcess]
StartRedis = Callable[..., RedisServer]
STORAGE_ERROR = CODES["KAFKA_STORAGE_ERROR"]
NO_REWRITE = {"auto_aof_rewrite_percentage": 0}


class Filling:
    """An idempotent producer of 20 KB batches of two records; what it got stored, in order."""

    def __init__(self, client: RawClient, producer: tuple[int, int]) -> None:
        self.client = client
        self.producer = producer
        self.stored: list[tuple[int, bytes]] = []

    async def send(self) -> dict[str, object]:
        """The next batch, or the refused one again."""
        number = len(self.stored)
        values = [b"%d:%d " % (number, each) + bytes(10_000) for each in range(2)]
        row = await self.client.produce("t", make_batch(*values, producer=(*self.producer, number)))
        if row["error_code"] == 0:
            self.stored += [(row["base_offset"] + each, value) for each, value in enumerate(values)]
        return row

    async def send_until_refused(self) -> dict[str, object]:
        for _ in range(1_000):
            row = await self.send()
            if row["error_code"]:
                assert (row["error_code"], row["base_offset"]) == (STORAGE_ERROR, -1)
                return row
        raise AssertionError("there is always room")

    async def check(self) -> None:
        """At the end: what it got stored is there, and nothing else."""
        found = await read_places(self.client, "t")
        note_values(self.stored, found)
        assert found == self.stored

    async def send_until_taken(self) -> None:
        while (row := await self.send())["error_code"]:
            assert row["error_code"] in AGAIN
            await asyncio.sleep(0.02)


@pytest.fixture
def small_redis(small_disk: Path, start_redis: StartRedis) -> Callable[[str], RedisServer]:
    """A server on a disk of 4 MiB, 1.5 of them taken by a file `filler`."""

    def start(fsync: str) -> RedisServer:
        (small_disk / "filler").write_bytes(bytes(1_500_000))
        return start_redis(small_disk / "redis", appendonly="yes", appendfsync=fsync, **NO_REWRITE)

    return start


def make_room(server: RedisServer) -> None:
    server.directory.with_name("filler").unlink()


def test_a_full_disk_that_ends_the_server(serve: Serve, small_redis: Callable[[str], RedisServer]) -> None:
    """F08: with `appendfsync always` Redis exits when it cannot write."""

    async def scenario() -> None:
        async with connect(broker.port) as client:
            await client.create("t")
            filling = Filling(client, await start_producer(client))
            while server.process.poll() is None:
                sending = asyncio.create_task(filling.send())
                while not sending.done() and server.process.poll() is None:
                    await asyncio.sleep(0.001)
            make_room(server)
            await asyncio.to_thread(server.restart)
            assert (await sending)["error_code"] in (0, *AGAIN)
            await filling.send_until_taken()
            await filling.check()

    server = small_redis("always")
    assert server.process is not None
    broker = serve(server.url)
    run(scenario)


def test_a_full_disk_that_stops_the_writes(serve: Serve, small_redis: Callable[[str], RedisServer]) -> None:
    """F09: with `appendfsync everysec` Redis answers MISCONF to writes, and recovers by itself."""

    async def scenario() -> None:
        async with connect(broker.port) as client:
            await client.create("t")
            filling = Filling(client, await start_producer(client))
            row = await filling.send_until_refused()
            assert "MISCONF" in str(row["error_message"])
            assert await read_places(client, "t") == filling.stored
            make_room(server)
            await filling.send_until_taken()
            await filling.check()

    server = small_redis("everysec")
    broker = serve(server.url)
    run(scenario)


async def trim(client: RawClient, offset: int) -> int:
    partition = {"partition_index": 0, "offset": offset}
    topics = [{"name": "t", "partitions": [partition]}]
    answer = await client.ask(DELETE_RECORDS, 2, topics=topics, timeout_ms=10_000)
    row = answer["topics"][0]["partitions"][0]
    assert row["error_code"] == 0, row
    return int(row["low_watermark"])


def test_no_memory_left(serve: Serve, start_redis: StartRedis) -> None:
    """F10: a batch is refused whole, reading and trimming go on, and trimming makes room."""

    async def scenario() -> None:
        async with connect(broker.port) as client:
            await client.create("t")
            filling = Filling(client, await start_producer(client))
            await filling.send()
            most = int(server.info("memory")["used_memory"]) + 2_000_000
            start = 0
            for _ in range(2):
                server.call("CONFIG", "SET", "maxmemory", most)
                row = await filling.send_until_refused()
                assert "OOM" in str(row["error_message"])
                server.call("CONFIG", "SET", "maxmemory", most - 200_000)  # its buffers come and go
                for _ in range(3):  # and it stays so
                    assert (await filling.send())["error_code"] == STORAGE_ERROR
                assert await read_places(client, "t", start=start) == [row for row in filling.stored if row[0] >= start]
                start = filling.stored[-10][0]  # the first of a batch
                assert await trim(client, start) == start
                await filling.send_until_taken()
                assert await read_places(client, "t", start=start) == [row for row in filling.stored if row[0] >= start]

    server = start_redis(appendonly="yes", maxmemory_policy="noeviction")
    broker = serve(server.url)
    run(scenario)


@pytest.mark.parametrize("killed", [False, True])
def test_a_broker_starts_where_no_memory_is_left(serve: Serve, start_redis: StartRedis, killed: bool) -> None:
    """F10: it says so, serves what is there, and trims; it stops well too."""

    async def fill() -> None:
        async with connect(broker.port) as client:
            await client.create("t")
            for value in (b"first", b"second", b"third"):
                row = await client.produce("t", make_batch(value))
                places.append((row["base_offset"], value))

    async def use(start: int) -> None:
        async with connect(broker.port) as client:
            while (row := await client.produce("t", make_batch(b"refused")))["error_code"] != STORAGE_ERROR:
                assert row["error_code"] in AGAIN  # the killed one may still lead it
                await asyncio.sleep(0.02)
            assert "OOM" in row["error_message"]
            assert await read_places(client, "t", start=places[start][0]) == places[start:]
            assert await trim(client, places[start + 1][0]) == places[start + 1][0]

    async def go_on() -> None:
        async with connect(broker.port) as client:
            row = await client.produce("t", make_batch(b"taken"))
            assert row["error_code"] == 0, row

    places: list[tuple[int, bytes]] = []
    server = start_redis(appendonly="yes")
    broker = serve(server.url, "broker.heartbeat.interval.ms=300", "broker.session.timeout.ms=3000")
    run(fill)
    assert broker.stop(signal.SIGKILL if killed else signal.SIGTERM) == (-signal.SIGKILL if killed else 0)
    server.call("CONFIG", "SET", "maxmemory", 1)
    broker.start()
    wait_for_line(broker, "has reached its maxmemory")
    run(partial(use, 0))
    assert broker.stop() == 0
    broker.start()
    run(partial(use, 1))
    server.call("CONFIG", "SET", "maxmemory", 0)
    wait_for_line(broker, "has memory for records again")
    run(go_on)
