"""`serve --zookeeper`: what ZooKeeper is told of a broker, from the broker itself."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from korvet_fast.core.broker import Broker
from korvet_fast.endpoint import Endpoint
from korvet_fast.errors import SettingError
from korvet_fast.zookeeper.connect_string import ConnectString
from korvet_fast.zookeeper.nodes import UnfitHost, broker_value

if TYPE_CHECKING:
    from korvet_fast.zookeeper.registration import ZooKeeperRegistration

LAYOUT = "legacy"


class BrokerInZooKeeper:
    """A broker's registration, as `net.serve` wants one: of its listener `legacy://`, and of its topics."""

    def __init__(self, broker: Broker, registration: "ZooKeeperRegistration", now: Callable[[], int]) -> None:
        self._broker = broker
        self._registration = registration
        self._now = now

    async def open(self, advertised: Sequence[Endpoint]) -> None:
        """Register. Raises `SettingError` if the id is taken, or for a host that clients could not read."""
        (endpoint, *_) = [endpoint for endpoint in advertised if endpoint.scheme == LAYOUT]
        try:
            value = broker_value(endpoint.address, self._now())
        except UnfitHost as error:
            raise SettingError(str(error)) from None
        self._broker.topics.on_change(self._registration.refresh)
        await self._registration.open(self._broker.node_id, value)

    async def close(self) -> None:
        """Have all nodes of the broker go."""
        await self._registration.close()


def find_topics(broker: Broker) -> Mapping[str, int]:
    """The topics that clients of Kafka 0.7 may use, with their numbers of partitions.

    In 0.7 each broker has partitions of its own, counted from 0, so a topic is told only where all of it is led.
    """
    topics = [topic for topic in broker.topics if topic.config.legacy]
    led = [topic for topic in topics if all(partition.leadership.leads for partition in topic.partitions)]
    for topic in topics:
        if topic not in led and any(partition.leadership.leads for partition in topic.partitions):
            broker.log.warn(
                "zookeeper",
                f"topic {topic.name!r} is not told to ZooKeeper: several brokers lead its partitions, which clients of "
                "Kafka 0.7 cannot be told; give it one partition, or run one broker over this store",
            )
    return {topic.name: len(topic.partitions) for topic in led}


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
    registration = ZooKeeperRegistration(where, session, connection, lambda: find_topics(broker))
    return BrokerInZooKeeper(broker, registration, lambda: int(time.time() * 1000))
