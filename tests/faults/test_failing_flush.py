"""A disk that cannot flush: nothing is acknowledged or shown that may be lost, and a restart knows what was."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from faults.conftest import Flushes
from faults.redis.log import wait_for_line
from kafka_server import make_batch, run
from korvet_fast.wire.kafka.errors import CODES
from metric_rows import key, read_rows, scrape
from raw_connection import connect, read_log, start_producer
from redis_server import free_port

STORAGE_ERROR = CODES["KAFKA_STORAGE_ERROR"]
FLUSH_TIME = "kafka_log_logflushstats_logflushrateandtimems"


@pytest.fixture
def broker(tmp_path: Path, flushes: Flushes) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path / "data", before=flushes.before) as running:
        yield running
        flushes.heal()


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM], ids=lambda end: end.name)
def test_a_failed_flush_acknowledges_nothing(broker: BrokerProcess, flushes: Flushes, end: signal.Signals) -> None:
    async def fail() -> None:
        async with connect(broker.port) as client:
            for topic in ("hit", "spared"):
                await client.create(topic)
            producer.extend(await start_producer(client))
            first = make_batch(b"kept", producer=(*producer, 0))
            assert (await client.produce("hit", first))["base_offset"] == 0
            assert (await client.produce("spared", make_batch(b"kept")))["base_offset"] == 0
            flushes.fail()
            row = await client.produce("hit", make_batch(b"doubtful", producer=(*producer, 1)))
            assert (row["error_code"], row["base_offset"]) == (STORAGE_ERROR, -1)
            assert "the flush failed" in row["error_message"]
            row = await client.fetch("hit", 0)
            assert (row["error_code"], row["high_watermark"]) == (0, 1)  # still served, and the doubtful one not shown
            flushes.heal()
            # The kernel may have dropped what it could not write: a flush that works now proves nothing.
            for acks in (1, -1):
                row = await client.produce("hit", make_batch(b"refused"), acks=acks)
                assert row["error_code"] == STORAGE_ERROR
                assert "until the broker is restarted" in row["error_message"]
            assert await read_log(client, "hit") == [b"kept"]
            row = await client.produce("spared", make_batch(b"as ever"))
            assert (row["error_code"], row["base_offset"]) == (0, 1)

    async def recover() -> None:
        async with connect(broker.port) as client:
            assert (await read_log(client, "hit"))[0] == b"kept"
            row = await client.produce("hit", make_batch(b"doubtful", producer=(*producer, 1)))
            assert (row["error_code"], row["base_offset"]) == (0, 1)  # in the log already or not: stored once
            assert (await client.produce("hit", make_batch(b"new")))["base_offset"] == 2
            assert await read_log(client, "hit") == [b"kept", b"doubtful", b"new"]
            assert await read_log(client, "spared") == [b"kept", b"as ever"]

    producer: list[int] = []
    run(fail)
    code = broker.stop(end)
    # A stop that cannot vouch for everything may not look like a clean one.
    assert code == (-signal.SIGKILL if end is signal.SIGKILL else 1), broker.log[-5:]
    assert "Traceback" not in "".join(broker.log)
    broker.start()
    run(recover)
    assert broker.stop() == 0


def test_a_failed_flush_is_told_in_one_line(broker: BrokerProcess, flushes: Flushes) -> None:
    """However many requests it is answered to, and however often the broker looks at the log."""

    async def scenario() -> None:
        async with connect(broker.port) as client:
            await client.create("t")
            assert (await client.produce("t", make_batch(b"kept")))["error_code"] == 0
            flushes.fail()
            for acks in (-1, -1, 1, -1):
                row = await client.produce("t", make_batch(b"refused"), acks=acks)
                assert row["error_code"] == STORAGE_ERROR
                assert "the flush failed" in row["error_message"]
            flushes.heal()

    run(scenario)
    wait_for_line(broker, "until the broker is restarted")
    told = [line for line in broker.log if "t:0" in line and "failed" in line]
    assert len(told) == 1, told
    assert "until the broker is restarted" in told[0]


def test_a_flush_that_fails_under_several_producers_refuses_them_all(broker: BrokerProcess, flushes: Flushes) -> None:
    async def scenario() -> None:
        async with connect(broker.port) as client, connect(broker.port) as other, connect(broker.port) as reader:
            await client.create("t")
            await client.produce("t", make_batch(b"kept"))
            flushes.hang()
            for number in range(5):  # the first waits in its flush, the others for the next one
                client.send_produce("t", make_batch(b"c%d" % number))
                other.send_produce("t", make_batch(b"o%d" % number))
            assert (await reader.fetch("t", 0))["high_watermark"] == 1
            flushes.fail()
            for one in (client, other):
                for _ in range(5):
                    row = (await one.reply())["responses"][0]["partition_responses"][0]
                    assert row["error_code"] == STORAGE_ERROR
            assert await read_log(client, "t") == [b"kept"]
            flushes.heal()

    run(scenario)


def test_topics_are_not_made_on_a_disk_that_cannot_keep_them(broker: BrokerProcess, flushes: Flushes) -> None:
    async def refused() -> None:
        async with connect(broker.port) as client:
            flushes.fail()
            assert (await client.create("never"))["error_code"] == STORAGE_ERROR
            flushes.heal()

    async def made() -> None:
        async with connect(broker.port) as client:
            assert (await client.create("now"))["error_code"] == 0
            assert (await client.produce("now", make_batch(b"value")))["error_code"] == 0

    run(refused)
    broker.kill()
    broker.start()
    run(made)


def test_a_disk_that_is_slow_shows_in_the_time_of_flushes(tmp_path: Path, flushes: Flushes) -> None:
    async def produce() -> None:
        async with connect(broker.port) as client:
            for _ in range(5):
                assert (await client.produce("slow", make_batch(b"value")))["error_code"] == 0

    async def create() -> None:
        async with connect(broker.port) as client:
            await client.create("slow")

    def read() -> tuple[float, float]:
        rows = read_rows(scrape(port))
        return rows[key(f"{FLUSH_TIME}_count")], rows[key(f"{FLUSH_TIME}_sum")]

    port = free_port()
    arguments = ("--listen", f"http://127.0.0.1:{port}")
    with BrokerProcess(tmp_path / "data", before=flushes.before, arguments=arguments) as broker:
        run(create)
        flushes.slow_down()
        before = read()
        run(produce)
        after = read()
        flushes.heal()
    assert after[0] - before[0] >= 5
    assert after[1] - before[1] >= 5 * 20  # each takes 20 ms more
