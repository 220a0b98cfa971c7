"""A client's metadata of a cluster: the brokers, the controller, and each partition's leader and leader epoch."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from korvet_fast.client.protocol.errors import ClientError, broker_error, check_error_code
from korvet_fast.endpoint import Address
from korvet_fast.errors import Errors
from korvet_fast.wire.kafka.errors import CODES

LEADER_NOT_AVAILABLE = CODES[Errors.LEADER_NOT_AVAILABLE]

_NO_ID: Final = bytes(16)  # the topic id of a broker that has none to tell

TopicPartition = tuple[str, int]


class LeaderAndEpoch(NamedTuple):
    """The broker that leads a partition. `epoch`: the leader epoch, -1 if the broker is too old to say."""

    endpoint: Address
    epoch: int


class ClusterMetadata:
    """The answers of Metadata requests, put together. A later answer replaces what an earlier one says.

    But a broker may lag behind: of one topic, known by its id, a leader with a lower leader epoch replaces none
    (KIP-320, Java's `Metadata.updateLatestMetadata`). A topic that was made anew has another id.
    """

    def __init__(self) -> None:
        self.brokers: dict[int, Address] = {}
        self._controller_id = -1
        self._leaders: dict[TopicPartition, tuple[int, int]] = {}  # -> node id, leader epoch
        self._topics: dict[str, int] = {}  # -> error code
        self._ids: dict[str, bytes] = {}

    def update(self, answer: Mapping[str, Any]) -> None:
        """Take over a Metadata answer. A topic without an error has the partitions that are named, and no others."""
        self.brokers = {row["node_id"]: Address(row["host"], row["port"]) for row in answer["brokers"]}
        self._controller_id = answer["controller_id"]
        known = self._leaders
        self._forget({topic["name"] for topic in answer["topics"] if not topic["error_code"]})
        for topic in answer["topics"]:
            name = topic["name"]
            self._topics[name] = topic["error_code"]
            is_same = self._note_id(name, topic["topic_id"])
            for row in topic["partitions"]:
                place, found = (name, row["partition_index"]), (row["leader_id"], row["leader_epoch"])
                before = known.get(place, found)
                self._leaders[place] = before if is_same and 0 <= found[1] < before[1] else found

    def forget_leaders(self) -> None:
        """Forget all leaders; brokers stay known, as addresses to ask."""
        self._leaders.clear()
        self._topics.clear()
        self._ids.clear()

    def forget_topics(self, names: Collection[str]) -> None:
        """Forget all that is known of these topics."""
        self._forget(names)
        for name in names:
            self._topics.pop(name, None)
            self._ids.pop(name, None)

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

    def _note_id(self, name: str, topic_id: bytes) -> bool:
        """Whether the topic is the one that was known by its name: its id is told, and is the same."""
        if topic_id == _NO_ID:
            return False
        before, self._ids[name] = self._ids.get(name), topic_id
        return topic_id == before

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
