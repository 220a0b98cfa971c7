"""Topics without messages for a while: forgotten, but for the sequence numbers that brokers remember (KIP-526)."""

from typing import Final

from korvet_fast.client.producer.broker_producers import BrokerProducers
from korvet_fast.client.producer.dispatcher import Dispatcher
from korvet_fast.client.producer.producer_identity import PartitionSequence, ProducerIdentity
from korvet_fast.client.protocol.metadata import TopicPartition

_MOST: Final = 10_000  # sequences that are kept, of 400 bytes each


class IdleTopics:
    """`max_idle`: seconds. `sequences`: of partitions that were forgotten. `retries`: how many these had.

    A partition whose sequence is gone has to begin in an epoch that it has not had: a broker that remembers the old one
    refuses number 0, or takes the batch for one that it has. So all are dropped together, and the epoch ends with them.
    Those of a transactional producer stay until `renew_identity`: only the coordinator gives it epochs.
    """

    def __init__(
        self, dispatcher: Dispatcher, brokers: BrokerProducers, identity: ProducerIdentity, max_idle: float
    ) -> None:
        self.sequences: dict[TopicPartition, PartitionSequence] = {}
        self.retries = 0
        self._dispatcher = dispatcher
        self._brokers = brokers
        self._identity = identity
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
        if len(self.sequences) > _MOST and self._identity.bump(self._identity.current):
            self.sequences.clear()
