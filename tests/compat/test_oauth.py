"""Clients that others wrote log in with tokens: of a provider over https, or, for tests, of nobody."""

import asyncio
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider as AsyncTokenProvider
from aiokafka.errors import KafkaError
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from kafka.net.sasl.oauth import AbstractTokenProvider

from broker_process import BrokerProcess
from compat.java_tools import CONSUMER, PRODUCER, Tools
from compat.round_trips import PATIENCE, check_aiokafka, check_kafka_python, check_librdkafka
from oauth_world import Provider, make_claims, running_provider
from redis_server import free_port
from tls_world import Authority

VALUES = [b"%d" % number * 100 for number in range(50)] + [bytes(900_000)]
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


class World(NamedTuple):
    """A broker that believes a provider's tokens, inside TLS."""

    broker: BrokerProcess
    bootstrap: str
    authority: Authority
    provider: Provider

    @property
    def context(self) -> ssl.SSLContext:
        return self.authority.client()

    @property
    def librdkafka(self) -> dict[str, Any]:
        return {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.authority.file),
            "sasl.mechanism": "OAUTHBEARER",
        }

    def give(self, config: object) -> tuple[str, float]:
        """`oauth_cb`: a token, and when it ends."""
        return self.provider.sign(), time.time() + 300

    @property
    def oidc(self) -> dict[str, str]:
        """Settings by which librdkafka asks the provider itself."""
        return {
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": "ann",
            "sasl.oauthbearer.client.secret": "secret",
            "sasl.oauthbearer.token.endpoint.url": f"{self.provider.url}/token",
            "https.ca.location": str(self.provider.authority.file),
        }

    def python(self, provider: object) -> dict[str, Any]:
        return {
            "bootstrap_servers": self.bootstrap,
            "security_protocol": "SASL_SSL",
            "ssl_context": self.context,
            "sasl_mechanism": "OAUTHBEARER",
            "sasl_oauth_token_provider": provider,
        }


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    place = tmp_path_factory.mktemp("oauth")
    authority, port = Authority(place), free_port()
    listen = ("--listen", f"kafka+sasl+tls://127.0.0.1:{port}")
    with running_provider(place) as provider:
        settings = (*provider.settings, f"ssl.keystore.location={authority.issue()}")
        with BrokerProcess(place / "data", *settings, arguments=listen) as broker:
            yield World(broker, f"127.0.0.1:{port}", authority, provider)


@pytest.mark.parametrize("method", ["callback", "oidc"])
def test_confluent_kafka(world: World, method: str) -> None:
    given = world.librdkafka | (world.oidc if method == "oidc" else {"oauth_cb": world.give})
    check_librdkafka(given, f"confluent-{method}", VALUES)


class Tokens(AbstractTokenProvider):
    """kafka-python's."""

    def __init__(self, token: str) -> None:
        self._token = token

    def token(self) -> str:
        return self._token


class AsyncTokens(AsyncTokenProvider):
    """aiokafka's."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def token(self) -> str:
        return self._token


def test_kafka_python(world: World) -> None:
    check_kafka_python(world.python(Tokens(world.provider.sign())), "python", VALUES)


def test_aiokafka(world: World) -> None:
    async def scenario() -> None:  # its provider of tokens wants a loop
        await check_aiokafka(world.python(AsyncTokens(world.provider.sign())), "aio", VALUES)

    asyncio.run(scenario())


def test_a_token_that_is_refused_reaches_nothing(world: World) -> None:
    former = world.provider.sign(make_claims(aud="other"))

    async def ask() -> None:
        producer = AIOKafkaProducer(**world.python(AsyncTokens(former)))
        try:
            with pytest.raises(KafkaError):
                await producer.start()
        finally:
            await producer.stop()

    asyncio.run(asyncio.wait_for(ask(), PATIENCE))
    told: list[str] = []
    given = {"oauth_cb": lambda _: (former, time.time() + 300), "error_cb": lambda error: told.append(error.str())}
    admin = AdminClient(world.librdkafka | given)
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=5)
    until = time.monotonic() + PATIENCE
    while not any("Authentication failed due to invalid credentials" in text for text in told):
        assert time.monotonic() < until, told
        admin.poll(0.1)


def test_our_commands(world: World, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        f"security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\nssl.truststore.location={world.authority.file}\n"
        + "".join(f"{name}={value}\n" for name, value in world.oidc.items())
    )
    options = ("--bootstrap", world.bootstrap, "--command-config", str(file))
    assert run_command("topic", "create", "ours", *options)
    assert run_command("produce", "ours", *options, stdin="a ripe pear\n") == ""
    assert run_command("consume", "ours", "--until-end", *options) == "a ripe pear\n"


def run_command(*arguments: str, stdin: str = "") -> str:
    """The output of one of our commands that ended well."""
    command = [sys.executable, "-m", "korvet_fast", *arguments]
    ran = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=PATIENCE)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def unsecured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[BrokerProcess, str]]:
    """A broker that takes tokens which nobody has signed."""
    place, port = tmp_path_factory.mktemp("unsecured"), free_port()
    settings = ("sasl.enabled.mechanisms=OAUTHBEARER", "sasl.oauthbearer.unsecured.tokens.for.testing=true")
    listen = ("--listen", f"kafka+sasl://127.0.0.1:{port}")
    with BrokerProcess(place / "data", *settings, arguments=listen) as broker:
        yield broker, f"127.0.0.1:{port}"


def test_kafkas_tools_with_tokens_of_their_own(unsecured: tuple[BrokerProcess, str], tmp_path: Path) -> None:
    broker, bootstrap = unsecured
    given = tmp_path / "client.properties"
    given.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
        f'sasl.jaas.config={MODULE} required unsecuredLoginStringClaim_sub="ann";\n'
    )
    tools = Tools(broker, bootstrap)
    tools.topics("--create", "--topic", "tools", "--command-config", str(given))
    tools.run(PRODUCER, "--topic", "tools", "--producer.config", str(given), stdin="one\ntwo\n")
    wanted = ("--topic", "tools", "--from-beginning", "--max-messages", "2")
    assert tools.run(CONSUMER, *wanted, "--consumer.config", str(given)).splitlines()[:2] == ["one", "two"]


def test_librdkafkas_tokens_for_tests(unsecured: tuple[BrokerProcess, str]) -> None:
    given = {
        "bootstrap.servers": unsecured[1],
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "enable.sasl.oauthbearer.unsecure.jwt": "true",
        "sasl.oauthbearer.config": "principal=ann",
    }
    assert AdminClient(given).list_topics(timeout=PATIENCE).brokers
