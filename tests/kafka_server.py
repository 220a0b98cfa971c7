"""A whole broker inside the test's own event loop, and a client that speaks in raw frames."""

import asyncio
import itertools
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvloop

import batches
from kafka_messages import CATALOG
from korvet_fast.config import read_settings
from korvet_fast.core.broker import Broker
from korvet_fast.core.clock import Clock
from korvet_fast.core.fair_executor import FairExecutor
from korvet_fast.endpoint import KAFKA, Address, Endpoint
from korvet_fast.errors import Errors
from korvet_fast.net.certificates import Certificates
from korvet_fast.net.limits import Limits, read_limits
from korvet_fast.net.serve import WORKERS
from korvet_fast.net.server import Server
from korvet_fast.store.embedded.store import EmbeddedStore
from korvet_fast.store.interface import Store
from korvet_fast.wire.kafka.dialect import KafkaDialect
from korvet_fast.wire.kafka.errors import CODES

ELEMENTS = 1_000_000
PRODUCE, FETCH, LIST_OFFSETS, METADATA, API_VERSIONS, CREATE_TOPICS, DELETE_TOPICS = 0, 1, 2, 3, 18, 19, 20
DELETE_RECORDS, INIT_PRODUCER_ID, OFFSET_FOR_LEADER_EPOCH, DESCRIBE_CONFIGS, ALTER_CONFIGS = 21, 22, 23, 32, 33
OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR, JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP = 8, 9, 10, 11, 12, 13, 14
DESCRIBE_GROUPS, LIST_GROUPS, DELETE_GROUPS, OFFSET_DELETE = 15, 16, 42, 47
CONSUMER_GROUP_HEARTBEAT, CONSUMER_GROUP_DESCRIBE = 68, 69
DESCRIBE_LOG_DIRS, CREATE_PARTITIONS, INCREMENTAL_ALTER_CONFIGS, DESCRIBE_CLUSTER = 35, 37, 44, 60
ALTER_PARTITION_REASSIGNMENTS, LIST_PARTITION_REASSIGNMENTS = 45, 46
SASL_HANDSHAKE, DESCRIBE_ACLS, CREATE_ACLS, DELETE_ACLS, DESCRIBE_USER_SCRAM_CREDENTIALS = 17, 29, 30, 31, 50
SASL_AUTHENTICATE, ALTER_USER_SCRAM_CREDENTIALS = 36, 51
DESCRIBE_CLIENT_QUOTAS, ALTER_CLIENT_QUOTAS = 48, 49
DESCRIBE_QUORUM, LIST_CONFIG_RESOURCES, DESCRIBE_TOPIC_PARTITIONS = 55, 74, 75


def frame(payload: bytes | bytearray) -> bytes:
    """`payload` behind its length."""
    return len(payload).to_bytes(4, "big") + payload


def make_batch(*values: bytes, time_ms: int | None = None, **options: Any) -> bytearray:
    """A batch of records with these values, of the present time unless told otherwise; options as in `batches`."""
    now = int(time.time() * 1000) if time_ms is None else time_ms
    return batches.make_batch(values, times=[now] * len(values), **options)


def error_of(row: dict[str, Any]) -> Errors:
    """The error of a row's code."""
    return next((error for error, code in CODES.items() if code == row["error_code"]), Errors.NONE)


class RawClient:
    """Sends requests made from the shapes, and decodes the answers; any number may be in flight."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.expected: list[tuple[int, int, int]] = []  # key, version, correlation id
        self._numbers = itertools.count(1)

    def request(self, key: int, version: int, values: dict[str, Any]) -> bytes:
        """A request without its length prefix."""
        header = {"api_key": key, "api_version": version, "correlation_id": next(self._numbers), "client_id": "test"}
        return CATALOG[key].request.encode(header | values, version)

    def send(self, key: int, version: int, values: dict[str, Any], *, answered: bool = True) -> None:
        payload = self.request(key, version, values)
        self.writer.write(frame(payload))
        if answered:
            self.expected.append((key, version, int.from_bytes(payload[4:8], "big")))

    async def raw_reply(self) -> bytes:
        size = int.from_bytes(await self.reader.readexactly(4), "big")
        return await self.reader.readexactly(size)

    async def reply(self) -> dict[str, Any]:
        """The next answer; its correlation id must be that of the oldest request not answered."""
        key, version, correlation_id = self.expected.pop(0)
        answer = CATALOG[key].response.decode(await self.raw_reply(), version, ELEMENTS)
        assert answer["correlation_id"] == correlation_id
        return answer

    async def ask(self, key: int, version: int, **values: Any) -> dict[str, Any]:
        self.send(key, version, values)
        return await self.reply()

    async def ended(self) -> bytes:
        """The bytes that still came before the broker closed the connection."""
        try:
            return await self.reader.read()
        except ConnectionResetError:
            return b""

    # The two that every test needs

    def send_produce(
        self, topic: str, records: Any, *, index: int = 0, acks: int = -1, version: int = 9, timeout_ms: int = 10_000
    ) -> None:
        partition = {"index": index, "records": records}
        values = {"acks": acks, "timeout_ms": timeout_ms}
        values |= {"topic_data": [{"name": topic, "partition_data": [partition]}]}
        self.send(PRODUCE, version, values, answered=acks != 0)

    async def produce(self, topic: str, records: Any, **options: Any) -> dict[str, Any]:
        """The one partition's row of the answer."""
        self.send_produce(topic, records, **options)
        return _only(_only((await self.reply())["responses"])["partition_responses"])

    def send_fetch(self, topic: str, offset: int, *, index: int = 0, version: int = 12, **values: Any) -> None:
        partition = {"partition": index, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
        partition |= {name: values.pop(name) for name in list(values) if name in _OF_PARTITION}
        defaults = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 25}
        topics = [{"topic": topic, "partitions": [partition]}]
        self.send(FETCH, version, defaults | values | {"topics": topics})

    async def fetch(self, topic: str, offset: int, **options: Any) -> dict[str, Any]:
        """The one partition's row of the answer."""
        self.send_fetch(topic, offset, **options)
        return _only(_only((await self.reply())["responses"])["partitions"])

    async def create(self, name: str, partitions: int = 1, **configs: str) -> dict[str, Any]:
        """The topic's row of the answer; a setting's dots are written as underscores."""
        rows = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
        topic = {"name": name, "num_partitions": partitions, "replication_factor": 1, "configs": rows}
        return _only((await self.ask(CREATE_TOPICS, 7, topics=[topic], timeout_ms=1000))["topics"])


_OF_PARTITION = ("partition_max_bytes", "current_leader_epoch")


def _only(rows: list[dict[str, Any]]) -> dict[str, Any]:
    assert len(rows) == 1
    return rows[0]


class KafkaServer:
    """The broker, its server, and where it listens."""

    def __init__(
        self, broker: Broker, server: Server, address: Address, dialect: KafkaDialect, workers: FairExecutor
    ) -> None:
        self.broker = broker
        self.server = server
        self.dialect = dialect
        self.workers = workers
        self.address = address
        self.clients: list[RawClient] = []

    async def connect(self, tls: ssl.SSLContext | None = None) -> RawClient:
        self.clients.append(RawClient(*await asyncio.open_connection(*self.address, ssl=tls)))
        return self.clients[-1]


@asynccontextmanager
async def kafka_server(
    data: Path | Store,
    *settings: str,
    limits: Limits | None = None,
    clock: Clock | None = None,
    certificates: Certificates | None = None,
    dialect_type: type[KafkaDialect] = KafkaDialect,
) -> AsyncIterator[KafkaServer]:
    """A broker over the embedded store in `data`, or over the store given, with `name=value` settings."""
    broker = Broker(EmbeddedStore(data) if isinstance(data, Path) else data, read_settings(settings), clock)
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    address = Address(*listener.getsockname())
    await broker.open([Endpoint(KAFKA, *address)])
    try:
        server_limits, from_settings = read_limits(broker.settings)
        server = Server(server_limits, limits or from_settings)
        workers = FairExecutor(WORKERS, "check")
        dialect = dialect_type(broker, 0, workers)
        server.listen(listener, dialect, certificates)
        running = KafkaServer(broker, server, address, dialect, workers)
        try:
            yield running
        finally:
            for client in running.clients:
                client.writer.close()
            await server.drain(5.0)
            workers.shutdown()
            assert server.pool.used == 0
    finally:
        await broker.close()


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    """Run one test's scenario on the loop that the product uses."""

    async def limited() -> None:
        await asyncio.wait_for(scenario(), 250)

    uvloop.run(limited())
