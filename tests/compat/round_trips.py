"""Values through a topic and back, by clients that others wrote: what their security settings let them do."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer

PATIENCE = 100.0  # seconds


def check_librdkafka(given: Mapping[str, Any], topic: str, values: Sequence[bytes]) -> None:
    """`given`: librdkafka's settings."""
    producer = Producer({**given, "acks": "all"})
    failures: list[object] = []
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: failures.append(error) if error else None)
    assert producer.flush(PATIENCE) == 0
    assert failures == []
    consumer = Consumer({**given, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found = []
    while len(found) < len(values):
        message = consumer.poll(PATIENCE)
        assert message is not None
        assert message.error() is None
        found.append(message.value())
    consumer.commit(asynchronous=False)
    consumer.close()
    assert found == values


def check_kafka_python(given: Mapping[str, Any], topic: str, values: Sequence[bytes]) -> None:
    """`given`: kafka-python's settings."""
    producer = KafkaProducer(**given)
    for value in values:
        producer.send(topic, value)
    producer.flush(PATIENCE)
    producer.close()
    consumer = KafkaConsumer(
        topic, **given, group_id=topic, auto_offset_reset="earliest", consumer_timeout_ms=int(1000 * PATIENCE)
    )
    assert [next(consumer).value for _ in values] == values
    consumer.close()


async def check_aiokafka(given: Mapping[str, Any], topic: str, values: Sequence[bytes]) -> None:
    """`given`: aiokafka's settings."""
    async with asyncio.timeout(PATIENCE):
        async with AIOKafkaProducer(**given) as producer:
            for value in values:
                await producer.send(topic, value)
        async with AIOKafkaConsumer(topic, **given, group_id=topic, auto_offset_reset="earliest") as consumer:
            assert [(await consumer.getone()).value for _ in values] == values
