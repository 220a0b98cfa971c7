"""A broker of one partition that answers honestly, but for what a test has it say or do instead."""

import asyncio
from collections.abc import Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from scripted_broker import frame

Lie = Callable[[bytes], bytes | None]  # an honest answer with its length -> what is sent instead; None: nothing, ever

PRODUCE, METADATA, API_VERSIONS, INIT_PRODUCER_ID = 0, 3, 18, 22
SPOKEN = [
    {"api_key": key, "min_version": low, "max_version": high} for key, low, high in [(0, 3, 9), (3, 0, 12), (22, 0, 4)]
]
FAST = {
    "retry_backoff_ms": 1, "retry_backoff_max_ms": 5, "request_timeout_ms": 100, "delivery_timeout_ms": 300,
}  # fmt: skip


class LyingBroker:
    """Answers one partition's producer. `lies`: what becomes of answers, by API; `row` and `node`: fields of the answer
    to Produce and of the broker in Metadata; `answers`: fields of answers, by API; `cut`: bytes of the first
    Produce request that are read before the connection is closed.
    """

    def __init__(self) -> None:
        self.lies: dict[int, Lie] = {}
        self.row: dict[str, Any] = {}
        self.node: dict[str, Any] = {}
        self.answers: dict[int, dict[str, Any]] = {}
        self.cut: int | None = None
        self.endless = False
        self.produced = 0  # requests
        self.told = 0  # answers to Metadata
        self.port = 0

    @asynccontextmanager
    async def run(self) -> Any:
        writers: set[asyncio.StreamWriter] = set()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writers.add(writer)
            try:
                while await self._answer_one(reader, writer):
                    pass
            except (asyncio.IncompleteReadError, ConnectionError):
                pass  # the client has gone: it believes nothing more
            finally:
                writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield f"127.0.0.1:{self.port}"
        finally:
            server.close()
            for writer in writers:
                writer.close()
                with suppress(ConnectionError):
                    await writer.wait_closed()
            await server.wait_closed()

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        size = int.from_bytes(await reader.readexactly(4), "big")
        begin = await reader.readexactly(8)
        key, version = int.from_bytes(begin[:2], "big"), int.from_bytes(begin[2:4], "big")
        if key == PRODUCE and self.cut is not None:
            cut, self.cut = self.cut, None
            await reader.readexactly(min(cut, size - 8))
            return False
        await reader.readexactly(size - 8)
        self.produced += key == PRODUCE
        self.told += key == METADATA
        honest = frame(key, version, int.from_bytes(begin[4:], "big"), self._values(key))
        answer = self.lies.get(key, bytes)(honest)
        if answer is None:
            await reader.readexactly(1)
            return True
        writer.write(answer)
        while self.endless:
            await writer.drain()
            writer.write(bytes(65536))
        await writer.drain()
        return len(answer) == len(honest)

    def _values(self, key: int) -> dict[str, Any]:
        return self._honest(key) | self.answers.get(key, {})

    def _honest(self, key: int) -> dict[str, Any]:
        if key == API_VERSIONS:
            return {"error_code": 0, "api_keys": SPOKEN}
        if key == INIT_PRODUCER_ID:
            return {"error_code": 0, "producer_id": 7, "producer_epoch": 0}
        if key == METADATA:
            partition = {"partition_index": 0, "leader_id": 1, "error_code": 0, "leader_epoch": 0}
            partition |= {"replica_nodes": [], "isr_nodes": [], "offline_replicas": []}
            topic = {"name": "t", "error_code": 0, "partitions": [partition]}
            broker = {"node_id": 1, "host": "127.0.0.1", "port": self.port} | self.node
            return {"brokers": [broker], "cluster_id": "c", "controller_id": 1, "topics": [topic]}
        row = {"index": 0, "error_code": 0, "base_offset": 5} | self.row
        return {"responses": [{"name": "t", "partition_responses": [row]}]}
