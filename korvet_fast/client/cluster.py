"""The brokers behind a bootstrap address, for asyncio: cluster metadata and a connection to each broker."""

import asyncio
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from korvet_fast.client.connection import Connection, connect
from korvet_fast.client.protocol.errors import (
    ClientError,
    ConnectionLost,
    NotRegistered,
    Unreachable,
    check_error_code,
)
from korvet_fast.client.protocol.metadata import ClusterMetadata, metadata_request
from korvet_fast.client.protocol.requests import find_coordinator_request, read_coordinator
from korvet_fast.client.security import PLAINTEXT, Security
from korvet_fast.endpoint import Address
from korvet_fast.wire.kafka.shapes.cluster import METADATA
from korvet_fast.wire.kafka.shapes.coordinators import FIND_COORDINATOR
from korvet_fast.wire.kafka.shapes.message import Message


class Cluster:
    """`async with Cluster(endpoints) as cluster:` connects to the first of the endpoints that answers.

    `patience`: seconds for each request; `security`: of every connection. All methods raise `ClientError`.
    """

    def __init__(self, bootstrap: Sequence[Address], patience: float = 10.0, security: Security = PLAINTEXT) -> None:
        self._bootstrap = list(bootstrap)  # in the order in which they are asked
        self._patience = patience
        self._security = security
        self._connections: dict[Address, Connection] = {}
        self._connecting = asyncio.Lock()  # two callers must not connect to one broker each: one would never be closed
        self._metadata = ClusterMetadata()

    async def __aenter__(self) -> Self:
        await self._any_broker()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for connection in self._connections.values():
            await connection.close()

    async def metadata(self, topics: Sequence[str] | None, *, create: bool = False) -> dict[str, Any]:
        """The Metadata answer for some topics, or for all if None; remembers brokers and leaders."""
        answer = await self._ask_any(METADATA, metadata_request(topics, create))
        self._metadata.update(answer)
        return answer

    async def partitions(self, topic: str, *, create: bool = False) -> list[int]:
        """The partitions of a topic, in order. `create`: the broker may create the topic if its settings say so."""
        answer = await self.metadata([topic], create=create)
        (found,) = answer["topics"]
        check_error_code(f"topic {topic!r}", found["error_code"])
        return sorted(row["partition_index"] for row in found["partitions"])

    async def leader(self, topic: str, partition: int) -> Connection:
        """A connection to the partition's leader."""
        if not self._metadata.has_leader(topic, partition):
            await self.metadata([topic])
        return await self._connection(self._metadata.leader(topic, partition).endpoint)

    async def ask_controller(self, message: Message, values: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request to the broker that creates and alters topics."""
        return await (await self.controller()).request(message, values)

    async def controller(self) -> Connection:
        """A connection to the broker that creates and alters topics.

        Where that is dead and named all the same, to another one: it does the same, or hands on what it is asked.
        """
        if self._metadata.controller() is None:
            await self.metadata([])
        endpoint = self._metadata.controller()
        if endpoint is None:
            raise ClientError("the cluster has no controller now; try again in a moment")
        try:
            return await self._connection(endpoint)
        except (Unreachable, ConnectionLost):
            return await self._any_broker()

    async def coordinator(self, group: str) -> Connection:
        """A connection to the broker that coordinates a group."""
        answer = await self._ask_any(FIND_COORDINATOR, find_coordinator_request(group))
        return await self._connection(read_coordinator(group, answer))

    async def broker(self, identity: int) -> Connection:
        """A connection to the broker with this id."""
        await self.metadata([])
        endpoint = self._metadata.brokers.get(identity)
        if endpoint is None:
            known = ", ".join(map(str, sorted(self._metadata.brokers)))
            raise NotRegistered(f"there is no broker {identity} at this moment; there are {known}")
        return await self._connection(endpoint)

    async def brokers(self) -> list[Connection]:
        """A connection to every broker."""
        await self.metadata([])
        return [await self._connection(endpoint) for endpoint in self._metadata.brokers.values()]

    async def ask_each(self, message: Message, values: Mapping[str, Any]) -> dict[int, dict[str, Any]]:
        """Send a request to every broker; the answers, by broker, of those that give one."""
        await self.metadata([])
        answers = {}
        for identity, endpoint in list(self._metadata.brokers.items()):
            try:
                answers[identity] = await (await self._connection(endpoint)).request(message, values)
            except (Unreachable, ConnectionLost):
                continue
        return answers

    async def _ask_any(self, message: Message, values: Mapping[str, Any]) -> dict[str, Any]:
        """Ask any broker what all of them know; one that does not answer is asked last from then on."""
        for _ in self._bootstrap[1:]:
            connection = await self._any_broker()
            try:
                return await connection.request(message, values)
            except ConnectionLost:
                self._bootstrap.sort(key=connection.endpoint.__eq__)
        return await (await self._any_broker()).request(message, values)

    async def _any_broker(self) -> Connection:
        """A connection that is open, or one to the first of the bootstrap addresses that answers."""
        for connection in self._connections.values():
            if connection.failure is None:
                return connection
        failures = []
        for endpoint in self._bootstrap:
            try:
                return await self._connection(endpoint)
            except (Unreachable, ConnectionLost) as error:
                failures.append(str(error))
        raise Unreachable("; ".join(failures))

    async def _connection(self, endpoint: Address) -> Connection:
        async with self._connecting:
            connection = self._connections.get(endpoint)
            if connection is None or connection.failure is not None:
                connection = self._connections[endpoint] = await connect(
                    endpoint, self._patience, security=self._security
                )
            return connection
