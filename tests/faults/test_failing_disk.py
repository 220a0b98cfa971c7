"""A disk that fails writes and then works again: what is acknowledged afterwards does not stand on a hole.

After a write that failed, the kernel's pages are clean: they can be read, the next flush "succeeds", and the disk has
something else. So the disk is unmounted before the last look, and all that is seen then comes from it.
"""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from faults.failing_disk import FailingDisk
from history import History, Sent
from kafka_server import RawClient, make_batch, run
from korvet_fast.wire.kafka.errors import CODES
from raw_connection import connect, read_places

STORAGE_ERROR = CODES["KAFKA_STORAGE_ERROR"]
DIGITS = 1000  # of a record's number


@pytest.fixture
def failing_disk(tmp_path: Path) -> Iterator[FailingDisk]:
    disk = FailingDisk(tmp_path)
    try:
        disk.make()
        yield disk
    finally:
        disk.remove()


async def produce(client: RawClient, history: History, producer: str, first: int, count: int = 1) -> int:
    """One batch of `count` records, flushed before its answer; the answer's error code."""
    sent = [Sent(producer, number) for number in range(first, first + count)]
    for one in sent:
        history.note_sent(one, 0, once=False)
    row = await client.produce("t", make_batch(*(f"{producer}:{one.number:0{DIGITS}}".encode() for one in sent)))
    for place, one in enumerate(sent, row["base_offset"]):
        if row["error_code"]:
            history.note_refused(one, str(row["error_code"]))
        else:
            history.note_acknowledged(one, (0, place))
    return int(row["error_code"])


async def refuse_topic(client: RawClient) -> None:
    """Until the disk cannot keep one; their names fill a block of the disk quickly."""
    for number in range(200):
        row = await client.create(f"refused-{number}-".ljust(240, "x"))
        if row["error_code"]:
            assert row["error_code"] == STORAGE_ERROR
            return
    raise AssertionError("the disk does not fail")


@pytest.mark.parametrize("size", [1000, 1], ids=["1 MB", "1 KB"])
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL], ids=lambda end: end.name)
def test_finding_1_1_what_is_acknowledged_after_a_failed_flush_is_on_the_disk(
    failing_disk: FailingDisk, end: signal.Signals, size: int
) -> None:
    history = History()

    async def fail() -> None:
        async with connect(broker.port) as client:
            await client.create("t")
            for number in range(3):
                assert await produce(client, history, "before", number) == 0
            failing_disk.fail()
            for number in range(100):  # the block that is begun has room for some
                if await produce(client, history, "refused", number * size, size) == STORAGE_ERROR:
                    break
            assert history.refused
            await refuse_topic(client)

    async def go_on() -> None:
        async with connect(broker.port) as client:
            for number in range(5):
                assert await produce(client, history, "after", number) == 0
            assert (await client.create("later"))["error_code"] == 0
            assert (await client.produce("later", make_batch(b"kept")))["base_offset"] == 0

    async def check() -> None:
        async with connect(broker.port) as client:
            history.check({0: await read_places(client, "t")})
            assert await read_places(client, "later") == [(0, b"kept")]
            assert await produce(client, history, "last", 0) == 0

    with BrokerProcess(failing_disk.place / "data") as broker:
        run(fail)
        failing_disk.heal()
        broker.stop(end)
        for step in (go_on, check):
            broker.start()
            run(step)
            broker.kill()
            failing_disk.unmount()
            failing_disk.mount()
        assert "Traceback" not in "".join(broker.log)


def test_finding_1_1_a_block_of_zeros_is_not_taken_for_written(failing_disk: FailingDisk) -> None:
    """A batch whose last block, all zeros, was not written looks whole: ext4 reads zeros where nothing was written.

    What comes behind it must not go into that block: ext4 would put it on the device and still read zeros.
    """
    around = len(make_batch(bytes(1000))) - 1000
    values = [b"x" * (4000 - around), bytes(200), b"after", b"after that"]  # two bytes less around the second

    async def fail() -> None:
        async with connect(broker.port) as client:
            await client.create("t")
            assert (await client.produce("t", make_batch(values[0])))["base_offset"] == 0
            (segment,) = (failing_disk.place / "data" / "t-0").glob("*.log")
            assert segment.stat().st_size == 4000
            failing_disk.fail()
            assert (await client.produce("t", make_batch(values[1])))["error_code"] == STORAGE_ERROR

    async def go_on() -> None:
        async with connect(broker.port) as client:
            assert [value for _, value in await read_places(client, "t")] == values[:2]
            for offset in (2, 3):
                assert (await client.produce("t", make_batch(values[offset])))["base_offset"] == offset

    async def check() -> None:
        async with connect(broker.port) as client:
            assert [value for _, value in await read_places(client, "t")] == values

    with BrokerProcess(failing_disk.place / "data") as broker:
        run(fail)
        failing_disk.heal()
        broker.stop(signal.SIGTERM)
        broker.start()
        run(go_on)
        broker.kill()
        failing_disk.unmount()
        failing_disk.mount()
        broker.start()
        run(check)
