"""The steps of tests of a topic's life, over a broker process."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from batches import read_values
from broker_process import BrokerProcess
from kafka_server import LIST_OFFSETS, RawClient, run
from korvet_fast._native import batch_headers
from raw_connection import connect

BASE = 1_600_000_000_000  # ms; long before retention.ms would keep it, so retention is off where it is used


def scene(broker: BrokerProcess, work: Callable[[RawClient], Any]) -> None:
    """Run `work` with a raw client of the broker."""

    async def scenario() -> None:
        async with connect(broker.port) as client:
            await work(client)

    run(scenario)


def segments(broker: BrokerProcess, topic: str) -> list[Path]:
    return sorted((Path(broker.store.removeprefix("file:")) / f"{topic}-0").glob("*.log"))


async def find(client: RawClient, topic: str, *times: int) -> list[tuple[int, int]]:
    """(offset, timestamp) by ListOffsets for each time or special number; several requests are under way at once."""
    for ms in times:
        partition = {"partition_index": 0, "timestamp": ms}
        client.send(LIST_OFFSETS, 7, {"replica_id": -1, "topics": [{"name": topic, "partitions": [partition]}]})
    found = []
    for _ in times:
        row = (await client.reply())["topics"][0]["partitions"][0]
        assert row["error_code"] == 0
        found.append((row["offset"], row["timestamp"]))
    return found


async def set_config(client: RawClient, topic: str, name: str, value: str) -> None:
    change = {"name": name, "value": value, "config_operation": 0}
    resource = {"resource_type": 2, "resource_name": topic, "configs": [change]}
    answer = await client.ask(44, 1, resources=[resource])
    assert answer["responses"][0]["error_code"] == 0


async def read_log_from(client: RawClient, topic: str, start: int) -> list[bytes]:
    """As a client reads: a batch comes whole, and what lies below the offset asked for is skipped."""
    values: list[bytes] = []
    while page := (await client.fetch(topic, start + len(values)))["records"]:
        values += read_values(page)[start + len(values) - batch_headers(page, False)[0].base_offset :]
    return values
