"""kill -9, and then the end of a log is not as it was written: the broker starts and serves what is whole."""

import re
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path

from broker_process import BrokerProcess
from counts import note, note_values
from kafka_server import make_batch, run
from korvet_fast._native import batch_headers
from raw_connection import connect, read_log

KEPT = [b"one", b"two", b"three"]
ENDS = list(accumulate(len(make_batch(value)) for value in KEPT))  # of the batches, in a whole log


def _append(data: bytes) -> Callable[[bytes], bytes]:
    return lambda log: log + data


def _cut(size: int) -> Callable[[bytes], bytes]:
    return lambda log: log[:-size]


def _flip(from_end: int) -> Callable[[bytes], bytes]:
    return lambda log: log[:-from_end] + bytes([log[-from_end] ^ 1]) + log[len(log) - from_end + 1 :]


def _last(log: bytes) -> bytes:
    """The last batch, as if it were the next one: whole but for what follows the header."""
    batch = bytearray(log[batch_headers(log, True)[-1].start :])
    batch[0:8] = len(KEPT).to_bytes(8, "big")
    return bytes(batch)


# What happens to the file, and how many of its three batches of one record are whole afterwards. One partition each.
TEARS: list[tuple[Callable[[bytes], bytes], int]] = [
    (_append(b""), 3),
    (_append(b"\0"), 3),
    (_append(bytes(100_000)), 3),
    (_append(b"\xff" * 5_000), 3),
    (_append(bytes(range(256)) * 20), 3),
    (lambda log: log + _last(log)[:-1], 3),  # a torn append
    (lambda log: log + _last(log)[:61], 3),
    (lambda log: log + _last(log)[:11], 3),
    (lambda log: log + _last(log)[:-1] + b"\xff", 3),  # of full length, but one block was never written
    (lambda log: log + log, 3),  # offsets that begin anew
    *((_cut(size), sum(end <= ENDS[-1] - size for end in ENDS)) for size in range(1, 201)),
    (_flip(1), 2),
    (_flip(20), 2),
    (lambda log: log[:1], 0),
    (lambda log: b"", 0),
    (lambda log: bytes(len(log)), 0),
    (lambda log: _flip(len(log) - 17)(log), 0),
]


def count(broker: BrokerProcess, found: list[tuple[int, bytes]], silent: set[int]) -> None:
    """Of what was acknowledged, what is gone; the broker says where it cut, unless a log ends with a whole batch.

    `found`: partition and value. `silent`: the partitions that end so.
    """
    note_values([(index, value) for index in range(len(TEARS)) for value in KEPT], found)
    lost = {(index, offset) for index, (_, whole) in enumerate(TEARS) for offset in range(whole, len(KEPT))}
    cuts = re.findall(r"/t-(\d+)/0+\.log: \d+ bytes cut off behind offset (\d+)", "".join(broker.log))
    told = {(int(index), offset) for index, end in cuts for offset in range(int(end), len(KEPT))}
    note(told=len(told))
    assert told == {(index, offset) for index, offset in lost if index not in silent}
    assert len(cuts) == len(TEARS) - len(silent)


def test_what_is_whole_is_served(tmp_path: Path) -> None:
    silent: set[int] = set()
    found: list[tuple[int, bytes]] = []

    async def write() -> None:
        async with connect(broker.port) as client:
            await client.create("t", len(TEARS))
            for index in range(len(TEARS)):
                for value in KEPT:
                    await client.produce("t", make_batch(value), index=index)

    async def check() -> None:
        async with connect(broker.port) as client:
            for index, (_, whole) in enumerate(TEARS):
                values = await read_log(client, "t", index)
                found.extend((index, value) for value in values)
                assert values == KEPT[:whole], index
                row = await client.produce("t", make_batch(b"new"), index=index)
                assert (row["error_code"], row["base_offset"]) == (0, whole), index
                assert await read_log(client, "t", index) == [*KEPT[:whole], b"new"], index

    async def check_again() -> None:
        async with connect(broker.port) as client:
            for index, (_, whole) in enumerate(TEARS):
                assert await read_log(client, "t", index) == [*KEPT[:whole], b"new"], index

    with BrokerProcess(tmp_path / "data") as broker:
        run(write)
        broker.kill()
        for index, (tear, _) in enumerate(TEARS):
            file = tmp_path / "data" / f"t-{index}" / f"{0:020}.log"
            log = file.read_bytes()
            file.write_bytes(torn := tear(log))
            if log.startswith(torn) and len(torn) in (0, *ENDS):
                silent.add(index)
        broker.start()
        run(check)
        count(broker, found, silent)
        broker.kill()
        broker.start()
        run(check_again)
        assert "Traceback" not in "".join(broker.log)


def test_the_registry_may_be_torn_too(tmp_path: Path) -> None:
    async def write() -> None:
        async with connect(broker.port) as client:
            await client.create("t")
            await client.produce("t", make_batch(b"kept"))

    async def check() -> None:
        async with connect(broker.port) as client:
            assert await read_log(client, "t") == [b"kept"]
            assert (await client.create("next"))["error_code"] == 0

    with BrokerProcess(tmp_path / "data") as broker:
        run(write)
        broker.kill()
        (log,) = (tmp_path / "data" / "@registry").glob("*.log")
        log.write_bytes(log.read_bytes() + b"\0\0\0\0torn")
        broker.start()
        run(check)
