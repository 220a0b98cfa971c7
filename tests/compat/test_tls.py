"""Clients that others wrote, over TLS and with certificates of their own, beside a listener without."""

import asyncio
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer, KafkaProducer

from broker_process import BrokerProcess
from redis_server import free_port
from tls_world import Authority

VALUES = [b"%d" % number * 100 for number in range(200)] + [bytes(900_000)]
PATIENCE = 100.0  # seconds


class World(NamedTuple):
    """A broker with a listener without TLS, one with it, and one that asks for certificates where `mutual`."""

    broker: BrokerProcess
    port: int
    authority: Authority
    shown: Path | None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def librdkafka(self) -> dict[str, str]:
        given = {"bootstrap.servers": self.bootstrap, "security.protocol": "SSL"}
        given["ssl.ca.location"] = str(self.authority.file)
        if self.shown is not None:
            given |= {"ssl.certificate.location": str(self.shown), "ssl.key.location": str(self.shown)}
        return given

    @property
    def context(self) -> ssl.SSLContext:
        return self.authority.client(self.shown)


@pytest.fixture(scope="module", params=["none", "required"], ids=["tls", "mtls"])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    place = tmp_path_factory.mktemp("tls")
    authority, port = Authority(place), free_port()
    settings = [f"ssl.keystore.location={authority.issue()}", f"ssl.client.auth={request.param}"]
    settings.append(f"ssl.truststore.location={authority.file}")
    listen = ("--listen", f"kafka+tls://127.0.0.1:{port}")
    shown = authority.issue("client", "client.test") if request.param == "required" else None
    with BrokerProcess(place / "data", *settings, arguments=listen) as broker:
        yield World(broker, port, authority, shown)


def test_confluent_kafka(world: World) -> None:
    producer = Producer(world.librdkafka | {"acks": "all", "compression.type": "none"})
    failures: list[object] = []
    for value in VALUES:
        producer.produce("confluent", value, on_delivery=lambda error, _: failures.append(error) if error else None)
    assert producer.flush(PATIENCE) == 0
    assert failures == []
    consumer = Consumer(world.librdkafka | {"group.id": "confluent", "auto.offset.reset": "earliest"})
    consumer.subscribe(["confluent"])
    found = []
    while len(found) < len(VALUES):
        message = consumer.poll(PATIENCE)
        assert message is not None
        assert message.error() is None
        found.append(message.value())
    consumer.commit(asynchronous=False)
    consumer.close()
    assert found == VALUES


def test_kafka_python(world: World) -> None:
    given = {"bootstrap_servers": world.bootstrap, "security_protocol": "SSL", "ssl_context": world.context}
    producer = KafkaProducer(**given)
    for value in VALUES:
        producer.send("kafka-python", value)
    producer.flush(PATIENCE)
    producer.close()
    consumer = KafkaConsumer(
        "kafka-python", **given, group_id="kafka-python", auto_offset_reset="earliest", consumer_timeout_ms=100_000
    )
    assert [next(consumer).value for _ in VALUES] == VALUES
    consumer.close()


def test_aiokafka(world: World) -> None:
    async def scenario() -> None:
        given = {"bootstrap_servers": world.bootstrap, "security_protocol": "SSL", "ssl_context": world.context}
        async with AIOKafkaProducer(**given) as producer:
            for value in VALUES:
                await producer.send("aiokafka", value)
        async with AIOKafkaConsumer("aiokafka", **given, group_id="aiokafka", auto_offset_reset="earliest") as consumer:
            assert [(await consumer.getone()).value for _ in VALUES] == VALUES

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE))


def test_each_listener_tells_its_own_addresses(world: World) -> None:
    encrypted = AdminClient(world.librdkafka).list_topics(timeout=PATIENCE)
    assert {broker.port for broker in encrypted.brokers.values()} == {world.port}
    plain = AdminClient({"bootstrap.servers": world.broker.bootstrap}).list_topics(timeout=PATIENCE)
    assert {broker.port for broker in plain.brokers.values()} == {world.broker.port}


def test_who_has_no_certificate_or_no_tls_reaches_nothing(world: World, tmp_path: Path) -> None:
    if world.shown is not None:
        stranger = str(Authority(tmp_path, "stranger").issue("stranger", "client.test"))
        shown = {"ssl.certificate.location": stranger, "ssl.key.location": stranger}
        with pytest.raises(KafkaException):
            AdminClient(world.librdkafka | shown).list_topics(timeout=5)
    with pytest.raises(KafkaException):
        AdminClient({"bootstrap.servers": world.bootstrap}).list_topics(timeout=5)
