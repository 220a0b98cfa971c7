"""The driver's commands, carried out by confluent-kafka."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import confluent_kafka
from confluent_kafka import Consumer, ConsumerGroupState, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from compat.clients.lines import PATIENCE, CommandFailed, pack, pack_headers, unpack, unpack_headers
from compat.clients.security import confluent_settings

_STATES = {
    ConsumerGroupState.STABLE: "Stable",
    ConsumerGroupState.EMPTY: "Empty",
    ConsumerGroupState.DEAD: "Dead",
    ConsumerGroupState.PREPARING_REBALANCING: "PreparingRebalance",
    ConsumerGroupState.COMPLETING_REBALANCING: "CompletingRebalance",
}


class Client:
    """Producers are kept by their settings; a consumer that is given another topic is slower than a new one."""

    def __init__(self, bootstrap: str) -> None:
        self.address = {"bootstrap.servers": bootstrap, "reconnect.backoff.max.ms": 200, **confluent_settings()}
        self.admin = AdminClient(self.address)
        self.producers: dict[tuple[object, ...], Producer] = {}

    @contextmanager
    def _consumer(self, group: str = "unused") -> Iterator[Consumer]:
        consumer = Consumer(self.address | {"group.id": group, "enable.auto.commit": False})
        try:
            yield consumer
        finally:
            consumer.close()

    def describe(self) -> dict[str, Any]:
        return {"client": "confluent-kafka", "version": confluent_kafka.__version__}

    def produce(
        self, topic: str, partition: int, acks: str, compression: str, idempotent: bool, records: list[dict[str, Any]]
    ) -> dict[str, Any]:
        settings = {"acks": acks, "compression.type": compression, "enable.idempotence": idempotent}
        key = tuple(settings.values())
        if key not in self.producers:
            sizes = {"linger.ms": 20, "message.max.bytes": 4_000_000}
            self.producers[key] = Producer(self.address | settings | sizes)
        producer = self.producers[key]
        failures: list[Any] = []
        for record in records:
            producer.produce(
                topic,
                unpack(record["value"]),
                unpack(record["key"]),
                partition=partition,
                headers=unpack_headers(record["headers"]),
                timestamp=record.get("timestamp", 0),
                on_delivery=lambda error, _: failures.append(error) if error else None,
            )
        if producer.flush(PATIENCE):
            producer.purge()
            raise CommandFailed("not sent in time")
        if failures:
            raise KafkaException(failures[0])
        return {"count": len(records)}

    def consume(self, topic: str, partition: int, offset: int, count: int) -> dict[str, Any]:
        with self._consumer(topic) as consumer:  # librdkafka asks for the group's coordinator: ACLs have to allow it
            consumer.assign([TopicPartition(topic, partition, offset)])
            messages = _read(consumer, count)
        rows = [
            {
                "offset": message.offset(),
                "timestamp": message.timestamp()[1],
                "key": pack(message.key()),
                "value": pack(message.value()),
                "headers": pack_headers(message.headers() or ()),
            }
            for message in messages
        ]
        return {"records": rows}

    def walk(self, topic: str, partition: int) -> dict[str, Any]:
        place = TopicPartition(topic, partition, 0)
        with self._consumer() as consumer:

            def offsets(count: int) -> list[int]:
                return [message.offset() for message in _read(consumer, count)]

            consumer.assign([place])
            first = offsets(10)
            consumer.seek(TopicPartition(topic, partition, 3))
            sought = offsets(5)
            consumer.pause([place])
            paused = len(consumer.consume(1, timeout=1))
            consumer.resume([place])
            return {"first": first, "sought": sought, "paused": paused, "resumed": offsets(5)}

    def commit(self, group: str, topic: str, partition: int, offset: int, metadata: str) -> dict[str, Any]:
        place = TopicPartition(topic, partition, offset, metadata=metadata)
        with self._consumer(group) as consumer:
            (done,) = consumer.commit(offsets=[place], asynchronous=False)
        if done.error is not None:
            raise KafkaException(done.error)
        return {}

    def committed(self, group: str, topic: str, partition: int) -> dict[str, Any]:
        with self._consumer(group) as consumer:
            (place,) = consumer.committed([TopicPartition(topic, partition)], timeout=PATIENCE)
        return {"offset": max(place.offset, -1), "metadata": place.metadata or ""}

    def offset_for_time(self, topic: str, partition: int, ms: int) -> dict[str, Any]:
        with self._consumer() as consumer:
            (place,) = consumer.offsets_for_times([TopicPartition(topic, partition, ms)], timeout=PATIENCE)
        if place.error is not None:
            raise KafkaException(place.error)
        return {"offset": max(place.offset, -1)}

    def list_groups(self) -> dict[str, Any]:
        found = self.admin.list_consumer_groups(request_timeout=PATIENCE).result()
        for error in found.errors:
            raise error
        return {"groups": sorted(each.group_id for each in found.valid)}

    def describe_group(self, group: str) -> dict[str, Any]:
        found = self.admin.describe_consumer_groups([group], request_timeout=PATIENCE)[group].result()
        return {"state": _STATES[found.state], "members": len(found.members)}

    def delete_group(self, group: str) -> dict[str, Any]:
        self.admin.delete_consumer_groups([group], request_timeout=PATIENCE)[group].result()
        return {}

    def create_topic(self, topic: str, partitions: int, configs: dict[str, str]) -> dict[str, Any]:
        self.admin.create_topics([NewTopic(topic, partitions, 1, config=configs)])[topic].result(PATIENCE)
        return {}

    def alter_topic(self, topic: str, configs: dict[str, str]) -> dict[str, Any]:
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in configs.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        self.admin.incremental_alter_configs([resource])[resource].result(PATIENCE)
        return {}

    def topic(self, topic: str, config: str) -> dict[str, Any]:
        found = self.admin.list_topics(topic, timeout=PATIENCE).topics[topic]
        if found.error is not None:
            raise KafkaException(found.error)
        resource = ConfigResource(ResourceType.TOPIC, topic)
        settings = self.admin.describe_configs([resource])[resource].result(PATIENCE)
        return {"partitions": len(found.partitions), "value": settings[config].value}

    def add_partitions(self, topic: str, total: int) -> dict[str, Any]:
        self.admin.create_partitions([NewPartitions(topic, total)])[topic].result(PATIENCE)
        return {}

    def delete_records(self, topic: str, partition: int, before: int) -> dict[str, Any]:
        place = TopicPartition(topic, partition, before)
        self.admin.delete_records([place])[place].result(PATIENCE)
        return {}

    def delete_topic(self, topic: str) -> dict[str, Any]:
        self.admin.delete_topics([topic])[topic].result(PATIENCE)
        return {}


def _read(consumer: Consumer, count: int) -> list[Any]:
    """The next `count` messages."""
    messages: list[Any] = []
    until = time.monotonic() + PATIENCE
    while len(messages) < count:
        if time.monotonic() > until:
            raise CommandFailed(f"{len(messages)} of {count} records came")
        for message in consumer.consume(count - len(messages), timeout=0.5):
            if message.error() is not None:
                raise KafkaException(message.error())
            messages.append(message)
    return messages
