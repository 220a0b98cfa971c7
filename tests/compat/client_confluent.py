"""confluent-kafka: librdkafka in Python's clothes."""

from confluent_kafka import Consumer, Producer, TopicPartition

from compat.record import Record

name = "confluent-kafka"


def produce(
    bootstrap: str, topic: str, records: list[Record], *, acks: str, compression: str, idempotent: bool
) -> None:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": acks,
            "compression.type": compression,
            "enable.idempotence": idempotent,
            "linger.ms": 20,
        }
    )
    failures: list[str] = []
    for record in records:
        producer.produce(
            topic,
            record.value,
            record.key,
            partition=0,
            headers=list(record.headers),
            on_delivery=lambda error, _: failures.append(str(error)) if error else None,
        )
    assert producer.flush(30) == 0
    assert not failures, failures


def consume(bootstrap: str, topic: str, count: int) -> list[Record]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    messages = consumer.consume(count, timeout=30)
    consumer.close()
    for message in messages:
        assert message.error() is None, message.error()
    return [Record(m.key(), m.value(), tuple(m.headers() or ())) for m in messages]
