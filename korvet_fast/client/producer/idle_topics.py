"""Topics without messages for a while: forgotten, but for the sequence numbers that brokers remember (KIP-526)."""

from korvet_fast.client.producer.broker_producers import BrokerProducers
from korvet_fast.client.producer.dispatcher import Dispatcher
from korvet_fast.client.producer.producer_identity import PartitionSequence
from korvet_fast.client.protocol.metadata import TopicPartition


class IdleTopics:
    """`max_idle`: seconds. `sequences`: of partitions that were forgotten. `retries`: how many these had."""

    def __init__(self, dispatcher: Dispatcher, brokers: BrokerProducers, max_idle: float) -> None:
        self.sequences: dict[TopicPartition, PartitionSequence] = {}
        self.retries = 0
        self._dispatcher = dispatcher
        self._brokers = brokers
        self._max_idle = max_idle
        self._next_time = 0.0

    def forget_sometimes(self, now: float) -> None:
        """As `forget`, but not each time: for a dialect in which nobody is asked for metadata."""
        if now >= self._next_time:
            self._next_time = now + self._max_idle
            self.forget(now)

    def forget(self, now: float) -> None:
        """Forget topics that nothing was sent to for so long. Only while no run is open."""
        topics = self._dispatcher.topics
        for topic in [each for each in topics.values() if each.idle_since() + self._max_idle <= now]:
            del topics[topic.name]
            for index, partition in topic.partitions.items():
                if partition.sequence.is_begun:
                    self.sequences[topic.name, index] = partition.sequence
                self.retries += partition.retries
            self._brokers.forget_topic(topic.name, topic.partitions.values())
