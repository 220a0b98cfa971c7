"""The driver's commands, carried out by kafka-python."""

import time
from typing import Any

import kafka
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import for_code

from compat.clients.kafka_python.member import poll
from compat.clients.kafka_python.secure import secure
from compat.clients.lines import PATIENCE, CommandFailed, pack, pack_headers, unpack, unpack_headers


class Client:
    """Producers are kept by their settings, since a new one costs a connection."""

    def __init__(self, bootstrap: str) -> None:
        self.address = {"bootstrap_servers": bootstrap, "reconnect_backoff_max_ms": 200, **secure()}
        self.admin = KafkaAdminClient(**self.address)
        self.reader = KafkaConsumer(**self.address, enable_auto_commit=False)
        self.producers: dict[tuple[object, ...], KafkaProducer] = {}

    def describe(self) -> dict[str, Any]:
        return {"client": "kafka-python", "version": kafka.__version__}

    def produce(
        self, topic: str, partition: int, acks: str, compression: str, idempotent: bool, records: list[dict[str, Any]]
    ) -> dict[str, Any]:
        key = (acks, compression, idempotent)
        if key not in self.producers:
            self.producers[key] = KafkaProducer(
                **self.address,
                acks=acks if acks == "all" else int(acks),
                compression_type=None if compression == "none" else compression,
                enable_idempotence=idempotent,
                linger_ms=20,
                max_request_size=4_000_000,
            )
        producer = self.producers[key]
        sent = [
            producer.send(
                topic,
                unpack(record["value"]),
                unpack(record["key"]),
                headers=unpack_headers(record["headers"]),
                partition=partition,
                timestamp_ms=record.get("timestamp"),
            )
            for record in records
        ]
        producer.flush(PATIENCE)
        for future in sent:
            future.get(PATIENCE)
        return {"count": len(records)}

    def consume(self, topic: str, partition: int, offset: int, count: int) -> dict[str, Any]:
        place = self._assign(topic, partition)
        self.reader.seek(place, offset)
        rows = [
            {
                "offset": message.offset,
                "timestamp": message.timestamp,
                "key": pack(message.key),
                "value": pack(message.value),
                "headers": pack_headers(message.headers),
            }
            for message in self._read(place, count)
        ]
        self.reader.assign([])
        return {"records": rows}

    def _assign(self, topic: str, partition: int) -> TopicPartition:
        place = TopicPartition(topic, partition)
        self.reader.assign([place])
        return place

    def _read(self, place: TopicPartition, count: int) -> list[Any]:
        messages: list[Any] = []
        until = time.monotonic() + PATIENCE
        while len(messages) < count:
            if time.monotonic() > until:
                raise CommandFailed(f"{len(messages)} of {count} records came")
            messages += poll(self.reader, count - len(messages)).get(place, [])
        return messages

    def walk(self, topic: str, partition: int) -> dict[str, Any]:
        def offsets(count: int) -> list[int]:
            return [message.offset for message in self._read(place, count)]

        place = self._assign(topic, partition)
        self.reader.seek(place, 0)
        first = offsets(10)
        self.reader.seek(place, 3)
        sought = offsets(5)
        self.reader.pause(place)
        until = time.monotonic() + 1
        paused = 0
        while time.monotonic() < until:
            paused += len(poll(self.reader, 10).get(place, []))
        self.reader.resume(place)
        resumed = offsets(5)
        self.reader.assign([])
        return {"first": first, "sought": sought, "paused": paused, "resumed": resumed}

    def commit(self, group: str, topic: str, partition: int, offset: int, metadata: str) -> dict[str, Any]:
        consumer = KafkaConsumer(**self.address, group_id=group, enable_auto_commit=False)
        try:
            place = TopicPartition(topic, partition)
            consumer.assign([place])
            consumer.commit({place: OffsetAndMetadata(offset, metadata, -1)})
        finally:
            consumer.close()
        return {}

    def committed(self, group: str, topic: str, partition: int) -> dict[str, Any]:
        consumer = KafkaConsumer(**self.address, group_id=group, enable_auto_commit=False)
        try:
            found = consumer.committed(TopicPartition(topic, partition), metadata=True)
        finally:
            consumer.close()
        return {"offset": -1, "metadata": ""} if found is None else {"offset": found.offset, "metadata": found.metadata}

    def offset_for_time(self, topic: str, partition: int, ms: int) -> dict[str, Any]:
        place = TopicPartition(topic, partition)
        found = self.reader.offsets_for_times({place: ms})[place]
        return {"offset": -1 if found is None else found.offset}

    def list_groups(self) -> dict[str, Any]:
        return {"groups": sorted(each["group_id"] for each in self.admin.list_groups())}

    def describe_group(self, group: str) -> dict[str, Any]:
        found = self.admin.describe_groups([group])[group]
        if found["error"]:
            raise CommandFailed(found["error"])
        return {"state": found["group_state"], "members": len(found["members"])}

    def delete_group(self, group: str) -> dict[str, Any]:
        said = self.admin.delete_groups([group])[group]
        if said != "OK":
            raise CommandFailed(said)
        return {}

    def create_topic(self, topic: str, partitions: int, configs: dict[str, str]) -> dict[str, Any]:
        wanted = {"num_partitions": partitions, "replication_factor": 1, "configs": configs}
        self.admin.create_topics({topic: wanted})
        return {}

    def alter_topic(self, topic: str, configs: dict[str, str]) -> dict[str, Any]:
        said = self.admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs=configs)])
        if said["topic"][topic] != "OK":
            raise CommandFailed(said["topic"][topic])
        return {}

    def topic(self, topic: str, config: str) -> dict[str, Any]:
        (found,) = self.admin.describe_topics([topic])
        if found["error_code"]:
            raise for_code(found["error_code"])
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        settings = self.admin.describe_configs([resource], config_filter="all")["topic"][topic]
        return {"partitions": len(found["partitions"]), "value": settings[config]["value"]}

    def add_partitions(self, topic: str, total: int) -> dict[str, Any]:
        self.admin.create_partitions({topic: total})
        return {}

    def delete_records(self, topic: str, partition: int, before: int) -> dict[str, Any]:
        self.admin.delete_records({TopicPartition(topic, partition): before})
        return {}

    def delete_topic(self, topic: str) -> dict[str, Any]:
        self.admin.delete_topics([topic])
        return {}
