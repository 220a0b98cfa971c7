"""Limits of a partition that leave no room: KIP-74 gives one batch all the same, and nobody else is disturbed."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from kafka_server import FETCH, RawClient, make_batch
from raw_connection import connect
from redis_server import RedisServer

WAIT = 600.0  # seconds that a consumer is ready to wait; a test that waits for as long has ended before


async def _fetch_with_no_room(client: RawClient, limit: int) -> None:
    """The first partition that has anything gives one batch; the others give none."""
    batch = make_batch(b"x" * 1000)
    for index in (1, 2):
        assert (await client.produce("t", batch, index=index))["error_code"] == 0
        assert (await client.produce("t", batch, index=index))["error_code"] == 0
    start = [(await client.fetch("t", 0, index=index))["log_start_offset"] for index in range(3)]
    rows = [
        {"partition": index, "fetch_offset": start[index], "current_leader_epoch": -1, "partition_max_bytes": limit}
        for index in range(3)
    ]
    topics = [{"topic": "t", "partitions": rows}]
    answer = await client.ask(FETCH, 12, topics=topics, max_wait_ms=0, min_bytes=1, max_bytes=1 << 20)
    told = answer["responses"][0]["partitions"]
    assert [row["error_code"] for row in told] == [0, 0, 0]
    sizes = [len(row["records"] or b"") for row in told]
    assert sizes[0] == sizes[2] == 0
    assert 1000 < sizes[1] < 1300
    for index in (1, 2):
        row = await client.fetch("t", start[index], index=index, max_wait_ms=int(WAIT * 1000))
        assert len(row["records"]) > 2000


def _run(port: int, limit: int, **configs: str) -> None:
    async def scenario() -> None:
        async with connect(port) as client:
            await client.create("t", 3, **configs)
            await asyncio.wait_for(_fetch_with_no_room(client, limit), WAIT / 5)

    asyncio.run(scenario())


@pytest.mark.parametrize("limit", [0, -1, -(2**31)])
def test_finding_1_7_a_limit_of_nothing_on_files(start_broker: Callable[..., BrokerProcess], limit: int) -> None:
    _run(start_broker().port, limit)


@pytest.mark.parametrize("layout", ["entries", "batches"])
@pytest.mark.parametrize("limit", [0, -1])
def test_finding_1_7_a_limit_of_nothing_over_redis(
    redis_server: RedisServer, tmp_path: Path, limit: int, layout: str
) -> None:
    with BrokerProcess(tmp_path, store=redis_server.url) as broker:
        _run(broker.port, limit, storage_layout=layout)
