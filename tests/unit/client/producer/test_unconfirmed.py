"""With acks=0 a message is delivered when the system has it: then it is sent, also if the producer ends at once."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from korvet_fast.client import AsyncProducer
from korvet_fast.client.producer import Outcome
from scripted_broker import frame

Run = Callable[[Callable[[], Awaitable[Any]]], Any]

PRODUCE, METADATA = 0, 3
SPOKEN = [{"api_key": key, "min_version": 3, "max_version": 9} for key in (PRODUCE, METADATA)]
PATIENCE = 30  # seconds; whoever has not come back by then hangs


class SlowReader:
    """A broker of one partition that reads no Produce request before `reads`. `produced`: those that came whole."""

    def __init__(self) -> None:
        self.reads = asyncio.Event()
        self.ended = asyncio.Event()
        self.produced = 0
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._socket.bind(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]

    async def start(self) -> asyncio.Server:
        return await asyncio.start_server(self._serve, sock=self._socket)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        key = -1
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                key, version, correlation = await self._read_head(reader)
                if key == PRODUCE:
                    await self.reads.wait()
                await reader.readexactly(size - 8)
                if key == PRODUCE:
                    self.produced += 1
                else:
                    writer.write(frame(key, version, correlation, self._answer(key)))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the producer has ended
        finally:
            writer.close()
            if key == PRODUCE:
                self.ended.set()

    async def _read_head(self, reader: asyncio.StreamReader) -> tuple[int, int, int]:
        head = await reader.readexactly(8)
        return int.from_bytes(head[:2], "big"), int.from_bytes(head[2:4], "big"), int.from_bytes(head[4:], "big")

    def _answer(self, key: int) -> dict[str, Any]:
        if key != METADATA:
            return {"error_code": 0, "api_keys": SPOKEN}
        lists: dict[str, Any] = {"replica_nodes": [], "isr_nodes": [], "offline_replicas": []}
        row = {"partition_index": 0, "leader_id": 1, "error_code": 0, "leader_epoch": 0, **lists}
        topics = [{"name": "t", "error_code": 0, "partitions": [row]}]
        brokers = [{"node_id": 1, "host": "127.0.0.1", "port": self.port}]
        return {"brokers": brokers, "cluster_id": "c", "controller_id": 1, "topics": topics}


def test_what_was_delivered_is_sent_by_a_producer_that_ends(run: Run) -> None:
    """As much as asyncio held for a broker that read slowly was delivered, and lost when the connection was closed."""

    async def work() -> None:
        broker = SlowReader()
        async with await broker.start():
            p = AsyncProducer(f"127.0.0.1:{broker.port}", acks="0", batch_num_messages=1)
            sent = [p.send("t", bytes(5000), partition=0) for _ in range(4000)]
            delivered = -1
            while p.metrics().delivered > delivered or not delivered:  # until the system takes no more
                delivered = p.metrics().delivered
                await asyncio.sleep(0.1)
            assert 0 < delivered < len(sent), "the broker holds them up"
            await p.abort()
            delivered = [each.outcome for each in sent].count(Outcome.DELIVERED)
            broker.reads.set()
            async with asyncio.timeout(PATIENCE):
                await broker.ended.wait()
            assert broker.produced >= delivered

    run(work)
