"""Where a log begins and ends, over a socket: offsets by time, the end of an epoch, records deleted."""

from pathlib import Path
from typing import Any

import pytest

from batches import read_values
from core_world import copy_as_crashed
from kafka_server import (
    DELETE_RECORDS,
    LIST_OFFSETS,
    OFFSET_FOR_LEADER_EPOCH,
    RawClient,
    error_of,
    kafka_server,
    make_batch,
    run,
)


@pytest.mark.parametrize("version", range(3))
def test_records_are_deleted(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t")
            for _ in range(3):
                await client.produce("t", make_batch(b"x", b"y"))

            async def delete(offset: int, name: str = "t") -> tuple[str, int]:
                topics = [{"name": name, "partitions": [{"partition_index": 0, "offset": offset}]}]
                row = (await client.ask(DELETE_RECORDS, version, topics=topics))["topics"][0]["partitions"][0]
                return error_of(row), row["low_watermark"]

            assert await delete(3) == ("", 3)
            assert await delete(1) == ("", 3)
            assert await delete(7) == ("OFFSET_OUT_OF_RANGE", -1)
            assert await delete(0, "unknown") == ("UNKNOWN_TOPIC_OR_PARTITION", -1)
            assert error_of(await client.fetch("t", 2)) == "OFFSET_OUT_OF_RANGE"
            assert await delete(-1) == ("", 6)
            assert (await client.fetch("t", 6))["log_start_offset"] == 6

    run(scenario)


async def _list(client: RawClient, version: int, timestamp: int, **given: Any) -> tuple[str, int, int]:
    partition = {"partition_index": 0, "timestamp": timestamp} | given
    topics = [{"name": "t", "partitions": [partition]}]
    row = (await client.ask(LIST_OFFSETS, version, replica_id=-1, topics=topics))["topics"][0]["partitions"][0]
    return error_of(row), row["offset"], row["timestamp"]


@pytest.mark.parametrize("version", range(1, 10))
def test_offsets_are_found_by_time(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t")
            assert await _list(client, version, 0) == ("", -1, -1)
            for time_ms in (1000, 3000, 2000):
                await client.produce("t", make_batch(b"x", b"y", time_ms=time_ms))
            assert await _list(client, version, -1) == ("", 6, -1)
            assert await _list(client, version, -2) == ("", 0, -1)
            assert await _list(client, version, 0) == ("", 0, 1000)
            assert await _list(client, version, 1001) == ("", 2, 3000)
            assert await _list(client, version, 3001) == ("", -1, -1)
            refused = ("UNSUPPORTED_VERSION", -1, -1)
            assert await _list(client, version, -3) == (("", 2, 3000) if version >= 7 else refused)
            assert await _list(client, version, -4) == (("", 0, -1) if version >= 8 else refused)
            assert await _list(client, version, -5) == (("", -1, -1) if version >= 9 else refused)
            assert await _list(client, version, -6) == refused
            if version >= 4:
                assert (await _list(client, version, -1, current_leader_epoch=9))[0] == "UNKNOWN_LEADER_EPOCH"

    run(scenario)


def test_offsets_come_with_the_epochs_of_their_records(tmp_path: Path) -> None:
    async def epoch_of(client: RawClient, timestamp: int) -> tuple[int, int]:
        topics = [{"name": "t", "partitions": [{"partition_index": 0, "timestamp": timestamp}]}]
        row = (await client.ask(LIST_OFFSETS, 9, replica_id=-1, topics=topics))["topics"][0]["partitions"][0]
        return row["offset"], row["leader_epoch"]

    async def scenario() -> None:
        async with kafka_server(tmp_path / "0") as server:
            client = await server.connect()
            await client.create("t")
            await client.produce("t", make_batch(b"x", b"y", time_ms=1000))
            assert await epoch_of(client, -2) == (0, 0)
            crashed = copy_as_crashed(tmp_path / "0", tmp_path / "1")
        async with kafka_server(crashed) as server:  # a start after a crash has the next epoch
            client = await server.connect()
            await client.produce("t", make_batch(b"z", time_ms=2000))
            assert await epoch_of(client, -2) == (0, 0)
            assert await epoch_of(client, -4) == (0, 0)
            assert await epoch_of(client, 1000) == (0, 0)
            assert await epoch_of(client, 1001) == (2, 1)
            assert await epoch_of(client, -3) == (2, 1)
            assert await epoch_of(client, -1) == (3, 1)
            assert await epoch_of(client, 2001) == (-1, -1)

    run(scenario)


@pytest.mark.parametrize("version", range(2, 5))
def test_the_end_of_an_epoch(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t")
            await client.produce("t", make_batch(b"x", b"y"))

            async def ask(epoch: int, **given: Any) -> tuple[str, int, int]:
                partition = {"partition": 0, "leader_epoch": epoch} | given
                topics = [{"topic": "t", "partitions": [partition]}]
                row = (await client.ask(OFFSET_FOR_LEADER_EPOCH, version, topics=topics))["topics"][0]["partitions"][0]
                return error_of(row), row["leader_epoch"], row["end_offset"]

            assert await ask(0) == ("", 0, 2)
            assert await ask(5) == ("", -1, -1)
            assert await ask(0, current_leader_epoch=1) == ("UNKNOWN_LEADER_EPOCH", -1, -1)
            assert (await ask(0, partition=1))[0] == "UNKNOWN_TOPIC_OR_PARTITION"

    run(scenario)


def test_the_broker_time_may_be_asked_for(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t", message_timestamp_type="LogAppendTime")
            row = await client.produce("t", make_batch(b"x", time_ms=1))
            assert row["log_append_time_ms"] > 1
            assert read_values((await client.fetch("t", 0))["records"]) == [b"x"]
            assert await _list(client, 9, -3) == ("", 0, row["log_append_time_ms"])

    run(scenario)
