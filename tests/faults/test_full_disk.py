"""A disk that fills up (a small tmpfs, mounted for the test): no false acknowledgement, service once there is room."""

import asyncio
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer

from broker_process import BrokerProcess
from counts import note_values
from faults.full_disk import fill, make_room
from kafka_server import RawClient, make_batch, run
from korvet_fast.cli import produce, root
from korvet_fast.client.producer import AsyncProducer, Expired
from korvet_fast.client.protocol.errors import BrokerError
from korvet_fast.errors import Errors
from korvet_fast.wire.kafka.errors import CODES
from raw_connection import connect, read_log, start_producer

STORAGE_ERROR = CODES["KAFKA_STORAGE_ERROR"]
SETTINGS = ("log.segment.bytes=300000",)


def value(number: int, size: int = 40_000) -> bytes:
    return b"%06d" % number + bytes(size)


@pytest.fixture
def filler(small_disk: Path) -> Path:
    """A file of 1.5 MiB that can make room when it goes."""
    place = small_disk / "filler"
    place.write_bytes(bytes(1_500_000))
    return place


@pytest.fixture
def broker(small_disk: Path, filler: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(small_disk / "data", *SETTINGS) as running:
        yield running


async def produce_until_full(client: RawClient, topic: str, producer: tuple[int, int]) -> int:
    """How many batches were acknowledged before the first refusal, which is the last one sent."""
    for number in range(1_000):
        row = await client.produce(topic, make_batch(value(number), producer=(*producer, number)))
        if row["error_code"]:
            assert (row["error_code"], row["base_offset"]) == (STORAGE_ERROR, -1)
            assert "No space left on device" in row["error_message"]
            return number
        assert row["base_offset"] == number
    raise AssertionError("the disk does not fill up")


async def create_until_full(client: RawClient) -> str:
    """The topic that was refused; the last page of the disk has room for some."""
    for number in range(100):
        row = await client.create(f"room-{number:03}")
        if row["error_code"]:
            assert row["error_code"] == STORAGE_ERROR
            return str(row["name"])
    raise AssertionError("the disk does not fill up")


async def produce_when_possible(client: RawClient, topic: str, batch: bytes) -> int:
    """Send again until the broker takes it; the offset it got."""
    while True:
        row = await client.produce(topic, bytearray(batch))
        if row["error_code"] == 0:
            return int(row["base_offset"])
        assert row["error_code"] == STORAGE_ERROR
        await asyncio.sleep(0.01)


async def check_log(client: RawClient, count: int) -> None:
    """So many records were acknowledged, and they are there, once and in order."""
    stored, found = [value(number) for number in range(count)], await read_log(client, "t")
    note_values(stored, found)
    assert found == stored


@pytest.mark.parametrize("restart", [None, signal.SIGTERM, signal.SIGKILL])
def test_a_full_disk_takes_nothing_and_loses_nothing(
    broker: BrokerProcess, filler: Path, restart: signal.Signals | None
) -> None:
    async def run_full() -> None:
        async with connect(broker.port) as client:
            await client.create("t")
            producer.extend(await start_producer(client))
            kept.append(await produce_until_full(client, "t", (producer[0], producer[1])))
            for _ in range(5):  # and it stays so
                row = await client.produce("t", make_batch(value(kept[0]), producer=(*producer, kept[0])))
                assert row["error_code"] == STORAGE_ERROR
            assert await read_log(client, "t") == [value(number) for number in range(kept[0])]
            fill(filler)
            refused.append(await create_until_full(client))
            assert await read_log(client, "t") == [value(number) for number in range(kept[0])]

    async def go_on() -> None:
        async with connect(broker.port) as client:
            offset = await produce_when_possible(client, "t", make_batch(value(kept[0]), producer=(*producer, kept[0])))
            assert offset == kept[0]
            assert (await client.create(refused[0]))["error_code"] == 0
            assert (await client.produce(refused[0], make_batch(b"room")))["base_offset"] == 0
            await check_log(client, kept[0] + 1)

    producer: list[int] = []
    kept: list[int] = []
    refused: list[str] = []
    run(run_full)
    assert kept[0] > 10
    if restart is not None:
        broker.stop(restart)
        make_room(filler)
        broker.start()
    else:
        make_room(filler)
    run(go_on)
    assert broker.stop() == 0
    assert "Traceback" not in "".join(broker.log)


def test_a_broker_that_starts_on_a_full_disk_says_so(broker: BrokerProcess, filler: Path) -> None:
    async def scenario() -> None:
        async with connect(broker.port) as client:
            await client.create("t")
            await client.produce("t", make_batch(b"kept"))
            fill(filler)
            await create_until_full(client)

    async def later() -> None:
        async with connect(broker.port) as client:
            assert await read_log(client, "t") == [b"kept"]

    run(scenario)
    with pytest.raises(AssertionError, match="did not become ready"):
        for _ in range(100):  # each start writes a line; the last page of the disk has room for some
            broker.kill()
            broker.start()
    assert "No space left on device" in "".join(broker.log)
    assert "Traceback" not in "".join(broker.log)
    make_room(filler)
    broker.start()
    run(later)


def test_an_idempotent_client_waits_for_room(broker: BrokerProcess, filler: Path) -> None:
    """librdkafka takes the error for a passing one: when there is room, all its records are there, once, in order."""
    refused: list[str] = []
    delivered: list[int] = []
    stuck = threading.Event()

    def note(number: int, error: object) -> None:
        if error is None:
            delivered.append(number)
        else:
            refused.append(str(error))

    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "enable.idempotence": True,
            "linger.ms": 0,
            "batch.num.messages": 1,
            "retry.backoff.ms": 10,
            "retry.backoff.max.ms": 50,
            "message.timeout.ms": 200_000,
        }
    )
    for number in range(75):  # 3 MB: more than there is room for with the filler, less than without
        producer.produce("t", value(number), on_delivery=lambda error, _, number=number: note(number, error))
    log = broker.log
    while not stuck.is_set():
        producer.poll(0.05)
        if any("No space left on device" in line for line in log):
            stuck.set()
    assert len(delivered) < 75
    make_room(filler)
    assert producer.flush(200) == 0
    assert refused == []

    async def scenario() -> None:
        async with connect(broker.port) as client:
            await check_log(client, 75)

    run(scenario)


def test_our_producer_says_at_last_why_the_broker_refused(
    broker: BrokerProcess, filler: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    why = "No space left on device; make room, appends then go on by themselves (KAFKA_STORAGE_ERROR)"

    async def scenario() -> None:
        async with AsyncProducer(broker.bootstrap, delivery_timeout_ms=10_000) as p:
            await p.send("t", b"kept")
            fill(filler)
            with pytest.raises(Expired, match=r"not delivered within delivery\.timeout\.ms") as failed:
                await p.send("t", value(1))
            assert str(failed.value).endswith(why)
            assert isinstance(failed.value.cause, BrokerError)
            assert failed.value.cause.error is Errors.KAFKA_STORAGE_ERROR

    run(scenario)
    monkeypatch.setattr(produce, "PATIENCE", 10.0)
    lines = tmp_path / "lines"
    lines.write_bytes(value(1))
    said = CliRunner().invoke(root, ["produce", "t", str(lines), "--bootstrap", broker.bootstrap])
    assert said.exit_code == 1
    assert "(10 s); the last error was: " in said.output
    assert f"{why}; 0 records stored before" in said.output
