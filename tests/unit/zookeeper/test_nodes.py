"""The nodes that a broker writes into ZooKeeper: the table of section 9 of the notes on Kafka 0.7, byte by byte."""

import pytest

from korvet_fast.endpoint import Address
from korvet_fast.zookeeper.nodes import UnfitHost, broker_nodes, broker_path, broker_value, parents, topic_path


def test_a_broker_is_creator_host_and_port_with_colons_between_them() -> None:
    value = broker_value(Address("127.0.0.1", 9192), 1795217494796)
    assert value == "127.0.0.1-1795217494796:127.0.0.1:9192"
    assert value.split(":")[1:] == ["127.0.0.1", "9192"]  # as clients read it


def test_an_ipv6_address_is_refused_with_what_to_do() -> None:
    with pytest.raises(UnfitHost, match="--advertise legacy://HOST:6667"):
        broker_value(Address("::1", 6667), 0)


def test_paths() -> None:
    assert broker_path(0) == "/brokers/ids/0"
    assert topic_path("täg lich", 3) == "/brokers/topics/täg lich/3"


def test_a_broker_comes_before_its_topics() -> None:
    nodes = list(broker_nodes(1, "v", {"tp5": 2, "a": 1}))
    assert nodes == [("/brokers/ids/1", "v"), ("/brokers/topics/tp5/1", "2"), ("/brokers/topics/a/1", "1")]


def test_parents_from_the_root_down() -> None:
    assert list(parents("/kafka/brokers/ids/1")) == ["/kafka", "/kafka/brokers", "/kafka/brokers/ids"]
    assert list(parents("/a")) == []
