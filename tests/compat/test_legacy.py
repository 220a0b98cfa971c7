"""A topic of Kafka 0.7's format through both listeners: old messages to real clients of today, and theirs to 0.7."""

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as KafkaPartition

from broker_process import BrokerProcess
from korvet_reference import compression
from korvet_reference.legacy_client import LegacyClient, encode_message, read_messages
from redis_server import RedisServer, find_program, free_port

PATIENCE = 60.0
Reading = Callable[["TwoListeners", str, int], list[tuple[int, bytes]]]
VALUES = [b"value %d" % number for number in range(40)]


class TwoListeners:
    """A broker with both listeners."""

    def __init__(self, process: BrokerProcess, port: int) -> None:
        self.process = process
        self.bootstrap = process.bootstrap
        self._port = port

    def old(self) -> LegacyClient:
        return LegacyClient("127.0.0.1", self._port, PATIENCE)


@pytest.fixture(scope="module", params=["files", "redis"])
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoListeners]:
    directory, port = tmp_path_factory.mktemp("broker"), free_port()
    arguments = ("--listen", f"legacy://127.0.0.1:{port}")
    if request.param == "files":
        with BrokerProcess(directory / "data", arguments=arguments) as process:
            yield TwoListeners(process, port)
    else:
        with (
            RedisServer(find_program("redis-server"), directory / "redis") as server,
            BrokerProcess(directory / "unused", store=server.url, arguments=arguments) as process,
        ):
            yield TwoListeners(process, port)


def write_old(broker: TwoListeners, topic: str) -> list[tuple[int, bytes]]:
    """Single messages, then wrappers; the offset that each has for clients of today."""
    wanted, at = [], 0
    with broker.old() as client:
        for number, value in enumerate(VALUES):
            message = encode_message(value, magic=number % 2)
            wanted.append((at, value))
            client.produce(topic, 0, message)
            at += len(message)
        for codec in (1, 2):
            inner = b"".join(encode_message(value) for value in VALUES)
            message = encode_message(compression.compress(codec, inner), codec)
            wanted += [(at + place, value) for place, value in enumerate(VALUES)]
            client.produce(topic, 0, message)
            at += len(message)
        assert client.offsets(topic, 0) == [at]
    return wanted


def read_confluent(broker: TwoListeners, topic: str, many: int) -> list[tuple[int, bytes]]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found = []
        while len(found) < many:
            (message,) = consumer.consume(1, PATIENCE)
            assert message.error() is None
            found.append((message.offset(), message.value()))
        return found
    finally:
        consumer.close()


def read_kafka_python(broker: TwoListeners, topic: str, many: int) -> list[tuple[int, bytes]]:
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap)
    try:
        partition = KafkaPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek(partition, 0)
        found = []
        while len(found) < many:
            record = next(consumer)
            found.append((record.offset, record.value))
        assert consumer.position(partition) <= consumer.end_offsets([partition])[partition]
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
