"""`serve --zookeeper`: what ZooKeeper is told of a broker, from the broker itself."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from korvet_fast.core.broker import Broker
from korvet_fast.endpoint import Endpoint
from korvet_fast.errors import SettingError
from korvet_fast.wire.dialects import IN_ZOOKEEPER
from korvet_fast.zookeeper.connect_string import ConnectString
from korvet_fast.zookeeper.nodes import UnfitHost, broker_value

if TYPE_CHECKING:
    from korvet_fast.zookeeper.registration import ZooKeeperRegistration


class BrokerInZooKeeper:
    """A broker's registration, as `net.serve` wants one: of its listener `legacy://`, and of its topics."""

    def __init__(self, broker: Broker, registration: "ZooKeeperRegistration", now: Callable[[], int]) -> None:
        self._broker = broker
        self._registration = registration
        self._now = now

    async def open(self, advertised: Sequence[Endpoint]) -> None:
        """Register. Raises `SettingError` if the id is taken, or for a host that clients could not read."""
        (endpoint, *_) = [endpoint for endpoint in advertised if endpoint.scheme in IN_ZOOKEEPER]
        try:
            value = broker_value(endpoint.address, self._now())
        except UnfitHost as error:
            raise SettingError(str(error)) from None
        self._broker.topics.on_change(self._registration.refresh)
        await self._registration.open(self._broker.node_id, value)

    async def close(self) -> None:
        """Have all nodes of the broker go."""
        await self._registration.close()


def find_topics(broker: Broker, told: Mapping[str, int]) -> Mapping[str, int]:
    """The topics that clients of Kafka 0.7 may use, with their numbers of partitions. `told`: the answer before.

    In 0.7 each broker has partitions of its own, counted from 0, so a topic is told only where all of it is led. While
    nobody leads some of it, as when it grows, what was told stays: consumers would take an absence for its end.
    """
    found = {}
    for topic in broker.topics:
        partitions = topic.partitions
        if not topic.config.legacy:
            continue
        if all(partition.leadership.leads for partition in partitions):
            found[topic.name] = len(partitions)
            continue
        found_leaders = (broker.find_leader(topic, partition.index)[0] for partition in partitions)
        leaders = {leader for leader in found_leaders if leader >= 0}
        if leaders <= {broker.node_id}:
            if topic.name in told:
                found[topic.name] = told[topic.name]
        elif broker.node_id in leaders:
            broker.log.warn(
                "zookeeper",
                f"topic {topic.name!r} is not told to ZooKeeper: several brokers lead its partitions, which clients of "
                "Kafka 0.7 cannot be told; give it one partition, or run one broker over this store",
            )
    return found


def make_registration(broker: Broker, where: ConnectString) -> BrokerInZooKeeper:
    """The registration of a broker. Raises `click.ClickException` where kazoo is not installed."""
    try:
        from korvet_fast.zookeeper.registration import ZooKeeperRegistration
    except ModuleNotFoundError as error:
        if error.name != "kazoo":
            raise
        raise click.ClickException("--zookeeper needs kazoo: pip install 'korvet-fast[zookeeper]'") from None
    session, connection = map(
        broker.settings.number, ("zookeeper.session.timeout.ms", "zookeeper.connection.timeout.ms")
    )
    told: Mapping[str, int] = {}

    def find() -> Mapping[str, int]:
        nonlocal told
        told = find_topics(broker, told)
        return told

    registration = ZooKeeperRegistration(where, session, connection, find)
    return BrokerInZooKeeper(broker, registration, lambda: int(time.time() * 1000))
