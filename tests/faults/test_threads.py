"""As few threads as the system lets a broker have (reliability F37): it does not start, or serves all."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from faults.cgroup import ControlGroup, open_cgroup
from faults.redis.load import at_work
from faults.redis.records import read_commit, try_commit
from kafka_server import DELETE_TOPICS, make_batch, run
from raw_connection import connect, read_log

PARTITIONS = 40
# Checked beside the loop, as it takes long, and larger than a segment: each one begins the next.
LARGE = os.urandom(300_000)


@pytest.fixture
def pids() -> Iterator[ControlGroup]:
    with open_cgroup("pids") as group:
        yield group


@pytest.fixture
def broker(tmp_path: Path, pids: ControlGroup) -> BrokerProcess:
    return BrokerProcess(tmp_path / "data", "log.segment.bytes=100000", before=pids.before)


def test_a_broker_that_may_start_no_more_threads_serves_all(broker: BrokerProcess, pids: ControlGroup) -> None:
    """It has started anew, and nobody has asked it for anything: the threads that it may need have begun."""

    async def produce(topic: str, index: int, value: bytes) -> None:
        async with connect(broker.port) as client:
            row = await client.produce(topic, make_batch(value, compression=1), index=index, timeout_ms=120_000)
            assert row["error_code"] == 0, row

    async def produce_to_all(value: bytes) -> None:
        await asyncio.gather(*[produce("t", index, value) for index in range(PARTITIONS)])

    async def fill() -> None:
        async with connect(broker.port) as client:
            for topic in ("t", "old"):
                assert (await client.create(topic, PARTITIONS))["error_code"] == 0
        await produce_to_all(b"before")

    async def work() -> None:
        for value in (b"small", LARGE, LARGE):
            await produce_to_all(value)
        async with connect(broker.port) as client:
            for index in range(PARTITIONS):
                assert await read_log(client, "t", index) == [b"before", b"small", LARGE, LARGE]
            assert await try_commit(client, "group", 3) == 0
            assert await read_commit(client, "group") == 3
            done = await client.ask(DELETE_TOPICS, 4, topic_names=["old"], timeout_ms=60_000)
            assert done["responses"][0]["error_code"] == 0
            assert (await client.create("new", PARTITIONS))["error_code"] == 0
        await asyncio.gather(*[produce("new", index, b"first") for index in range(PARTITIONS)])

    with broker:
        run(fill)
        assert broker.stop() == 0
        broker.start()
        pids.write("pids.max", 1)  # no other begins while they are counted
        threads = int(pids.read("pids.current"))
        pids.write("pids.max", threads)
        with at_work(broker):
            run(work)
        assert int(pids.read("pids.current")) == threads
        assert broker.stop() == 0
        assert "Traceback" not in "".join(broker.log)


@pytest.mark.parametrize("most", [1, 3, 7, 11, 13, 15])
def test_a_broker_with_too_few_threads_does_not_start_and_says_so(
    broker: BrokerProcess, pids: ControlGroup, most: int
) -> None:
    """Wherever it finds out: a broker that had started half of its threads would do half of its work."""
    pids.write("pids.max", most)
    command = [*pids.before, sys.executable, "-m", "korvet_fast", "serve", "--store", broker.store]
    command += ["--listen", "kafka://127.0.0.1:0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    said = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == 1, said
    assert "the system starts no more threads for this process" in said
    assert "pids.max" in said
    assert "Traceback" not in said
    pids.write("pids.max", 100)
    with broker:
        assert broker.stop() == 0
