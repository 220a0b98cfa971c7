"""The brokers behind a bootstrap address, blocking: cluster metadata and a connection to each broker."""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

from korvet_fast.client.protocol.errors import ClientError, ConnectionLost, Unreachable, is_retriable
from korvet_fast.client.protocol.metadata import ClusterMetadata, TopicPartition, count_partitions, metadata_request
from korvet_fast.client.protocol.requests import find_coordinator_request, read_coordinator
from korvet_fast.client.security import PLAINTEXT, Security, read_security
from korvet_fast.endpoint import Address, read_bootstrap
from korvet_fast.spark.connection import BlockingConnection, connect
from korvet_fast.wire.kafka.shapes.cluster import METADATA
from korvet_fast.wire.kafka.shapes.coordinators import FIND_COORDINATOR

RETRY_BACKOFF = 0.1  # seconds between two attempts, as Kafka's retry.backoff.ms

Answer = TypeVar("Answer")


class BlockingCluster:
    """For one thread at a time. `patience`: seconds for each answer, and for a leader to be elected.

    All methods raise `ClientError`, as `BrokerError` where a broker answered with an error code.
    """

    def __init__(self, bootstrap: Sequence[Address], patience: float, security: Security = PLAINTEXT) -> None:
        self._bootstrap = bootstrap
        self._patience = patience
        self._security = security
        self._any: BlockingConnection | None = None  # for metadata: the answers of a leader may be waited for
        self._connections: dict[Address, BlockingConnection] = {}
        self._metadata = ClusterMetadata()

    def partitions(self, topics: Sequence[str] | None, *, create: bool = False) -> dict[str, int]:
        """How many partitions each topic has; None: all topics but internal ones.

        `create`: the broker may create a missing topic, and the call waits for it. Otherwise a topic that does not
        exist raises `BrokerError`.
        """
        return self.retry(lambda: count_partitions(self._fetch_metadata(topics, create), topics), create)

    def leader(self, topic: str, partition: int) -> BlockingConnection:
        """A connection to the partition's leader; waits for one to be elected."""
        return self.retry(lambda: self._connection(self._find_leader(topic, partition)))

    def by_leader(self, partitions: Iterable[TopicPartition]) -> dict[Address, list[TopicPartition]]:
        """The partitions by the broker that leads them; waits for leaders to be elected."""
        found: dict[Address, list[TopicPartition]] = {}
        for each in partitions:
            leader = self.retry(partial(self._find_leader, *each))
            found.setdefault(leader, []).append(each)
        return found

    def coordinator(self, group: str) -> BlockingConnection:
        """A connection to the broker that coordinates a group; waits until there is one."""
        return self.retry(lambda: self._find_coordinator(group))

    def forget(self) -> None:
        """Close all connections and forget who leads what; the next use asks the brokers again."""
        for connection in (self._any, *self._connections.values()):
            if connection is not None:
                connection.close()
        self._any = None
        self._connections.clear()
        self._metadata.forget_leaders()

    close = forget

    def retry(self, act: Callable[[], Answer], unknown_topics: bool = False) -> Answer:
        """Return the result of `act`. After a retriable error, `forget` all and call `act` again, until patience ends.

        `unknown_topics`: a missing topic may be created meanwhile. Not for writing: `act` may run more than once.
        """
        end = time.monotonic() + self._patience
        while True:
            try:
                return act()
            except ClientError as error:
                self.forget()
                if time.monotonic() + RETRY_BACKOFF > end or not is_retriable(error, unknown_topics):
                    raise
            time.sleep(RETRY_BACKOFF)

    def _find_leader(self, topic: str, partition: int) -> Address:
        if not self._metadata.has_leader(topic, partition):
            self._fetch_metadata([topic], False)
        return self._metadata.leader(topic, partition).endpoint

    def _find_coordinator(self, group: str) -> BlockingConnection:
        answer = self._connect_to_any().request(FIND_COORDINATOR, find_coordinator_request(group))
        return self._connection(read_coordinator(group, answer))

    def _fetch_metadata(self, topics: Sequence[str] | None, create: bool) -> dict[str, Any]:
        answer = self._connect_to_any().request(METADATA, metadata_request(topics, create))
        self._metadata.update(answer)
        return answer

    def _connect_to_any(self) -> BlockingConnection:
        if self._any is not None:
            return self._any
        failures = []
        for endpoint in (*self._bootstrap, *self._metadata.brokers.values()):
            try:
                self._any = connect(endpoint, self._patience, self._security)
            except (Unreachable, ConnectionLost) as error:
                failures.append(str(error))
            else:
                return self._any
        raise Unreachable("; ".join(dict.fromkeys(failures)))

    def _connection(self, endpoint: Address) -> BlockingConnection:
        if endpoint not in self._connections:
            self._connections[endpoint] = connect(endpoint, self._patience, self._security)
        return self._connections[endpoint]


_own = threading.local()


def cluster(bootstrap: str, patience: float, security: tuple[tuple[str, str], ...] = ()) -> BlockingCluster:
    """This thread's cluster behind `host:port,host:port…`, kept: a worker process runs many tasks one after another.

    `security`: settings of connections and their values, by Kafka's names. Raises `ValueError` for an address that
    cannot be read, and `SettingError`.
    """
    kept: dict[tuple[object, ...], BlockingCluster] = _own.__dict__.setdefault("clusters", {})
    key = bootstrap, patience, security
    if key not in kept:
        kept[key] = BlockingCluster(read_bootstrap(bootstrap), patience, read_security(dict(security)))
    return kept[key]
