"""The topics that exist, found by name or id."""

from bisect import insort
from collections.abc import Iterator

from korvet_fast.core.partition.collaborators import PartitionCollaborators
from korvet_fast.core.topics.topic import Topic


class TopicIndex:
    """Topics by name and by id; iterates in the order of names. `partition_count`: of all topics together."""

    def __init__(self, given: PartitionCollaborators) -> None:
        self.partition_count = 0
        self._given = given
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[bytes, Topic] = {}
        self._spellings: dict[str, str] = {}  # '.' written as '_' -> name: the two may not be told apart in metrics
        self._sorted: list[Topic] = []

    def __iter__(self) -> Iterator[Topic]:
        return iter(self._sorted)

    def __len__(self) -> int:
        return len(self._sorted)

    def get(self, name: str) -> Topic | None:
        return self._by_name.get(name)

    def by_id(self, identity: bytes) -> Topic | None:
        return self._by_id.get(identity)

    def has_partition(self, log: str) -> bool:
        """Whether there is a partition whose log has this name, `topic:index`."""
        name, _, index = log.rpartition(":")
        topic = self._by_name.get(name)
        return topic is not None and int(index) < len(topic.partitions)

    def find_alike(self, name: str) -> str | None:
        """The name of a topic that differs from `name` in '.' and '_' only, or not at all."""
        return self._spellings.get(name.replace(".", "_"))

    def _add(self, topic: Topic) -> None:
        """The topic exists from now on."""
        self._by_name[topic.name] = self._by_id[topic.id] = topic
        self._spellings[topic.name.replace(".", "_")] = topic.name
        insort(self._sorted, topic, key=lambda other: other.name)
        self.partition_count += len(topic.partitions)
        self._given.metadata.advance()

    def _remove(self, topic: Topic) -> None:
        """The topic does not exist any more."""
        del self._by_name[topic.name], self._by_id[topic.id]
        self._spellings.pop(topic.name.replace(".", "_"), None)  # two brokers may have made two of one spelling at once
        self._sorted.remove(topic)
        self.partition_count -= len(topic.partitions)
        self._given.metadata.advance()

    def _add_partitions(self, topic: Topic, total: int) -> None:
        """The topic has `total` partitions from now on."""
        self.partition_count += len(topic.grow(self._given, total))
