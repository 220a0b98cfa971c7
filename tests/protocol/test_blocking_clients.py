"""The blocking connection, which Spark's tasks use: inside TLS, logged in, logged in again, and refused."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from core_world import MovableClock
from kafka_server import KafkaServer, kafka_server, make_batch, run
from korvet_fast.client.protocol.errors import AuthenticationFailed, ClientError, ConnectionLost, Unreachable
from korvet_fast.client.protocol.requests import produce_request, read_produce
from korvet_fast.client.security import Security, read_security
from korvet_fast.core.clock import Clock
from korvet_fast.net.oauth import open_tokens
from korvet_fast.spark.connection import SLICE, BlockingConnection, connect
from korvet_fast.wire.kafka.dialect import KafkaDialect, SaslKafkaDialect
from korvet_fast.wire.kafka.shapes.cluster import METADATA
from korvet_fast.wire.kafka.shapes.produce import PRODUCE
from oauth_world import running_provider
from sasl_world import SHA_256, SHA_512, add_user
from tls_world import Authority

MECHANISMS = f"sasl.enabled.mechanisms=PLAIN,{SHA_256},{SHA_512}"
PATIENCE = 60.0


@asynccontextmanager
async def secure_server(
    place: Path, *settings: str, client_auth: str = "none", clock: Clock | None = None
) -> AsyncIterator[KafkaServer]:
    """A broker inside TLS, where ann logs in with pear; its authority is in ca.pem."""
    certificates = Authority(place).certificates(client_auth)
    dialect = KafkaDialect if client_auth == "required" else SaslKafkaDialect
    options: dict[str, Any] = {"certificates": certificates, "dialect_type": dialect, "clock": clock}
    async with kafka_server(place / "data", MECHANISMS, *settings, **options) as server:
        await add_user(server.broker.users, "ann", "pear")
        yield server


def security(place: Path, **settings: str) -> Security:
    """What the properties of a client say; an underscore is a dot."""
    return read_security({"ssl.truststore.location": str(place / "ca.pem"), **settings})


def ann(place: Path, mechanism: str, password: str = "pear") -> Security:
    given = {"security_protocol": "SASL_SSL", "sasl_mechanism": mechanism, "sasl_username": "ann"}
    return security(place, **given, sasl_password=password)


async def blocking(server: KafkaServer, secured: Security, act: Callable[[BlockingConnection], None]) -> None:
    """Act on a connection, on another thread."""

    def work() -> None:
        connection = connect(server.address, PATIENCE, secured)
        try:
            act(connection)
        finally:
            connection.close()

    await asyncio.to_thread(work)


def store(connection: BlockingConnection, records: bytes = b"pear") -> None:
    """Produce to orders."""
    request = produce_request([(("orders", 0), make_batch(records))], -1, PATIENCE)
    row = read_produce(connection.request(PRODUCE, request))["orders", 0]
    assert row["error_code"] == 0


@pytest.mark.parametrize("mechanism", ["PLAIN", SHA_256, SHA_512])
def test_who_logs_in_produces(tmp_path: Path, mechanism: str) -> None:
    async def scenario() -> None:
        async with secure_server(tmp_path) as server:
            await server.broker.topics.create("orders", 1, {})
            await blocking(server, ann(tmp_path, mechanism), store)
            assert server.broker.partition("orders", 0).log.end == 1

    run(scenario)


def test_a_request_of_megabytes_arrives_whole_in_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenSSL's sockets take all that they are given, or time out: a slow peer has the patience for each slice."""
    sizes: list[int] = []
    send = ssl.SSLSocket.send

    def note(self: ssl.SSLSocket, data: memoryview, flags: int = 0) -> int:
        sizes.append(len(data))
        return send(self, data, flags)

    monkeypatch.setattr(ssl.SSLSocket, "send", note)

    async def scenario() -> None:
        async with secure_server(tmp_path, "message.max.bytes=20000000") as server:
            await server.broker.topics.create("orders", 1, {})
            await blocking(server, ann(tmp_path, "PLAIN"), lambda connection: store(connection, b"x" * 9_000_000))
            assert server.broker.partition("orders", 0).log.end == 1
            assert max(sizes) == SLICE

    run(scenario)


def test_a_client_shows_its_certificate(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with secure_server(tmp_path, client_auth="required") as server:
            await server.broker.topics.create("orders", 1, {})
            shown = str(Authority(tmp_path / "others").issue("stranger"))
            for certificate in ({}, {"ssl_keystore_location": shown}):
                # In TLS 1.3 a client has sent its first request when it is refused, and TCP may lose the reason.
                with pytest.raises((AuthenticationFailed, ConnectionLost)):
                    await blocking(server, security(tmp_path, security_protocol="SSL", **certificate), store)
            assert server.broker.partition("orders", 0).log.end == 0

    (tmp_path / "others").mkdir()
    run(scenario)


def test_a_token_of_a_provider(tmp_path: Path) -> None:
    async def scenario() -> None:
        with running_provider(tmp_path) as provider:
            async with secure_server(tmp_path, *provider.settings) as server:
                tokens = server.broker.tokens = open_tokens(server.broker)
                await server.broker.topics.create("orders", 1, {})
                names = "sasl.oauthbearer.client.credentials.client"
                secured = security(
                    tmp_path,
                    security_protocol="SASL_SSL",
                    sasl_mechanism="OAUTHBEARER",
                    **{
                        "sasl.oauthbearer.token.endpoint.url": f"{provider.url}/token",
                        f"{names}.id": "ann",
                        f"{names}.secret": "secret",
                        "https.ca.location": str(provider.authority.file),
                    },
                )
                await blocking(server, secured, store)
                assert server.broker.partition("orders", 0).log.end == 1
                assert len(provider.tokens) == 1
                await tokens.close()

    run(scenario)


def test_who_is_not_let_in_is_told_why(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with secure_server(tmp_path) as server, kafka_server(tmp_path / "plain") as plain:
            untold = security(tmp_path, security_protocol="SSL")._replace(authorities="")
            for there, secured, kind, words in (
                (server, ann(tmp_path, SHA_256, "apple"), ClientError, "as 'ann': Authentication failed"),
                (
                    server,
                    untold,
                    AuthenticationFailed,
                    r"the certificate of .* is refused: .*; name its authority",
                ),
                (plain, ann(tmp_path, SHA_256), Unreachable, "may be a listener without it"),
                (
                    server,
                    Security(),
                    ConnectionLost,
                    "closed the connection without an answer; perhaps its listener has TLS",
                ),
            ):
                with pytest.raises(kind, match=words):
                    await blocking(there, secured, store)

    run(scenario)


def test_a_login_that_ends_is_renewed_once_all_answers_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = MovableClock()
    monkeypatch.setattr("korvet_fast.spark.connection.time", clock)

    def work(connection: BlockingConnection) -> None:
        for _ in range(3):
            assert not connection.login_ends
            connection.send(METADATA, {"topics": []})
            clock.ahead += 550  # of the 600 s for which a login holds
            for _ in range(2):
                connection.send(METADATA, {"topics": []})
            assert connection.login_ends
            for left in (2, 1, 0):
                assert connection.receive()["cluster_id"]
                assert connection.unanswered == left
            assert connection.request(METADATA, {"topics": []})["cluster_id"]

    async def scenario() -> None:
        async with secure_server(tmp_path, "connections.max.reauth.ms=600000", clock=clock) as server:
            await blocking(server, ann(tmp_path, SHA_256), work)

    run(scenario)
