"""A segment file loses its end to somebody else while a large answer, which lies in it, is on its way to a client."""

import asyncio
import os
import random
import socket
import threading
from pathlib import Path

from broker_process import BrokerProcess
from kafka_messages import CATALOG
from kafka_server import FETCH, frame, make_batch, run
from raw_connection import connect, read_log

SIZE = 1_000_000  # of a record, bytes
COUNT = 12


def test_only_that_connection_ends(tmp_path: Path) -> None:
    data = tmp_path / "data"

    async def scenario(broker: BrokerProcess) -> None:
        async with connect(broker.port) as client:
            for topic in ("shortened", "whole"):
                await client.create(topic)
            for _ in range(COUNT):
                assert (await client.produce("shortened", make_batch(bytes(SIZE))))["error_code"] == 0
            await client.produce("whole", make_batch(b"kept"))

            stalled = socket.socket()
            stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 128 * 1024)  # with less the kernel drops and waits
            stalled.settimeout(120)
            stalled.connect(("127.0.0.1", broker.port))
            partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": COUNT * SIZE}
            topics = [{"topic": "shortened", "partitions": [partition]}]
            asked = {"min_bytes": 1, "max_bytes": COUNT * SIZE, "topics": topics}
            stalled.sendall(frame(client.request(FETCH, 11, asked)))
            length = int.from_bytes(await asyncio.to_thread(stalled.recv, 4, socket.MSG_WAITALL), "big")
            assert length > 10 * SIZE  # whole batches, of which the sockets between us hold a part only

            (segment,) = (data / "shortened-0").glob("*.log")
            os.truncate(segment, SIZE)
            assert await asyncio.to_thread(drain, stalled) < length
            stalled.close()

            row = await client.fetch("shortened", COUNT - 1)
            assert row["error_code"] == 56  # KAFKA_STORAGE_ERROR
            assert await read_log(client, "whole") == [b"kept"]

    with BrokerProcess(data) as broker:
        run(lambda: scenario(broker))
        broker.stop()


def test_finding_4_4_a_file_shortened_again_and_again_under_load_ends_no_process(tmp_path: Path) -> None:
    """At whatever moment of a large read it happens: looking into a mapped page that has gone would be the end."""
    data = tmp_path / "data"
    values = [b"%08d" % number * 1000 for number in range(250)]

    async def fill() -> None:
        async with connect(broker.port) as client:
            await client.create("t")
            for value in values:
                assert (await client.produce("t", make_batch(value), acks=1))["error_code"] == 0
            assert (await client.produce("t", make_batch(b"last")))["error_code"] == 0

    async def check() -> None:
        async with connect(broker.port) as client:
            assert await read_log(client, "t") == [*values, b"last"]

    with BrokerProcess(data) as broker:
        run(fill)
        enough = threading.Event()
        readers = [threading.Thread(target=fetch_until, args=(broker.port, enough, chance)) for chance in range(3)]
        for reader in readers:
            reader.start()
        (segment,) = (data / "t-0").glob("*.log")
        shorten_often(segment, 1500, broker)
        enough.set()
        for reader in readers:
            reader.join(120)
            assert not reader.is_alive()
        assert broker.process is not None
        assert broker.process.poll() is None, f"the broker ended with {broker.process.returncode}"
        run(check)
        assert "Traceback" not in "".join(broker.log)


def shorten_often(segment: Path, times: int, broker: BrokerProcess) -> None:
    """Take the end of a file away and put it back, as long as the broker lives."""
    chance = random.Random(44)
    whole = segment.read_bytes()
    descriptor = os.open(segment, os.O_WRONLY)
    try:
        for _ in range(times):
            size = chance.randrange(len(whole))
            os.ftruncate(descriptor, size)
            os.pwrite(descriptor, whole[size:], size)
            assert broker.process is not None
            if broker.process.poll() is not None:
                break
    finally:
        os.close(descriptor)


def fetch_until(port: int, enough: threading.Event, seed: int) -> None:
    """Ask for large answers, whatever is in them; connect again when the broker ends the connection."""
    chance = random.Random(seed)
    head = {"api_key": FETCH, "api_version": 11, "correlation_id": 1, "client_id": "test"}
    while not enough.is_set():
        try:
            with socket.create_connection(("127.0.0.1", port), 10) as peer:
                while not enough.is_set():
                    offset = chance.randrange(200)
                    asked = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
                    topics = [{"topic": "t", "partitions": [asked]}]
                    values = head | {"min_bytes": 1, "max_bytes": 1 << 20, "topics": topics}
                    peer.sendall(frame(CATALOG[FETCH].request.encode(values, 11)))
                    left = int.from_bytes(peer.recv(4, socket.MSG_WAITALL), "big")
                    while left and (piece := peer.recv(min(left, 1 << 16))):
                        left -= len(piece)
                    if left:
                        break  # ended in the middle of an answer
        except OSError:
            enough.wait(0.01)  # reset, or the broker is gone


def drain(client: socket.socket) -> int:
    """Read until the other side ends the connection; how many bytes came."""
    count = 0
    try:
        while piece := client.recv(1 << 16):
            count += len(piece)
    except ConnectionResetError:
        pass
    return count
