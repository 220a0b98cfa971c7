"""Fetch over a socket: what is there comes within its limits, what is not is waited for, refusals have their codes."""

from pathlib import Path
from typing import Any

import pytest

from batches import read_values
from kafka_server import FETCH, RawClient, kafka_server, make_batch, run
from korvet_fast.wire.kafka.errors import CODES


@pytest.mark.parametrize("version", range(4, 13))
def test_every_fetch_version_reads(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t")
            await client.produce("t", make_batch(b"one", b"two"))
            for isolation, aborted in ((0, None), (1, [])):
                row = await client.fetch("t", 1, version=version, isolation_level=isolation)
                assert read_values(row["records"]) == [b"one", b"two"]  # the whole batch that holds the offset
                assert row["aborted_transactions"] == aborted
            assert len((await client.fetch("t", 2, version=version))["records"]) == 0

    run(scenario)


def test_a_long_poll_is_woken_by_a_produce(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            consumer, producer = await server.connect(), await server.connect()
            await producer.create("t", 2)
            consumer.send_fetch("t", 0, max_wait_ms=90_000)
            await producer.produce("t", make_batch(b"other partition"), index=1)
            await producer.produce("t", make_batch(b"hello"))
            row = (await consumer.reply())["responses"][0]["partitions"][0]
            assert read_values(row["records"]) == [b"hello"]

    run(scenario)


def test_min_bytes_waits_for_enough(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            consumer, producer = await server.connect(), await server.connect()
            await producer.create("t")
            batch = make_batch(b"x" * 100)
            consumer.send_fetch("t", 0, max_wait_ms=90_000, min_bytes=2 * len(batch) + 1)
            for _ in range(3):
                await producer.produce("t", batch)
            row = (await consumer.reply())["responses"][0]["partitions"][0]
            assert len(read_values(row["records"])) == 3
            assert len((await consumer.fetch("t", 3, max_wait_ms=20, min_bytes=1))["records"]) == 0

    run(scenario)


def test_fetch_limits_hold_but_one_batch_always_comes(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t")
            batch = make_batch(b"x" * 1000)
            for _ in range(5):
                await client.produce("t", batch)
            for limits, count in (
                ({"partition_max_bytes": 1}, 1),
                ({"max_bytes": 1}, 1),
                ({"partition_max_bytes": 3 * len(batch) + 5}, 3),
                ({"max_bytes": 2 * len(batch)}, 2),
                ({"max_bytes": 0}, 0),
            ):
                assert len((await client.fetch("t", 0, **limits))["records"]) == count * len(batch), limits

    run(scenario)


async def _error_of_fetch(client: RawClient, offset: int, **options: Any) -> str:
    row = await client.fetch("t", offset, max_wait_ms=90_000, **options)
    return next(name for name, code in CODES.items() if code == row["error_code"])


def test_refusals_of_fetch_come_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t")
            await client.produce("t", make_batch(b"x"))
            assert await _error_of_fetch(client, 2) == "OFFSET_OUT_OF_RANGE"
            assert await _error_of_fetch(client, -1) == "OFFSET_OUT_OF_RANGE"
            assert await _error_of_fetch(client, 0, index=1) == "UNKNOWN_TOPIC_OR_PARTITION"
            assert await _error_of_fetch(client, 0, current_leader_epoch=99) == "UNKNOWN_LEADER_EPOCH"
            assert await _error_of_fetch(client, 0, replica_id=1) == "INVALID_REQUEST"
            client.send_fetch("t", 0, session_id=5, session_epoch=1)
            answer = await client.reply()
            assert (answer["error_code"], answer["responses"]) == (70, [])

    run(scenario)


@pytest.mark.parametrize("topics", [[], [{"topic": "t", "partitions": []}]])
def test_a_fetch_of_nothing_is_answered_at_once(tmp_path: Path, topics: list[Any]) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t")
            longest = (1 << 31) - 1  # ms
            answer = await client.ask(FETCH, 12, max_wait_ms=longest, min_bytes=1, max_bytes=1 << 20, topics=topics)
            assert (answer["error_code"], len(answer["responses"])) == (0, len(topics))

    run(scenario)


def test_an_older_epoch_is_fenced(tmp_path: Path) -> None:
    async def scenario(data: Path, epoch: int) -> None:
        async with kafka_server(data) as server:
            client = await server.connect()
            await client.create("t")
            server.broker.partition("t", 0).leadership.epoch = epoch
            assert await _error_of_fetch(client, 0, current_leader_epoch=epoch - 1) == "FENCED_LEADER_EPOCH"

    run(lambda: scenario(tmp_path, 3))


def test_deleting_a_topic_wakes_its_long_polls(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client, other = await server.connect(), await server.connect()
            await client.create("t")
            client.send_fetch("t", 0, max_wait_ms=90_000)
            await other.fetch("t", 0)
            topic = server.broker.topics.get("t")
            assert topic is not None
            await server.broker.topics.delete(topic)
            row = (await client.reply())["responses"][0]["partitions"][0]
            assert row["error_code"] == CODES["UNKNOWN_TOPIC_OR_PARTITION"]

    run(scenario)


def test_a_fetch_goes_on_while_produces_wait(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t")
            for _ in range(20):
                client.send_produce("t", make_batch(b"x" * 100))
            client.send(FETCH, 12, {"topics": [], "max_wait_ms": 0})
            for offset in range(20):
                row = (await client.reply())["responses"][0]["partition_responses"][0]
                assert row["base_offset"] == offset
            assert (await client.reply())["responses"] == []

    run(scenario)
