"""The brokers that lead partitions of this producer, as far as metadata says: who leads what, who is referenced."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from korvet_fast.client.backoff import Backoff
from korvet_fast.client.producer.broker_producer import BrokerProducer, LinkState
from korvet_fast.client.producer.config import ProducerConfig
from korvet_fast.client.producer.partition_producer import PartitionProducer
from korvet_fast.client.protocol.metadata import ClusterMetadata
from korvet_fast.endpoint import Address


class BrokerProducers:
    """One `BrokerProducer` for each address. Each partition holds a reference to that of its leader.

    `only`: the broker that leads every partition, in a dialect without metadata.
    """

    def __init__(
        self, config: ProducerConfig, make_backoff: Callable[[], Backoff], only: Address | None = None
    ) -> None:
        self._config = config
        self._make_backoff = make_backoff
        self._only = only
        self._metadata = ClusterMetadata()
        self._brokers: dict[Address, BrokerProducer] = {}

    def __iter__(self) -> Iterator[BrokerProducer]:
        return iter(list(self._brokers.values()))

    def update(self, answer: Mapping[str, Any]) -> None:
        """Take over a Metadata answer."""
        self._metadata.update(answer)

    def addresses(self) -> list[Address]:
        """All brokers of the cluster, as far as is known."""
        return list(self._metadata.brokers.values())

    def get(self, address: Address) -> BrokerProducer:
        """The stage of a broker."""
        found = self._brokers.get(address)
        if found is None:
            found = self._brokers[address] = BrokerProducer(address, self._config, self._make_backoff())
        return found

    def leader(self, topic: str, partition: int) -> Address | None:
        """The address of a partition's leader; None while it is unknown, or if the address is not legal."""
        if self._only is not None:
            return self._only
        if not self._metadata.has_leader(topic, partition):
            return None
        address = self._metadata.leader(topic, partition).endpoint
        return address if address.host and 0 < address.port < 65536 else None

    def can_reach(self, topic: str, partition: int) -> bool:
        """Whether a partition has a leader to which the last connection did not fail."""
        address = self.leader(topic, partition)
        broker = self._brokers.get(address) if address else None
        return address is not None and (broker is None or not broker.backoff.failures)

    def broker_of(self, partition: PartitionProducer) -> BrokerProducer | None:
        """The stage of a partition's leader, as `follow_leader` found it last."""
        return self._brokers[partition.broker] if partition.broker is not None else None  # kept while referenced

    def follow_leader(self, partition: PartitionProducer) -> BrokerProducer | None:
        """The stage of a partition's leader; the reference moves there. What is in flight stays where it is."""
        address = self.leader(partition.topic, partition.index)
        if address != partition.broker:
            self._refer(partition, address)
        return self.get(address) if address is not None else None

    def forget_topic(self, topic: str, partitions: Iterable[PartitionProducer]) -> None:
        """Nobody sends to the topic any more: give the references of its partitions back."""
        self._metadata.forget_topics((topic,))
        for partition in partitions:
            self._refer(partition, None)

    def forget_unused(self) -> None:
        """Drop the stages of brokers that lead nothing any more."""
        for address, broker in list(self._brokers.items()):
            if not broker.references and not broker.in_flight and broker.state is LinkState.DOWN:
                del self._brokers[address]

    def _refer(self, partition: PartitionProducer, address: Address | None) -> None:
        """Move the partition's reference to a broker, or to none."""
        if partition.broker is not None:
            old = self.get(partition.broker)
            old.references -= 1
            old.ready.pop(partition, None)
        if address is not None:
            self.get(address).references += 1
        partition.broker = address
