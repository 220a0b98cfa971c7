"""kafka-python: the pure Python client."""

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from compat.record import Record

name = "kafka-python"


def produce(
    bootstrap: str, topic: str, records: list[Record], *, acks: str, compression: str, idempotent: bool
) -> None:
    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        acks=acks if acks == "all" else int(acks),
        compression_type=None if compression == "none" else compression,
        enable_idempotence=idempotent,
        linger_ms=20,
    )
    sent = [producer.send(topic, r.value, r.key, headers=list(r.headers), partition=0) for r in records]
    producer.flush(30)
    for future in sent:
        future.get(30)
    producer.close()


def consume(bootstrap: str, topic: str, count: int) -> list[Record]:
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False, consumer_timeout_ms=30_000)
    consumer.assign([TopicPartition(topic, 0)])
    consumer.seek(TopicPartition(topic, 0), 0)
    records = []
    for message in consumer:
        records.append(Record(message.key, message.value, tuple(message.headers)))
        if len(records) == count:
            break
    consumer.close()
    return records
