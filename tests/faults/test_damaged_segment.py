"""A segment in the middle of a log is cut short, overwritten or changed while the broker is stopped, after a good stop.

Nobody looks at full segments at the next start. Whoever reads the damaged one is refused, or gets a batch that fails
its checksum, and never other bytes; the rest of the log is served, and the log of the broker says what is wrong.
"""

import subprocess
import sys
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from batches import read_rows
from broker_process import BrokerProcess
from counts import note
from kafka_server import make_batch, run
from korvet_fast._native import batch_headers
from raw_connection import connect, read_places

VALUES = [b"%06d" % number * 10_000 for number in range(40)]
SEGMENT = 10 * 60_200  # bytes: ten batches and no eleventh
MIDDLE = range(20, 30)
STORAGE_ERROR = 56  # KAFKA_STORAGE_ERROR


def cut_a_byte(data: bytes) -> bytes:
    return data[:-1]


def cut_half(data: bytes) -> bytes:
    return data[: len(data) // 2]


def cut_all(_: bytes) -> bytes:
    return b""


def blank_half(data: bytes) -> bytes:
    return data[: len(data) // 2] + bytes(len(data) - len(data) // 2)


def flip_a_bit(data: bytes) -> bytes:
    """Within a value: a batch's checksum does not cover its base offset."""
    place = len(data) // 2 + 200
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def read_sound(data: bytes) -> dict[int, bytes]:
    """What a client takes that looks at checksums: the records before the first batch that is not sound, by offset."""
    batches = batch_headers(data, True)
    size = sum(batch.size for batch in batches)
    return dict(read_rows(data[:size]))


def restart_damaged(
    broker: BrokerProcess,
    fill: Callable[[], Coroutine[Any, Any, None]],
    segment: Path,
    damage: Callable[[bytes], bytes],
) -> None:
    """Start the broker, fill `t`, stop it well, damage a segment's file, and start it again."""
    broker.start()
    run(fill)
    assert broker.stop() == 0
    segment.write_bytes(damage(segment.read_bytes()))
    broker.start()


@pytest.mark.parametrize("damage", [cut_a_byte, cut_half, cut_all, blank_half, flip_a_bit])
def test_nothing_false_is_served(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    broker = BrokerProcess(tmp_path / "data")

    async def fill() -> None:
        async with connect(broker.port) as client:
            assert (await client.create("t", segment_bytes=str(SEGMENT)))["error_code"] == 0
            for value in VALUES:
                assert (await client.produce("t", make_batch(value)))["error_code"] == 0

    async def read(room: int) -> None:
        refused: set[int] = set()
        told: set[int] = set()  # those of them that the broker itself refuses
        async with connect(broker.port) as client:
            for offset in range(len(VALUES)):
                row = await client.fetch("t", offset, partition_max_bytes=room)
                if row["error_code"]:
                    assert row["error_code"] == STORAGE_ERROR
                    told.add(offset)
                    continue
                found = read_sound(row["records"])
                assert found.items() <= dict(enumerate(VALUES)).items(), (offset, sorted(found))
                if offset not in found:
                    refused.add(offset)
            refused |= told
            assert not refused & {*range(MIDDLE.start), *range(MIDDLE.stop, len(VALUES))}
            assert refused, "nothing was damaged"
            assert await read_places(client, "t", start=MIDDLE.stop) == list(enumerate(VALUES))[MIDDLE.stop :]
        if room == 1:  # the others are the same records
            note(acknowledged=len(VALUES), lost=len(refused), told=len(told))

    try:
        restart_damaged(broker, fill, tmp_path / "data" / "t-0" / f"{MIDDLE.start:020d}.log", damage)
        for room in (1, 1 << 20):  # copied, and mapped
            run(partial(read, room))
        assert broker.stop() == 0
        told = [line for line in broker.log if "records of t:0 cannot be read: see" in line]
        assert len(told) == 1 if damage is not flip_a_bit else not told
    finally:
        broker.kill()


def test_consume_says_where_a_checksum_fails(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path / "data")

    async def fill() -> None:
        async with connect(broker.port) as client:
            await client.create("t")
            for value in (b"first", b"second" * 100, b"third"):
                assert (await client.produce("t", make_batch(value)))["error_code"] == 0

    def consume(offset: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "korvet_fast", "consume", "t", "--from", offset, "--until-end"]
        return subprocess.run([*command, "--bootstrap", broker.bootstrap], capture_output=True, text=True, timeout=300)

    try:
        restart_damaged(broker, fill, tmp_path / "data" / "t-0" / f"{0:020d}.log", flip_a_bit)
        done = consume("earliest")
        assert (done.returncode, done.stdout) == (1, "first\n")
        assert "partition 0: the batch with offset 1 fails its checksum; go on behind it, from offset 2" in done.stderr
        assert consume("2").stdout == "third\n"
    finally:
        broker.kill()
