"""Batches of our producer beside those of Java's: the same bytes, and compressed the same records."""

from typing import Any

import pytest

from broker_process import BrokerProcess
from compat.drivers import serve
from compat.record import COMPRESSIONS, FORMS, write_row
from korvet_fast._native import batch_headers, to_columns
from korvet_fast.client import AsyncProducer
from korvet_fast.client.producer.message import QueuedRecords
from korvet_fast.client.producer.record_batch import encode
from producer_leftovers import run_clean
from raw_connection import connect

TIME = 1_700_000_000_000
RECORDS = FORMS * 3
TIMES = [TIME + (-1) ** number * 7 * number for number in range(len(RECORDS))]  # neither rising nor falling
OF_PRODUCER = slice(8, 12), slice(16, None)  # what a broker does not write: not the base offset, nor the leader epoch


async def fetch_batches(broker: BrokerProcess, topic: str) -> bytes:
    """All batches of partition 0 as they were sent."""
    found = b""
    async with connect(broker.port) as client:
        while True:
            row = await client.fetch(topic, sum(each.count for each in batch_headers(found, True)))
            assert row["error_code"] == 0
            if not row["records"]:
                return found
            found += bytes(row["records"])


def columns(batches: bytes) -> dict[str, list[int]]:
    return {name: memoryview(column).tolist() for name, column in to_columns(batches, 1 << 30).items()}


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("driver", ["java_39", "java_41"])
def test_batches_are_those_of_java(broker: BrokerProcess, topic: str, driver: str, compression: str) -> None:
    theirs, ours = f"{topic}-theirs", f"{topic}-ours"
    rows = [write_row(record) | {"timestamp": time} for record, time in zip(RECORDS, TIMES, strict=True)]
    how: dict[str, Any] = {"partition": 0, "acks": "all", "compression": compression, "idempotent": True}
    with serve(driver, broker.bootstrap) as java:
        assert java.ask("produce", topic=theirs, records=rows, **how)["count"] == len(rows)

    async def work() -> tuple[bytes, bytes]:
        async with AsyncProducer(broker.bootstrap, compression_type=compression, max_request_size=16 << 20) as p:
            for (key, value, headers), time in zip(RECORDS, TIMES, strict=True):
                p.send(ours, value, key=key, headers=headers, partition=0, timestamp=time)
        return await fetch_batches(broker, theirs), await fetch_batches(broker, ours)

    from_java, from_us = run_clean(work)
    assert columns(from_us) == columns(from_java)
    if compression == "none":
        check_bytes(from_java)


def check_bytes(batches: bytes) -> None:
    """Each batch of Java's, built anew by our producer from its records, is the same."""
    done = place = 0
    for header in batch_headers(batches, True):
        theirs = batches[place : place + header.size]
        part = slice(done, done + header.count)
        queued = [
            QueuedRecords("t", (value,), (key,), headers, 0, time)
            for (key, value, headers), time in zip(RECORDS[part], TIMES[part], strict=True)
        ]
        ours = encode(queued, 0, (header.producer_id, header.producer_epoch), header.base_sequence)
        assert [ours[each] for each in OF_PRODUCER] == [theirs[each] for each in OF_PRODUCER]
        done += header.count
        place += header.size
    assert done == len(RECORDS)
