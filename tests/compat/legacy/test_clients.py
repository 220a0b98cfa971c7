"""Clients of Kafka 0.6 and 0.7 as they were published, in Java, JavaScript and Python 2, over both stores."""

import gzip
import subprocess
import threading
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from broker_process import BrokerProcess
from compat.drivers import LEGACY_DRIVERS, command
from korvet_reference.legacy_client import LegacyClient, read_messages
from redis_server import RedisServer, find_program, free_port
from zookeeper_server import ZooKeeperServer

PATIENCE = 120.0
pytestmark = pytest.mark.timeout(600)  # JVMs start, and a ZooKeeper, on a machine that may have much else to do
GZIP = ("jafka", "franz_kafka")  # they send one compressed message; the others send each by itself


class Old(NamedTuple):
    """A broker for clients of 0.7 and of today, and the ZooKeeper where it can be found."""

    port: int
    zookeeper: str
    bootstrap: str


@pytest.fixture(scope="module", params=["files", "redis"])
def old(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Old]:
    directory, port = tmp_path_factory.mktemp("old"), free_port()
    with (
        ZooKeeperServer(directory / "zookeeper") as zookeeper,
        RedisServer(find_program("redis-server"), directory / "redis") as server,
    ):
        arguments = ("--listen", f"legacy://127.0.0.1:{port}", "--zookeeper", zookeeper.address)
        store = server.url if request.param == "redis" else None
        with BrokerProcess(directory / "data", store=store, arguments=arguments) as broker:
            yield Old(port, zookeeper.address, broker.bootstrap)


def produce(client: str, old: Old, topic: str, texts: list[str]) -> None:
    place = [f"1:127.0.0.1:{old.port}", "1"] if client == "jafka" else [str(old.port)]
    line, folder = command(client, "produce", *place, topic, *texts)
    subprocess.run(line, cwd=folder, check=True, timeout=PATIENCE, stderr=subprocess.DEVNULL)


def consume(client: str, old: Old, topic: str, many: int) -> list[str]:
    """So many messages; a client that does not give them ends with its process, after a while."""
    place = [old.zookeeper, "g"] if client == "jafka" else [str(old.port)]
    line, folder = command(client, "consume", *place, topic)
    process = subprocess.Popen(line, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    limit = threading.Timer(PATIENCE, process.kill)
    limit.start()
    assert process.stdout is not None
    try:
        with process.stdout as lines:
            found = [one for _, one in zip(range(many), lines, strict=False)]
    finally:
        limit.cancel()
        process.terminate()
        process.wait(PATIENCE)
    return [one.rstrip("\n") for one in found]


@pytest.mark.parametrize("client", LEGACY_DRIVERS)
def test_what_a_client_of_0_7_wrote_it_reads(old: Old, client: str) -> None:
    texts = [f"{client}-{number}" for number in range(5)]
    produce(client, old, client, texts)
    with LegacyClient("127.0.0.1", old.port) as reference:
        messages = read_messages(reference.fetch(client, 0, 0), 0)
        assert reference.offsets(client, 0) == [messages[-1].following]
    if client in GZIP:
        (wrapper,) = messages
        assert wrapper.codec == 1
        messages = read_messages(gzip.decompress(wrapper.payload), 0)
    assert [message.payload.decode() for message in messages] == texts
    assert consume(client, old, client, len(texts)) == texts
    assert read_today(old, client, len(texts)) == texts


@pytest.mark.parametrize("client", GZIP)  # the others are of 0.6, and do not know the messages of 0.7
def test_what_a_client_of_today_wrote_a_client_of_0_7_reads(old: Old, client: str) -> None:
    topic, texts = f"today-{client}", [f"today-{number}" for number in range(5)]
    admin = AdminClient({"bootstrap.servers": old.bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1, config={"storage.layout": "legacy"})])[topic].result(PATIENCE)
    producer = Producer({"bootstrap.servers": old.bootstrap})
    for text in texts:
        producer.produce(topic, text)
    assert producer.flush(PATIENCE) == 0
    assert consume(client, old, topic, len(texts)) == texts


def read_today(old: Old, topic: str, many: int) -> list[str]:
    """So many messages, by confluent-kafka."""
    consumer = Consumer({"bootstrap.servers": old.bootstrap, "group.id": "today", "auto.offset.reset": "earliest"})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found = consumer.consume(many, PATIENCE)
        assert [message.error() for message in found] == [None] * many
        return [str(message.value(), "utf-8") for message in found]
    finally:
        consumer.close()
