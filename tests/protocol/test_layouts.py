"""The same requests over both layouts of a real Redis, and what other programs do to its streams meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import redis

from batches import read_values
from kafka_server import (
    DELETE_RECORDS,
    INIT_PRODUCER_ID,
    LIST_OFFSETS,
    OFFSET_FOR_LEADER_EPOCH,
    KafkaServer,
    error_of,
    kafka_server,
    make_batch,
    run,
)
from korvet_fast._native import batch_headers
from korvet_fast.store.redis.connection.url import parse_url
from korvet_fast.store.redis.store import RedisStore
from korvet_fast.types import EARLIEST, LATEST, MAX_TIMESTAMP
from redis_server import RedisServer

BITS = 10


@pytest.fixture(params=["entries", "batches"])
def layout(request: pytest.FixtureRequest) -> str:
    """Each layout."""
    return str(request.param)


@asynccontextmanager
async def broker(redis_server: RedisServer, *settings: str) -> AsyncIterator[KafkaServer]:
    """A broker over this server; the settings make it quick to see what others do."""
    async with kafka_server(RedisStore(parse_url(redis_server.url)), *settings) as server:
        yield server


async def find(client: Any, timestamp: int) -> tuple[int, int]:
    partition = {"partition_index": 0, "timestamp": timestamp}
    answer = await client.ask(LIST_OFFSETS, 7, topics=[{"name": "t", "partitions": [partition]}])
    row = answer["topics"][0]["partitions"][0]
    assert error_of(row) == ""
    return row["offset"], row["timestamp"]


def test_records_come_back(redis_server: RedisServer, layout: str) -> None:
    async def scenario() -> None:
        async with broker(redis_server) as server:
            client = await server.connect()
            assert error_of(await client.create("t", 2, storage_layout=layout)) == ""
            offsets = []
            for acks, batch in (
                (-1, make_batch(b"a", b"b")),
                (1, make_batch(b"c", compression=4)),
                (-1, make_batch(b"d", compression=1)),
            ):
                row = await client.produce("t", batch, acks=acks)
                assert error_of(row) == "", row["error_message"]
                offsets.append(row["base_offset"])
            assert offsets == sorted(offsets)
            row = await client.fetch("t", 0)
            assert read_values(row["records"]) == [b"a", b"b", b"c", b"d"]
            assert row["high_watermark"] == offsets[2] + 1
            assert row["log_start_offset"] == offsets[0]
            assert read_values((await client.fetch("t", offsets[2]))["records"])[-1] == b"d"
            client.send_produce("t", make_batch(b"e"), acks=0)
            assert read_values((await client.fetch("t", offsets[2] + 1, max_wait_ms=60_000))["records"]) == [b"e"]

    run(scenario)


def test_finding_4_9_batches_begin_at_offset_0(redis_server: RedisServer) -> None:
    async def scenario() -> None:
        async with broker(redis_server) as server:
            client = await server.connect()
            await client.create("t", storage_layout="batches")
            assert [await find(client, time) for time in (EARLIEST, LATEST)] == [(0, -1), (0, -1)]
            batches = make_batch(b"a", b"b", b"c"), make_batch(b"d")
            assert [(await client.produce("t", batch))["base_offset"] for batch in batches] == [0, 3]
            stream = redis_server.call("XRANGE", "korvet:t:0", "-", "+")
            assert [entry_id for entry_id, _ in stream] == [b"0-1", b"3-1"]
            row = await client.fetch("t", 0)
            assert read_values(row["records"]) == [b"a", b"b", b"c", b"d"]
            assert (row["log_start_offset"], row["high_watermark"]) == (0, 4)

    run(scenario)


def test_finding_1_2_records_without_a_time_outlive_the_first_retention_checks(
    redis_server: RedisServer, layout: str
) -> None:
    """With the default retention of seven days."""

    async def scenario() -> None:
        async with broker(redis_server, "log.retention.check.interval.ms=20") as server:
            client = await server.connect()
            await client.create("t", storage_layout=layout)
            row = await client.produce("t", make_batch(*[b"v"] * 10, time_ms=-1))
            places = [(row["base_offset"], -1), (row["base_offset"] + 10, -1)]
            assert error_of(row) == ""
            for _ in range(10):
                await asyncio.sleep(0.03)
                assert [await find(client, time) for time in (EARLIEST, LATEST)] == places

    run(scenario)


@pytest.mark.parametrize("most", [0, -1])
def test_finding_1_7_a_fetch_of_no_bytes_makes_nobody_wait(redis_server: RedisServer, layout: str, most: int) -> None:
    """The fetch gets one batch, and a later fetch at the same offset need not wait for new batches."""

    async def scenario() -> None:
        async with broker(redis_server) as server:
            client, other = await server.connect(), await server.connect()
            await client.create("t", storage_layout=layout)
            offset = (await client.produce("t", make_batch(b"a")))["base_offset"]
            row = await client.fetch("t", offset, partition_max_bytes=most)
            assert (error_of(row), read_values(row["records"])) == ("", [b"a"])
            async with asyncio.timeout(120):
                row = await other.fetch("t", offset, max_wait_ms=60_000)
            assert read_values(row["records"]) == [b"a"]

    run(scenario)


def test_offsets_are_found(redis_server: RedisServer, layout: str) -> None:
    async def scenario() -> None:
        async with broker(redis_server) as server:
            client = await server.connect()
            await client.create("t", storage_layout=layout, retention_ms="-1")
            base = 1_700_000_000_000
            offsets = []
            for ms in (100, 300, 200):
                row = await client.produce("t", make_batch(b"x", b"y", time_ms=base + ms))
                offsets.append(row["base_offset"])
            assert await find(client, EARLIEST) == (offsets[0], -1)
            assert await find(client, LATEST) == (offsets[2] + 2, -1)
            assert await find(client, base + 150) == (offsets[1], base + 300)
            assert await find(client, base + 301) == (-1, -1)
            assert await find(client, MAX_TIMESTAMP) == (offsets[1], base + 300)
            partition = {"partition_index": 0, "offset": offsets[1]}
            answer = await client.ask(DELETE_RECORDS, 2, topics=[{"name": "t", "partitions": [partition]}])
            row = answer["topics"][0]["partitions"][0]
            assert (error_of(row), row["low_watermark"]) == ("", offsets[1])
            assert error_of(await client.fetch("t", offsets[0])) == "OFFSET_OUT_OF_RANGE"
            assert read_values((await client.fetch("t", offsets[1]))["records"]) == [b"x", b"y"] * 2

    run(scenario)


def test_producers_and_epochs_outlive_the_broker(redis_server: RedisServer, layout: str) -> None:
    async def scenario() -> None:
        async with broker(redis_server) as server:
            client = await server.connect()
            await client.create("t", storage_layout=layout)
            known = await client.ask(INIT_PRODUCER_ID, 4, transaction_timeout_ms=1)
            producer = known["producer_id"], known["producer_epoch"]
            sent = [bytes(make_batch(b"%d" % n, producer=(*producer, n))) for n in range(8)]
            offsets = [(await client.produce("t", batch))["base_offset"] for batch in sent]
            first = server.broker.partition("t", 0).leadership.epoch
        async with broker(redis_server) as server:
            client = await server.connect()
            again = [(await client.produce("t", sent[n]))["base_offset"] for n in (3, 7)]
            assert again == [offsets[3], offsets[7]]
            assert error_of(await client.produce("t", make_batch(b"x", producer=(*producer, 9)))) == (
                "OUT_OF_ORDER_SEQUENCE_NUMBER"
            )
            row = await client.produce("t", make_batch(b"8", producer=(*producer, 8)))
            assert row["base_offset"] > offsets[7]
            assert read_values((await client.fetch("t", 0))["records"]) == [b"%d" % n for n in range(9)]
            asked = {"partition": 0, "leader_epoch": first}
            answer = await client.ask(OFFSET_FOR_LEADER_EPOCH, 4, topics=[{"topic": "t", "partitions": [asked]}])
            row = answer["topics"][0]["partitions"][0]
            assert (row["leader_epoch"], row["end_offset"]) == (first, offsets[7] + 1)

    run(scenario)


def test_another_programs_records_are_consumed_at_once(redis_server: RedisServer) -> None:
    async def scenario() -> None:
        with redis.Redis(port=redis_server.port) as other:
            async with broker(redis_server) as server:
                client = await server.connect()
                await client.create("t")
                position = 0
                for number in range(3):
                    client.send_fetch("t", position, max_wait_ms=90_000)
                    await (await server.connect()).fetch("t", 0)  # the first one is waiting by now
                    other.xadd("korvet:t:0", {"value": b"foreign %d" % number})
                    row = (await client.reply())["responses"][0]["partitions"][0]
                    assert read_values(row["records"])[-1] == b"foreign %d" % number
                    position = row["high_watermark"]
                    row = await client.produce("t", make_batch(b"ours"))
                    assert error_of(row) == ""
                    assert row["base_offset"] >= position
                    position = row["base_offset"] + 1
                assert await find(client, LATEST) == (position, -1)
                values = read_values((await client.fetch("t", 0))["records"])
                assert values == [b"foreign 0", b"ours", b"foreign 1", b"ours", b"foreign 2", b"ours"]
                assert other.xlen("korvet:t:0") == 6

    run(scenario)


def test_a_producer_never_hears_of_the_others_it_writes_between(redis_server: RedisServer) -> None:
    async def scenario() -> None:
        async with broker(redis_server) as server:
            client = await server.connect()
            await client.create("t")
            known = await client.ask(INIT_PRODUCER_ID, 4, transaction_timeout_ms=1)
            producer = known["producer_id"], known["producer_epoch"]

            def write() -> None:
                with redis.Redis(port=redis_server.port) as other:
                    for _ in range(300):
                        other.xadd("korvet:t:0", {"value": b"foreign"})

            writing = asyncio.get_running_loop().run_in_executor(None, write)
            for number in range(300):
                client.send_produce("t", make_batch(b"%d" % number, producer=(*producer, number)))
                if number % 5 == 4:
                    for _ in range(5):
                        row = (await client.reply())["responses"][0]["partition_responses"][0]
                        assert error_of(row) == "", row["error_message"]
            await writing
            values: list[bytes] = []
            position = 0
            # The end may be known a second late: what others wrote last is waited for, not looked for by LATEST.
            while len(values) < 600 and (row := await client.fetch("t", position, max_wait_ms=5000))["records"]:
                values += read_values(row["records"])
                position = after(row)
            assert values.count(b"foreign") == 300
            assert [value for value in values if value != b"foreign"] == [b"%d" % number for number in range(300)]

    run(scenario)


def after(row: dict[str, Any]) -> int:
    """The offset after the last record of an answer."""
    return max(batch.last_offset for batch in batch_headers(row["records"], False)) + 1


def test_a_partition_without_offsets_left_says_so_and_keeps_no_other_from_being_saved(
    redis_server: RedisServer,
) -> None:
    async def scenario() -> None:
        async with broker(redis_server) as server:
            client = await server.connect()
            for topic in ("t", "u"):
                assert error_of(await client.create(topic, storage_layout="entries")) == ""
                assert error_of(await client.produce(topic, make_batch(b"a"))) == ""
            other = redis.Redis.from_url(redis_server.url)
            other.xadd("korvet:t:0", {"value": "x"}, id=f"{(1 << 64) - 1}-0")
            await client.produce("t", make_batch(b"b"))  # finds out that another program was here
            row = await client.produce("t", make_batch(b"c"))
            assert error_of(row) == "KAFKA_STORAGE_ERROR", row
            assert "no offsets left" in row["error_message"]
            await server.broker.topics.save()
            assert server.broker.partition("u", 0).saver.is_saved

    run(scenario)
