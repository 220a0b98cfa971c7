"""Clients that others wrote, over TLS and with certificates of their own, beside a listener without."""

import asyncio
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from broker_process import BrokerProcess
from compat.round_trips import PATIENCE, check_aiokafka, check_kafka_python, check_librdkafka
from redis_server import free_port
from tls_world import Authority

VALUES = [b"%d" % number * 100 for number in range(200)] + [bytes(900_000)]


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

    @property
    def python(self) -> dict[str, Any]:
        return {"bootstrap_servers": self.bootstrap, "security_protocol": "SSL", "ssl_context": self.context}


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
    check_librdkafka(world.librdkafka | {"compression.type": "none"}, "confluent", VALUES)


def test_kafka_python(world: World) -> None:
    check_kafka_python(world.python, "kafka-python", VALUES)


def test_aiokafka(world: World) -> None:
    asyncio.run(check_aiokafka(world.python, "aiokafka", VALUES))


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
