"""The brokers behind a bootstrap address, blocking: which topics there are, who leads what, a connection to each."""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

from korvet_fast.client.cluster import ask_coordinator, read_coordinator
from korvet_fast.client.connection import ClientError, Unreachable
from korvet_fast.client.refusal import Refused, check, refusal
from korvet_fast.endpoint import Endpoint, read_bootstrap
from korvet_fast.spark.connection import Connection, Lost, connect
from korvet_fast.wire.kafka.shapes.cluster import METADATA
from korvet_fast.wire.kafka.shapes.coordinators import FIND_COORDINATOR

LEADER_NOT_AVAILABLE = 5
PAUSE = 0.1  # seconds between two questions to a cluster that is not ready, as Kafka's retry.backoff.ms

Answer = TypeVar("Answer")
Place = tuple[str, int]  # topic, partition


class Cluster:
    """For one thread at a time. `patience`: seconds for each answer, and for a leader to be elected.

    All methods raise `ClientError`, as `Refused` where a broker said no.
    """

    def __init__(self, bootstrap: Sequence[Endpoint], patience: float) -> None:
        self._bootstrap = bootstrap
        self._patience = patience
        self._questions: Connection | None = None
        self._connections: dict[Endpoint, Connection] = {}
        self._brokers: dict[int, Endpoint] = {}
        self._leaders: dict[Place, int] = {}

    def partitions(self, topics: Sequence[str] | None, *, create: bool = False) -> dict[str, int]:
        """How many partitions each topic has; None: all topics but internal ones.

        `create`: an unknown topic is made, where the broker makes topics by itself, and waited for. A topic that there
        is not raises `Refused`.
        """
        return self.retry(lambda: self._count(topics, create), create)

    def leader(self, topic: str, partition: int) -> Connection:
        """A connection to the partition's leader; waits for one to be elected."""
        return self.retry(lambda: self._connection(self._find_leader(topic, partition)))

    def by_leader(self, places: Iterable[Place]) -> dict[Endpoint, list[Place]]:
        """The partitions by the broker that leads them; waits for leaders to be elected."""
        found: dict[Endpoint, list[Place]] = {}
        for place in places:
            leader = self.retry(partial(self._find_leader, *place))
            found.setdefault(leader, []).append(place)
        return found

    def coordinator(self, group: str) -> Connection:
        """A connection to the broker that coordinates a group; waits until there is one."""
        return self.retry(lambda: self._find_coordinator(group))

    def forget(self) -> None:
        """Close all connections: who leads what is asked anew."""
        for connection in (self._questions, *self._connections.values()):
            if connection is not None:
                connection.close()
        self._questions = None
        self._connections.clear()
        self._leaders.clear()

    close = forget

    def retry(self, act: Callable[[], Answer], unknown_topics: bool = False) -> Answer:
        """What `act` returns; after an error that may pass, everything is asked anew, until patience ends.

        `unknown_topics`: a topic that there is not may come to be. Not for writing: `act` may run more than once.
        """
        end = time.monotonic() + self._patience
        while True:
            try:
                return act()
            except ClientError as error:
                self.forget()
                if time.monotonic() + PAUSE > end or not passes(error, unknown_topics):
                    raise
            time.sleep(PAUSE)

    def _count(self, topics: Sequence[str] | None, create: bool) -> dict[str, int]:
        counted = {}
        for topic in self._ask(topics, create)["topics"]:
            if topics is None and (topic["is_internal"] or topic["error_code"]):
                continue
            check(f"topic {topic['name']!r}", topic["error_code"])
            counted[topic["name"]] = len(topic["partitions"])
        return counted

    def _find_leader(self, topic: str, partition: int) -> Endpoint:
        if (topic, partition) not in self._leaders:
            for row in self._ask([topic], False)["topics"]:
                check(f"topic {topic!r}", row["error_code"])
        if (topic, partition) not in self._leaders:
            raise ClientError(f"topic {topic!r} has no partition {partition}")
        endpoint = self._brokers.get(self._leaders[topic, partition])
        if endpoint is None:
            raise refusal(f"partition {partition} of topic {topic!r}", LEADER_NOT_AVAILABLE)
        return endpoint

    def _find_coordinator(self, group: str) -> Connection:
        answer = self._any().request(FIND_COORDINATOR, ask_coordinator(group))
        return self._connection(read_coordinator(group, answer))

    def _ask(self, topics: Sequence[str] | None, create: bool) -> dict[str, Any]:
        asked = None if topics is None else [{"name": name} for name in topics]
        answer = self._any().request(METADATA, {"topics": asked, "allow_auto_topic_creation": create})
        self._brokers = {row["node_id"]: Endpoint(row["host"], row["port"]) for row in answer["brokers"]}
        for topic in answer["topics"]:
            for row in topic["partitions"]:
                self._leaders[topic["name"], row["partition_index"]] = row["leader_id"]
        return answer

    def _any(self) -> Connection:
        """A connection of its own for questions: on those to leaders, answers may be waited for."""
        if self._questions is not None:
            return self._questions
        failures = []
        for endpoint in (*self._bootstrap, *self._brokers.values()):
            try:
                self._questions = connect(endpoint, self._patience)
            except Unreachable as error:
                failures.append(str(error))
            else:
                return self._questions
        raise Unreachable("; ".join(dict.fromkeys(failures)))

    def _connection(self, endpoint: Endpoint) -> Connection:
        if endpoint not in self._connections:
            self._connections[endpoint] = connect(endpoint, self._patience)
        return self._connections[endpoint]


def passes(error: ClientError, unknown_topics: bool = False) -> bool:
    """Whether the same question may be answered later: a lost connection, or a code Kafka calls retriable."""
    if isinstance(error, Refused):
        return error.retriable and (unknown_topics or error.name != "UNKNOWN_TOPIC_OR_PARTITION")
    return isinstance(error, Lost | Unreachable)


_own = threading.local()


def cluster(bootstrap: str, patience: float) -> Cluster:
    """This thread's cluster behind `host:port,host:port…`, kept: a worker process runs many tasks one after another.

    Raises `ValueError` for an address that cannot be read.
    """
    kept: dict[tuple[str, float], Cluster] = _own.__dict__.setdefault("clusters", {})
    if (bootstrap, patience) not in kept:
        kept[bootstrap, patience] = Cluster(read_bootstrap(bootstrap), patience)
    return kept[bootstrap, patience]
