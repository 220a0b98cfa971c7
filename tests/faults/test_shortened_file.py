"""A segment file loses its end to somebody else while a large answer, which lies in it, is on its way to a client."""

import asyncio
import os
import socket
from pathlib import Path

from broker_process import BrokerProcess
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
            stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            stalled.settimeout(30)
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


def drain(client: socket.socket) -> int:
    """Read until the other side ends the connection; how many bytes came."""
    count = 0
    try:
        while piece := client.recv(1 << 16):
            count += len(piece)
    except ConnectionResetError:
        pass
    return count
