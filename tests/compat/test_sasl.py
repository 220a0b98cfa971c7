"""Clients that others wrote log in by each mechanism, with TLS and without."""

import asyncio
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from kafka import KafkaProducer
from kafka.errors import KafkaError
from kafka.net.compat import KafkaNetClient

from broker_process import BrokerProcess
from compat.java_tools import CONSUMER, PRODUCER, Tools
from compat.round_trips import PATIENCE, check_aiokafka, check_kafka_python, check_librdkafka
from korvet_fast.cli import root
from redis_server import free_port
from tls_world import Authority

VALUES = [b"%d" % number * 100 for number in range(50)] + [bytes(900_000)]
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
MODULES = {"PLAIN": "plain.PlainLoginModule"}


class World(NamedTuple):
    """A broker with listeners for clients that log in, where ann does so by `mechanism`."""

    broker: BrokerProcess
    ports: dict[str, int]
    authority: Authority
    mechanism: str
    protocol: str

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.ports[self.protocol]}"

    @property
    def context(self) -> ssl.SSLContext | None:
        return self.authority.client() if self.protocol == "SASL_SSL" else None

    def librdkafka(self, password: str = "a pear") -> dict[str, str]:
        given = {"bootstrap.servers": self.bootstrap, "security.protocol": self.protocol}
        given |= {"sasl.mechanism": self.mechanism, "sasl.username": "ann", "sasl.password": password}
        return given | ({"ssl.ca.location": str(self.authority.file)} if self.protocol == "SASL_SSL" else {})

    def python(self, password: str = "a pear") -> dict[str, Any]:
        return {
            "bootstrap_servers": self.bootstrap,
            "security_protocol": self.protocol,
            "ssl_context": self.context,
            "sasl_mechanism": self.mechanism,
            "sasl_plain_username": "ann",
            "sasl_plain_password": password,
        }

    @property
    def topic(self) -> str:
        return f"{self.protocol}-{self.mechanism}"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[BrokerProcess, dict[str, int], Authority]]:
    place = tmp_path_factory.mktemp("sasl")
    (place / "ann.txt").write_text("a pear\n")
    store = f"file:{place / 'data'}"
    added = CliRunner().invoke(
        root, ["user", "add", "ann", "--password-file", str(place / "ann.txt"), "--store", store]
    )
    assert added.exit_code == 0, added.output
    authority, ports = Authority(place), {"SASL_PLAINTEXT": free_port(), "SASL_SSL": free_port()}
    listen = ("--listen", f"kafka+sasl://127.0.0.1:{ports['SASL_PLAINTEXT']}")
    listen += ("--listen", f"kafka+sasl+tls://127.0.0.1:{ports['SASL_SSL']}")
    settings = (f"ssl.keystore.location={authority.issue()}", f"sasl.enabled.mechanisms={','.join(MECHANISMS)}")
    with BrokerProcess(place / "data", *settings, arguments=listen) as running:
        yield running, ports, authority


@pytest.fixture(params=MECHANISMS)
def mechanism(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["SASL_PLAINTEXT", "SASL_SSL"])
def world(
    request: pytest.FixtureRequest, broker: tuple[BrokerProcess, dict[str, int], Authority], mechanism: str
) -> World:
    return World(*broker, mechanism, request.param)


def test_confluent_kafka(world: World) -> None:
    check_librdkafka(world.librdkafka(), f"confluent-{world.topic}", VALUES)
    told = AdminClient(world.librdkafka()).list_topics(timeout=PATIENCE)
    assert {row.port for row in told.brokers.values()} == {world.ports[world.protocol]}


def test_kafka_python(world: World) -> None:
    check_kafka_python(world.python(), f"python-{world.topic}", VALUES)


def test_aiokafka(world: World) -> None:
    asyncio.run(check_aiokafka(world.python(), f"aio-{world.topic}", VALUES))


def test_a_wrong_password_and_no_login_reach_nothing(world: World) -> None:
    clients: list[KafkaNetClient] = []

    def make_client(**given: Any) -> KafkaNetClient:
        clients.append(KafkaNetClient(**given))
        return clients[-1]

    with pytest.raises(KafkaError):
        KafkaProducer(**world.python("an apple"), bootstrap_timeout_ms=5000, kafka_client=make_client)
    for client in clients:
        client.close()  # a producer that cannot be made leaves its sockets open
    wrong = world.librdkafka("an apple")
    silent = {name: value for name, value in wrong.items() if not name.startswith("sasl.")}
    silent["security.protocol"] = world.protocol.removeprefix("SASL_")
    for given in (wrong, silent):
        with pytest.raises(KafkaException):
            AdminClient(given).list_topics(timeout=5)


def test_users_by_librdkafkas_admin(broker: tuple[BrokerProcess, dict[str, int], Authority]) -> None:
    world = World(*broker, "SCRAM-SHA-256", "SASL_SSL")
    admin = AdminClient(world.librdkafka())
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8192)
    change = UserScramCredentialUpsertion("bob", info, b"a fig")
    for future in admin.alter_user_scram_credentials([change], request_timeout=PATIENCE).values():
        assert future.result(PATIENCE) is None
    found = admin.describe_user_scram_credentials(["bob"], request_timeout=PATIENCE)["bob"].result(PATIENCE)
    assert [(each.mechanism, each.iterations) for each in found.scram_credential_infos] == [(info.mechanism, 8192)]
    bob = world._replace(mechanism="SCRAM-SHA-512").librdkafka("a fig") | {"sasl.username": "bob"}
    assert AdminClient(bob).list_topics(timeout=PATIENCE).brokers


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_kafkas_tools(broker: tuple[BrokerProcess, dict[str, int], Authority], mechanism: str, tmp_path: Path) -> None:
    world = World(*broker, mechanism, "SASL_SSL")
    module = MODULES.get(mechanism, "scram.ScramLoginModule")
    given = tmp_path / "client.properties"
    given.write_text(
        f"security.protocol=SASL_SSL\nsasl.mechanism={mechanism}\nssl.truststore.type=PEM\n"
        f"ssl.truststore.location={world.authority.file}\n"
        f'sasl.jaas.config=org.apache.kafka.common.security.{module} required username="ann" password="a pear";\n'
    )
    tools, topic = Tools(world.broker, world.bootstrap), f"tools-{mechanism}"
    tools.topics("--create", "--topic", topic, "--command-config", str(given))
    tools.run(PRODUCER, "--topic", topic, "--producer.config", str(given), stdin="one\ntwo\n")
    wanted = ("--topic", topic, "--from-beginning", "--max-messages", "2")
    assert tools.run(CONSUMER, *wanted, "--consumer.config", str(given)).splitlines()[:2] == ["one", "two"]
