"""No broker for a while, and everybody goes on sending: the producer's memory fills up to its budget, and stays there.

A second and a half here; `make producer-outage` takes ten minutes (KORVET_TEST_OUTAGE, in seconds).
"""

import asyncio
import gc
import os
import tracemalloc
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from korvet_fast.client import AsyncProducer
from korvet_fast.client.producer import BufferFull, Delivery, Message, Outcome
from producer_leftovers import run_clean

OUTAGE = float(os.environ.get("KORVET_TEST_OUTAGE", "1.5"))
LOOKS = 6  # at the process's memory, the first when the budget is full
BUDGET = 8_000_000
BATCH = 16_384
PAGES = 1_000_000  # bytes of Python's own that may come and go: log lines, timers, refused messages
VALUE = bytes(1000)


@pytest.mark.timeout(300 + 2 * OUTAGE)
def test_memory_stays_at_the_budget(tmp_path: Path) -> None:
    async def work(broker: BrokerProcess) -> None:
        settings = {"buffer_memory": BUDGET, "batch_size": BATCH, "max_request_size": 100_000, "max_block_ms": 50}
        async with AsyncProducer(broker.bootstrap, delivery_timeout_ms=3_600_000, **settings) as producer:
            await producer.send("outage", VALUE, partition=0)
            await asyncio.to_thread(broker.kill)
            accepted: list[Delivery] = []
            seen = []
            refused = 0
            for look in range(LOOKS):
                until = asyncio.get_running_loop().time() + (OUTAGE / (LOOKS - 1) if look else 0)
                while True:
                    try:
                        while True:
                            value = b"%d" % len(accepted) + VALUE
                            accepted.append(producer.try_send("outage", value, key=b"key"))
                    except BufferFull:
                        refused += 1
                        try:
                            await producer.input.put(Message("outage", VALUE))
                        except BufferFull:
                            refused += 1
                        if asyncio.get_running_loop().time() > until:
                            break
                    await asyncio.sleep(0.01)
                gc.collect()
                seen.append(tracemalloc.get_traced_memory()[0])
                metrics = producer.metrics()
                assert metrics.buffer_bytes <= metrics.buffer_peak_bytes <= BUDGET  # P7
                print(f"{look * OUTAGE / (LOOKS - 1):.1f} s: {seen[-1]:,} bytes, {metrics.open:,} messages")
            assert refused > LOOKS
            assert max(seen) < min(seen) + PAGES
            assert seen[-1] < BUDGET + PAGES
            await asyncio.to_thread(broker.start)
            await producer.flush()
            assert {each.outcome for each in accepted} == {Outcome.DELIVERED}
            assert producer.metrics().buffer_bytes == 0

    tracemalloc.start()
    try:
        with BrokerProcess(tmp_path / "data", "num.partitions=1") as broker:
            run_clean(lambda: work(broker))
    finally:
        tracemalloc.stop()
