"""A member of a group, in kafka-python: reads, commits, tells; leaves on SIGTERM."""

import sys
import time
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import BrokerResponseError, KafkaError, RetriableError, UnknownBrokerIdError

from compat.clients.kafka_python.secure import secure
from compat.clients.lines import Options, Running, Unsupported, tell

_ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    """`due`: where to commit, of what was read and is not committed."""

    def __init__(self) -> None:
        self.due: dict[TopicPartition, int] = {}

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        tell(assigned=sorted(each.partition for each in assigned))

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        for each in revoked:
            self.due.pop(each, None)
        tell(revoked=sorted(each.partition for each in revoked))


def describe_error(error: Exception) -> str:
    """Kafka's name of it."""
    return str(error.message) if isinstance(error, BrokerResponseError) else repr(error)


def find_generation(consumer: KafkaConsumer) -> int:
    """The one its next commit is of; the client tells it nowhere."""
    number: int = consumer._coordinator._generation.generation_id
    return number


def poll(consumer: KafkaConsumer, count: int) -> dict[TopicPartition, list[Any]]:
    """Some of the next `count` records. The client's own poll raises while no broker can be asked for metadata.

    It also raises UnknownBrokerIdError (3.0.12) if metadata without a broker arrives between the choice of that broker
    for ListOffsets and the request; its next poll asks the new leader.
    """
    try:
        found: dict[TopicPartition, list[Any]] = consumer.poll(timeout_ms=200, max_records=count)
    except (RetriableError, UnknownBrokerIdError) as error:
        print(repr(error), file=sys.stderr, flush=True)
        time.sleep(0.1)
        return {}
    return found


def run(asked: Options) -> None:
    """Until SIGTERM."""
    if asked.protocol == "consumer":
        raise Unsupported("kafka-python has no group.protocol=consumer")
    running = Running()
    consumer = KafkaConsumer(
        bootstrap_servers=asked.bootstrap,
        group_id=asked.group,
        group_instance_id=asked.instance or None,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=asked.session,
        heartbeat_interval_ms=300,
        reconnect_backoff_max_ms=200,
        **secure(),
        partition_assignment_strategy=(_ASSIGNORS[asked.strategy],),
    )
    listener = _Listener()
    due = listener.due
    consumer.subscribe([asked.topic], listener=listener)
    while running:
        for place, records in poll(consumer, 20).items():
            for record in records:
                tell(read=[place.partition, record.offset])
            due[place] = records[-1].offset + 1
        if due:
            generation = find_generation(consumer)
            try:
                consumer.commit()
            except KafkaError as error:
                tell(refused=describe_error(error))  # tried again in the next turn
            else:
                known = {"generation": generation} if generation == find_generation(consumer) else {}
                tell(committed={place.partition: offset for place, offset in due.items()}, **known)
                due.clear()
    consumer.close()
    tell(closed=True)
