"""Our own clients inside TLS with certificates of `korvet-fast certs`: commands, producer by each protocol, http."""

import asyncio
import http.client
import json
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from broker_process import BrokerProcess
from korvet_fast.cli import root
from korvet_fast.cli.authority import open_authority
from korvet_fast.client import AsyncProducer
from korvet_fast.client.cluster import Cluster
from korvet_fast.client.protocol.errors import AuthenticationFailed, ClientError, Unreachable
from korvet_fast.client.security import Security
from korvet_fast.endpoint import Address
from korvet_fast.errors import SettingError
from korvet_fast.wire.kafka.shapes.cluster import METADATA
from redis_server import free_port
from text_client import PATIENT

REFUSED = (AuthenticationFailed, Unreachable)
SCHEMES = ("kafka+tls", "text+tls", "legacy+tls", "http+tls")


class World(NamedTuple):
    """A broker that wants certificates, and the files of `korvet-fast certs`."""

    broker: BrokerProcess
    ports: dict[str, int]
    files: Path

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.ports['kafka+tls']}"

    @property
    def security(self) -> Security:
        return Security(True, str(self.files / "ca.pem"), str(self.files / "client.pem"))

    @property
    def settings(self) -> dict[str, str]:
        return {
            "security.protocol": "SSL",
            "ssl.truststore.location": str(self.files / "ca.pem"),
            "ssl.keystore.location": str(self.files / "client.pem"),
        }

    def run(self, *command: str, typed: str = "") -> str:
        """What a command prints, which may also read `typed`."""
        file = self.files / "client.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in self.settings.items()) + "client.id=mine\n")
        given = (*command, "--bootstrap", self.bootstrap, "--command-config", str(file))
        done = subprocess.run(
            [sys.executable, "-m", "korvet_fast", *given], input=typed, capture_output=True, text=True, timeout=200
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    place = tmp_path_factory.mktemp("clients")
    files = place / "certs"
    assert CliRunner().invoke(root, ["certs", str(files)]).exit_code == 0
    ports = {scheme: free_port() for scheme in SCHEMES}
    listen = [each for scheme, port in ports.items() for each in ("--listen", f"{scheme}://127.0.0.1:{port}")]
    settings = (
        f"ssl.keystore.location={files / 'server.pem'}",
        f"ssl.truststore.location={files / 'ca.pem'}",
        "ssl.client.auth=required",
    )
    with BrokerProcess(place / "data", *settings, before=PATIENT, arguments=listen) as broker:
        yield World(broker, ports, files)


def test_every_command_that_asks_a_broker(world: World) -> None:
    run = world.run
    run("topic", "create", "commands", "--partitions", "1")
    run("topic", "alter", "commands", "--set", "retention.ms=1000000")
    run("produce", "commands", typed="one\ntwo\n")
    assert run("consume", "commands", "--until-end", "--group", "readers") == "one\ntwo\n"
    assert json.loads(run("topic", "describe", "commands", "--json"))[0]["topic"] == "commands"
    assert [each["topic"] for each in json.loads(run("topic", "list", "--json"))] == ["commands"]
    assert [each["group"] for each in json.loads(run("group", "list", "--json"))] == ["readers"]
    run("group", "describe", "readers")
    run("group", "delete", "readers")
    assert "ssl.client.auth" in run("config", "list")
    (member,) = json.loads(run("cluster", "info", "--json"))["brokers"]
    assert (member["host"], member["port"]) == ("127.0.0.1", world.ports["kafka+tls"])
    run("topic", "delete", "commands")


@pytest.mark.parametrize("scheme", ["kafka", "text"])
def test_the_producer_by_each_protocol(world: World, scheme: str) -> None:
    address, topic = f"{scheme}://127.0.0.1:{world.ports[f'{scheme}+tls']}", f"by-{scheme}"

    async def scenario() -> None:
        async with AsyncProducer(address, **world.settings) as producer:
            sent = [producer.send(topic, b"%d" % number * 1000) for number in range(300)]
            await producer.flush()
            assert all(each.exception() is None for each in sent)

    asyncio.run(asyncio.wait_for(scenario(), 120))
    assert world.run("consume", topic, "--until-end").splitlines() == [str(number) * 1000 for number in range(300)]


def test_the_producer_does_not_speak_tls_where_nothing_is_answered(world: World) -> None:
    with pytest.raises(SettingError, match="inside TLS nobody sees when the system has it"):
        AsyncProducer(f"legacy://127.0.0.1:{world.ports['legacy+tls']}", **world.settings)


def test_health_and_metrics(world: World) -> None:
    context = ssl.create_default_context(cafile=world.files / "ca.pem")
    context.load_cert_chain(world.files / "client.pem")
    asked = http.client.HTTPSConnection("127.0.0.1", world.ports["http+tls"], timeout=60, context=context)
    for path, words in (("/readyz", b"ok"), ("/metrics", b"korvet_connections ")):
        asked.request("GET", path)
        answer = asked.getresponse()
        assert (answer.status, words in answer.read()) == (200, True)
    asked.close()


def test_who_is_not_trusted_or_speaks_no_tls_is_told_why(world: World, tmp_path: Path) -> None:
    open_authority(tmp_path).issue_client("stranger", 2)
    stranger, ca = str(tmp_path / "client.pem"), str(world.files / "ca.pem")
    encrypted, plain = Address("127.0.0.1", world.ports["kafka+tls"]), Address("127.0.0.1", world.broker.port)

    async def ask(address: Address, security: Security) -> None:
        async with Cluster([address], 60.0, security) as cluster:
            await cluster.metadata([])

    named = Address("localhost", encrypted.port)
    asyncio.run(ask(named, world.security))
    elsewhere = tmp_path / "elsewhere"
    open_authority(elsewhere)
    for address, security, kind, words in (
        (encrypted, world.security._replace(authorities=str(elsewhere / "ca.pem")), ClientError, "is refused: "),
        (encrypted, world.security._replace(authorities=str(elsewhere)), ClientError, "ssl.truststore.location: "),
        # With TLS 1.3 a client has sent its first request when it is refused, and TCP may lose the reason.
        (encrypted, Security(True, ca), REFUSED, "certificate required|reset|closed the connection"),
        (encrypted, Security(True, ca, stranger), REFUSED, "unknown ca|reset|closed the connection"),
        (plain, world.security, Unreachable, "may be a listener without it"),
        (encrypted, Security(), Unreachable, "closed the connection|reset"),
    ):
        with pytest.raises(kind, match=words):
            asyncio.run(ask(address, security))


def test_a_file_that_cannot_be_used_is_an_error_of_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    for content, words in (
        ("security.protocol=SASL_SSL", "security.protocol with SASL needs sasl.mechanism"),
        ("ssl.ca.location=ca.pem", "set security.protocol=SSL as well"),
        ("a=\\u", "without four hexadecimal digits"),
    ):
        file.write_text(content)
        refused = CliRunner().invoke(root, ["topic", "list", "--command-config", str(file)])
        assert refused.exit_code == 2
        assert words in refused.output
        assert "client.properties" in refused.output
    refused = CliRunner().invoke(root, ["topic", "list", "--bootstrap", "kafka+tls://127.0.0.1:1"])
    assert (refused.exit_code, "write 127.0.0.1:1 for" in refused.output) == (2, True)


def test_new_certificates_under_load_drop_nothing(world: World) -> None:
    """`certs` again and again while one producer goes on, and others come: each gets a certificate that fits."""

    async def scenario() -> None:
        address = Address("127.0.0.1", world.ports["kafka+tls"])
        async with (
            AsyncProducer(world.bootstrap, **world.settings) as steady,
            Cluster([address], 60.0, world.security) as cluster,
        ):
            connection = await cluster.controller()
            serials = set()
            for number in range(4):
                sent = [steady.send("renewed", b"%d" % number, partition=0) for _ in range(200)]
                done = await asyncio.to_thread(CliRunner().invoke, root, ["certs", str(world.files)])
                assert done.exit_code == 0
                await asyncio.sleep(1.1)  # the files are looked at once a second at most
                async with AsyncProducer(world.bootstrap, **world.settings) as newcomer:
                    await newcomer.send("renewed", b"new", partition=0)
                await steady.flush()
                assert [each.exception() for each in sent] == [None] * len(sent)
                serials.add(await asyncio.to_thread(read_certificate, world))
                await connection.request(METADATA, {"topics": None})
            assert len(serials) == 4
            assert connection.failure is None

    asyncio.run(asyncio.wait_for(scenario(), 240))
    deadline = time.monotonic() + 60
    while sum("new connections get the certificates that changed" in line for line in world.broker.log) < 4:
        assert time.monotonic() < deadline, world.broker.log
        time.sleep(0.05)  # the log is read by a thread of its own
    assert not [line for line in world.broker.log if "cannot be used" in line]


def read_certificate(world: World) -> bytes:
    context = ssl.create_default_context(cafile=world.files / "ca.pem")
    context.load_cert_chain(world.files / "client.pem")
    asked = http.client.HTTPSConnection("127.0.0.1", world.ports["http+tls"], timeout=60, context=context)
    asked.connect()
    assert isinstance(asked.sock, ssl.SSLSocket)
    shown = asked.sock.getpeercert(binary_form=True)
    asked.close()
    assert shown is not None
    return bytes(shown)
