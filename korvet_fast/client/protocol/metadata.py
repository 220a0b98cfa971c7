"""A client's metadata of a cluster: the brokers, the controller, and each partition's leader and leader epoch."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from korvet_fast.client.protocol.errors import ClientError, broker_error, check_error_code
from korvet_fast.endpoint import Address
from korvet_fast.errors import Errors
from korvet_fast.wire.kafka.errors import CODES

LEADER_NOT_AVAILABLE = CODES[Errors.LEADER_NOT_AVAILABLE]

TopicPartition = tuple[str, int]


class LeaderAndEpoch(NamedTuple):
    """The broker that leads a partition. `epoch`: the leader epoch, -1 if the broker is too old to say."""

    endpoint: Address
    epoch: int


class ClusterMetadata:
    """The answers of Metadata requests, put together. A later answer replaces what an earlier one says."""

    def __init__(self) -> None:
        self.brokers: dict[int, Address] = {}
        self._controller_id = -1
        self._leaders: dict[TopicPartition, tuple[int, int]] = {}  # -> node id, leader epoch
        self._topics: dict[str, int] = {}  # -> error code

    def update(self, answer: Mapping[str, Any]) -> None:
        """Take over a Metadata answer. A topic without an error has the partitions that are named, and no others."""
        self.brokers = {row["node_id"]: Address(row["host"], row["port"]) for row in answer["brokers"]}
        self._controller_id = answer["controller_id"]
        self._forget({topic["name"] for topic in answer["topics"] if not topic["error_code"]})
        for topic in answer["topics"]:
            self._topics[topic["name"]] = topic["error_code"]
            for row in topic["partitions"]:
                self._leaders[topic["name"], row["partition_index"]] = row["leader_id"], row["leader_epoch"]

    def forget_leaders(self) -> None:
        """Forget all leaders; brokers stay known, as addresses to ask."""
        self._leaders.clear()
        self._topics.clear()

    def forget_topics(self, names: Collection[str]) -> None:
        """Forget all that is known of these topics."""
        self._forget(names)
        for name in names:
            self._topics.pop(name, None)

    def has_leader(self, topic: str, partition: int) -> bool:
        """Whether `leader` returns a broker."""
        return self._leaders.get((topic, partition), (-1, -1))[0] in self.brokers

    def leader(self, topic: str, partition: int) -> LeaderAndEpoch:
        """The leader of a partition. Raises `ClientError`; as `BrokerError` where an election may end it."""
        node_id, epoch = self._leaders.get((topic, partition), (-1, -1))
        endpoint = self.brokers.get(node_id)
        if endpoint is not None:
            return LeaderAndEpoch(endpoint, epoch)
        check_error_code(f"topic {topic!r}", self._topics.get(topic, 0))
        if topic in self._topics and (topic, partition) not in self._leaders:
            raise ClientError(f"topic {topic!r} has no partition {partition}")
        subject = f"partition {partition} of topic {topic!r}"
        raise broker_error(subject, LEADER_NOT_AVAILABLE, "it has no leader now; try again in a moment")

    def controller(self) -> Address | None:
        """The broker that creates and alters topics; None while none is known."""
        return self.brokers.get(self._controller_id)

    def _forget(self, names: Collection[str]) -> None:
        self._leaders = {place: found for place, found in self._leaders.items() if place[0] not in names}


def metadata_request(topics: Sequence[str] | None, create: bool = False) -> dict[str, Any]:
    """The values of a Metadata request. `topics` None: all; `create`: the broker may create missing topics."""
    named = None if topics is None else [{"name": name} for name in topics]
    return {"topics": named, "allow_auto_topic_creation": create}


def count_partitions(answer: Mapping[str, Any], topics: Sequence[str] | None) -> dict[str, int]:
    """How many partitions each topic of a Metadata answer has.

    `topics`: those that the request named; one with an error raises `BrokerError`. None: the request was for all
    topics, and internal ones and those with an error are left out.
    """
    counts = {}
    for topic in answer["topics"]:
        if topics is None and (topic["is_internal"] or topic["error_code"]):
            continue
        check_error_code(f"topic {topic['name']!r}", topic["error_code"])
        counts[topic["name"]] = len(topic["partitions"])
    return counts
