"""The brokers behind a bootstrap address: who they are, who leads a partition, and a connection to each."""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from korvet_fast.client.connection import ClientError, Connection, Unreachable, connect
from korvet_fast.client.refusal import check
from korvet_fast.endpoint import Endpoint
from korvet_fast.wire.kafka.shapes.cluster import METADATA
from korvet_fast.wire.kafka.shapes.coordinators import FIND_COORDINATOR
from korvet_fast.wire.kafka.shapes.message import Message

GROUP = 0  # a kind of coordinator


class Cluster:
    """`async with Cluster(endpoints) as cluster:` connects to the first of the endpoints that answers.

    `patience`: seconds for each request. All methods raise `ClientError`.
    """

    def __init__(self, bootstrap: Sequence[Endpoint], patience: float = 10.0) -> None:
        self._bootstrap = bootstrap
        self._patience = patience
        self._first: Connection | None = None
        self._connections: dict[Endpoint, Connection] = {}
        self._brokers: dict[int, Endpoint] = {}
        self._leaders: dict[tuple[str, int], int] = {}
        self._controller = -1

    async def __aenter__(self) -> Self:
        failures = []
        for endpoint in self._bootstrap:
            try:
                self._first = await self._connection(endpoint)
            except Unreachable as error:
                failures.append(str(error))
            else:
                return self
        raise Unreachable("; ".join(failures))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for connection in self._connections.values():
            await connection.close()

    async def metadata(self, topics: Sequence[str] | None, *, create: bool = False) -> dict[str, Any]:
        """The Metadata answer for some topics, or for all if None; remembers brokers and leaders."""
        assert self._first is not None, "used outside of its async with"
        asked = None if topics is None else [{"name": name} for name in topics]
        answer = await self._first.request(METADATA, {"topics": asked, "allow_auto_topic_creation": create})
        self._brokers = {row["node_id"]: Endpoint(row["host"], row["port"]) for row in answer["brokers"]}
        self._controller = answer["controller_id"]
        for topic in answer["topics"]:
            for partition in topic["partitions"]:
                self._leaders[topic["name"], partition["partition_index"]] = partition["leader_id"]
        return answer

    async def partitions(self, topic: str, *, create: bool = False) -> list[int]:
        """The partitions of a topic, in order; `create` lets the broker make the topic if it does so by itself."""
        answer = await self.metadata([topic], create=create)
        (found,) = answer["topics"]
        check(f"topic {topic!r}", found["error_code"])
        return sorted(row["partition_index"] for row in found["partitions"])

    async def leader(self, topic: str, partition: int) -> Connection:
        """A connection to the partition's leader."""
        if (topic, partition) not in self._leaders:
            await self.metadata([topic])
        endpoint = self._brokers.get(self._leaders.get((topic, partition), -1))
        if endpoint is None:
            raise ClientError(f"partition {partition} of topic {topic!r} has no leader now; try again in a moment")
        return await self._connection(endpoint)

    async def ask_controller(self, message: Message, values: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request to the broker that creates and alters topics."""
        if self._controller not in self._brokers:
            await self.metadata([])
        endpoint = self._brokers.get(self._controller)
        if endpoint is None:
            raise ClientError("the cluster has no controller now; try again in a moment")
        return await (await self._connection(endpoint)).request(message, values)

    async def coordinator(self, group: str) -> Connection:
        """A connection to the broker that coordinates a group."""
        assert self._first is not None, "used outside of its async with"
        answer = await self._first.request(FIND_COORDINATOR, ask_coordinator(group))
        return await self._connection(read_coordinator(group, answer))

    async def brokers(self) -> list[Connection]:
        """A connection to every broker."""
        await self.metadata([])
        return [await self._connection(endpoint) for endpoint in self._brokers.values()]

    async def _connection(self, endpoint: Endpoint) -> Connection:
        if endpoint not in self._connections:
            self._connections[endpoint] = await connect(endpoint, self._patience)
        return self._connections[endpoint]


def ask_coordinator(group: str) -> dict[str, Any]:
    """The values of a FindCoordinator request, for versions that take one key and for those that take several."""
    return {"key": group, "key_type": GROUP, "coordinator_keys": [group]}


def read_coordinator(group: str, answer: Mapping[str, Any]) -> Endpoint:
    """Where the group's coordinator listens. Raises `Refused` while there is none."""
    found = answer["coordinators"][0] if answer["coordinators"] else answer
    check(f"the coordinator of group {group!r}", found["error_code"], found["error_message"])
    return Endpoint(found["host"], found["port"])
