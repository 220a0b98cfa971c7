"""A broker with a coordinator of transactions, which may leave partitions out, and requests without an answer."""

import asyncio
from collections.abc import Sequence
from contextlib import asynccontextmanager
from typing import Any

from korvet_fast.client.protocol.transactions import ADD_PARTITIONS_TO_TXN, END_TXN
from korvet_fast.wire.kafka.shapes.cluster import API_VERSIONS, METADATA
from korvet_fast.wire.kafka.shapes.coordinators import FIND_COORDINATOR
from korvet_fast.wire.kafka.shapes.message import Message
from korvet_fast.wire.kafka.shapes.produce import PRODUCE
from korvet_fast.wire.kafka.shapes.producers import INIT_PRODUCER_ID

Results = Sequence[tuple[int, int]]  # partition and error code
SPOKEN = (
    (API_VERSIONS, 3), (FIND_COORDINATOR, 2), (INIT_PRODUCER_ID, 4), (METADATA, 12), (ADD_PARTITIONS_TO_TXN, 3),
    (END_TXN, 3), (PRODUCE, 9),
)  # fmt: skip
BY_KEY = {message.key: message for message, _ in SPOKEN}


class ForgetfulCoordinator:
    """A broker that leads the partitions 0 and 1 of topic `t`. `left_out`: so many answers to AddPartitionsToTxn leave
    partition 1 out, or say what `results` has. It refuses what is sent outside the transaction, and counts it.
    `silent`: keys of requests that it does not answer.
    """

    def __init__(self, left_out: int = 0, results: Results = ()) -> None:
        self.left_out = left_out
        self.results = results
        self.added: set[int] = set()
        self.produced: list[int] = []
        self.outside: list[int] = []
        self.ends: list[bool] = []
        self.asked = 0
        self.silent: set[int] = set()
        self.requests: list[int] = []  # their keys
        self._port = 0

    @asynccontextmanager
    async def run(self) -> Any:
        writers: list[asyncio.StreamWriter] = []
        tasks: list[asyncio.Task[Any] | None] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writers.append(writer)
            tasks.append(asyncio.current_task())
            try:
                while True:
                    request = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
                    key, version = (int.from_bytes(request[at : at + 2], "big") for at in (0, 2))
                    self.requests.append(key)
                    while key in self.silent:
                        await asyncio.sleep(0.005)
                    values = BY_KEY[key].request.decode(request, version, 1000)
                    answer = {"correlation_id": values["correlation_id"], **self._answer(BY_KEY[key], values)}
                    writer.write(b"".join(bytes(part) for part in BY_KEY[key].response.frame(answer, version)))
            except (asyncio.IncompleteReadError, ConnectionError):
                pass  # the producer has closed the connection
            finally:
                writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        self._port = server.sockets[0].getsockname()[1]
        try:
            yield f"127.0.0.1:{self._port}"
        finally:
            server.close()
            self.silent.clear()
            for writer in writers:
                writer.close()
            await asyncio.gather(*filter(None, tasks))
            await server.wait_closed()

    def _answer(self, message: Message, values: dict[str, Any]) -> dict[str, Any]:
        address = {"node_id": 1, "host": "127.0.0.1", "port": self._port}
        if message is API_VERSIONS:
            rows = [{"api_key": each.key, "min_version": 0, "max_version": high} for each, high in SPOKEN]
            return {"error_code": 0, "api_keys": rows}
        if message is FIND_COORDINATOR:
            return {"error_code": 0, "error_message": None, **address}
        if message is INIT_PRODUCER_ID:
            return {"error_code": 0, "producer_id": 7, "producer_epoch": 0}
        if message is METADATA:
            lists = {"replica_nodes": [], "isr_nodes": [], "offline_replicas": []}
            row = {"leader_id": 1, "error_code": 0, "leader_epoch": 0, **lists}
            topic = {"name": "t", "error_code": 0, "partitions": [{"partition_index": at, **row} for at in (0, 1)]}
            return {"brokers": [address], "cluster_id": "c", "controller_id": 1, "topics": [topic]}
        if message is END_TXN:
            self.ends.append(values["committed"])
            return {"error_code": 0}
        return self._add(values) if message is ADD_PARTITIONS_TO_TXN else self._produce(values)

    def _add(self, values: dict[str, Any]) -> dict[str, Any]:
        self.asked += 1
        (topic,) = values["topics"]
        told: Results = [(index, 0) for index in topic["partitions"]]
        if self.asked <= self.left_out:
            told = self.results or [(0, 0)]
        self.added |= {index for index, _ in told} - {index for index, code in told if code}
        rows = [{"index": index, "error_code": code} for index, code in told]
        return {"results": [{"name": "t", "partitions": rows}] if rows else []}

    def _produce(self, values: dict[str, Any]) -> dict[str, Any]:
        (topic,) = values["topic_data"]
        indexes = [row["index"] for row in topic["partition_data"]]
        self.produced += indexes
        self.outside += [index for index in indexes if index not in self.added]
        rows = [{"index": each, "error_code": 0 if each in self.added else 48, "base_offset": 0} for each in indexes]
        return {"responses": [{"name": "t", "partition_responses": rows}]}
