"""A topic of Kafka 0.7's format through both listeners: old messages to real clients of today, and theirs to 0.7.

Spark reads and writes such topics in `compat/spark/test_legacy.py`.
"""

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as KafkaPartition

from compat.legacy.two_listeners import PATIENCE, STORES, VALUES, TwoListeners, Values, open_two_listeners, write_old
from korvet_reference.legacy_client import EARLIEST, encode_message, read_messages

Reading = Callable[[TwoListeners, str, int], Values]


@pytest.fixture(scope="module", params=STORES)
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoListeners]:
    with open_two_listeners(request.param, tmp_path_factory.mktemp("broker")) as opened:
        yield opened


def read_confluent(broker: TwoListeners, topic: str, many: int) -> Values:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found = []
        while len(found) < many:
            (message,) = consumer.consume(1, PATIENCE)
            assert message.error() is None
            found.append((message.offset(), message.value()))
        with broker.old() as client:
            bounds = client.offsets(topic, 0, EARLIEST)[0], client.offsets(topic, 0)[0]
        assert consumer.get_watermark_offsets(TopicPartition(topic, 0), PATIENCE) == bounds
        return found
    finally:
        consumer.close()


def read_kafka_python(broker: TwoListeners, topic: str, many: int) -> Values:
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap)
    try:
        partition = KafkaPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek(partition, 0)
        found = []
        while len(found) < many:
            record = next(consumer)
            found.append((record.offset, record.value))
        with broker.old() as client:
            assert consumer.end_offsets([partition]) == {partition: client.offsets(topic, 0)[0]}
            assert consumer.beginning_offsets([partition]) == {partition: client.offsets(topic, 0, EARLIEST)[0]}
        return found
    finally:
        consumer.close()


@pytest.mark.parametrize("read", [read_confluent, read_kafka_python])
def test_clients_of_today_read_what_0_7_wrote(broker: TwoListeners, read: Reading) -> None:
    topic = f"old-{read.__name__}"
    wanted = write_old(broker, topic)
    assert read(broker, topic, len(wanted)) == wanted


def test_0_7_reads_what_confluent_kafka_wrote(broker: TwoListeners) -> None:
    write_old(broker, "new-confluent")
    with broker.old() as client:
        (before,) = client.offsets("new-confluent", 0)
        producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True, "linger.ms": 0})
        for value in VALUES:
            producer.produce("new-confluent", value, partition=0)
        assert producer.flush(PATIENCE) == 0
        data = client.fetch("new-confluent", 0, before)
        assert [message.payload for message in read_messages(data, before)] == VALUES
        (end,) = client.offsets("new-confluent", 0)
    assert end == before + len(data)
    found = read_confluent(broker, "new-confluent", 4 * len(VALUES))
    assert found[-1][0] + len(encode_message(VALUES[-1])) == end


def test_0_7_reads_what_kafka_python_wrote(broker: TwoListeners) -> None:
    with broker.old() as client:
        client.produce("new-python", 0, b"")
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap, compression_type="gzip", linger_ms=50)
        for value in VALUES:
            producer.send("new-python", value, partition=0)
        producer.flush(PATIENCE)
        producer.close()
        assert [message.payload for message in read_messages(client.fetch("new-python", 0, 0), 0)] == VALUES
