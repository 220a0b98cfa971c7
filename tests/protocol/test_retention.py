"""The records that retention deletes, and those that it spares."""

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

from broker_process import BrokerProcess
from kafka_server import RawClient, make_batch, run
from raw_connection import connect, read_log

WEEK = 7 * 24 * 3600  # seconds: the default retention
NO_TIME = -1


async def pass_retention(client: RawClient) -> None:
    """Until a check has gone over all logs: what is too old has gone twice, so one check was whole."""
    for number in (1, 2):
        assert (await client.produce("old", make_batch(b"old", time_ms=1000)))["error_code"] == 0
        while (await client.fetch("old", number, max_wait_ms=0))["log_start_offset"] < number:
            await asyncio.sleep(0.02)


def test_finding_1_2_records_without_a_time_outlive_the_first_retention_check(
    tmp_path: Path, start_broker: Callable[..., BrokerProcess]
) -> None:
    """They count by when their segment was written last, as in Kafka."""
    values = [b"%d" % number for number in range(10)]

    async def scenario() -> None:
        async with connect(broker.port) as client:
            for topic in ("old", "timeless", "forgotten"):
                await client.create(topic)
            for topic in ("timeless", "forgotten"):
                for value in values:
                    row = await client.produce(topic, make_batch(value, time_ms=NO_TIME))
                    assert (row["error_code"], row["base_offset"]) == (0, int(value))
            (segment,) = (tmp_path / "data" / "forgotten-0").glob("*.log")
            long_ago = time.time() - WEEK - 60
            os.utime(segment, (long_ago, long_ago))
            await pass_retention(client)
            assert (await client.fetch("timeless", 0))["log_start_offset"] == 0
            assert await read_log(client, "timeless") == values
            row = await client.fetch("forgotten", 10)
            assert (row["log_start_offset"], row["high_watermark"]) == (10, 10)

    broker = start_broker("log.retention.check.interval.ms=100")
    run(scenario)
