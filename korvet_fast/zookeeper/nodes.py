"""The nodes of a Kafka 0.7 broker in ZooKeeper, and what is written there: `kafka/utils/ZkUtils.scala` of 0.7.2.

All values are UTF-8 text without a newline. Nothing here talks to ZooKeeper.
"""

from collections.abc import Iterator, Mapping

from korvet_fast.endpoint import Address

IDS = "/brokers/ids"
TOPICS = "/brokers/topics"


class UnfitHost(ValueError):
    """Clients of Kafka 0.7 could not read this host out of a broker's node. The text is a sentence."""


def broker_path(broker: int) -> str:
    """The ephemeral node of a broker."""
    return f"{IDS}/{broker}"


def broker_value(address: Address, started: int) -> str:
    """`creator:host:port`, where the creator is `host-startmillis`. `started`: milliseconds since 1970.

    Raises `UnfitHost` for an IPv6 address: clients take it apart at the colons.
    """
    if ":" in address.host:
        raise UnfitHost(
            f"clients of Kafka 0.7 cannot read the IPv6 address {address.host}: give them a name, or an IPv4 address, "
            f"with --advertise legacy://HOST:{address.port}"
        )
    return f"{address.host}-{started}:{address.host}:{address.port}"


def topic_path(topic: str, broker: int) -> str:
    """The ephemeral node that says that a broker has this topic."""
    return f"{TOPICS}/{topic}/{broker}"


def broker_nodes(broker: int, value: str, topics: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Every node of a broker with its value, in the order in which they are made. `topics`: name -> partitions."""
    yield broker_path(broker), value
    for topic, partitions in topics.items():
        yield topic_path(topic, broker), str(partitions)


def parents(path: str) -> Iterator[str]:
    """The nodes above this one, from the root's children down. They are persistent, and have no data."""
    end = path.find("/", 1)
    while end != -1:
        yield path[:end]
        end = path.find("/", end + 1)
