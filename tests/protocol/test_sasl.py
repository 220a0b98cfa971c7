"""Listeners with SASL over loopback: who logs in how, in which order, and what strangers may do."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kafka_server import (
    API_VERSIONS,
    METADATA,
    PRODUCE,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    KafkaServer,
    RawClient,
    frame,
    kafka_server,
    make_batch,
    run,
)
from korvet_fast.core.clock import Clock
from korvet_fast.errors import StoreError
from korvet_fast.wire.kafka.dialect import SaslKafkaDialect
from korvet_fast.wire.kafka.sasl_session import SaslSession
from sasl_world import SHA_256, SHA_512, ScramPeer, add_user, log_in, plain_token
from tls_world import Authority

ALL = f"sasl.enabled.mechanisms=PLAIN,{SHA_256},{SHA_512}"
UNSUPPORTED_SASL_MECHANISM, ILLEGAL_SASL_STATE, SASL_AUTHENTICATION_FAILED = 33, 34, 58
MIB = 1 << 20


@asynccontextmanager
async def sasl_server(data: Path, *settings: str, **options: Any) -> AsyncIterator[KafkaServer]:
    """A broker with one user, ann, whose password is pear."""
    async with kafka_server(data, ALL, *settings, dialect_type=SaslKafkaDialect, **options) as server:
        await add_user(server.broker.users, "ann", "pear")
        yield server


def sessions(server: KafkaServer) -> list[SaslSession]:
    found = [connection.session for connection in server.server.connections]
    assert all(isinstance(each, SaslSession) for each in found)
    return found  # type: ignore[return-value]


async def is_served(client: RawClient) -> bool:
    return (await client.ask(METADATA, 9, topics=[]))["cluster_id"] != ""


@pytest.mark.parametrize("mechanism", ["PLAIN", SHA_256, SHA_512])
@pytest.mark.parametrize("version", range(3))
def test_who_logs_in_is_served(tmp_path: Path, mechanism: str, version: int) -> None:
    async def scenario() -> None:
        async with sasl_server(tmp_path) as server:
            client = await server.connect()
            assert (await client.ask(API_VERSIONS, 3))["error_code"] == 0
            answer = await log_in(client, "ann", "pear", mechanism, version)
            assert (answer["error_code"], answer["session_lifetime_ms"]) == (0, 0)
            assert (await client.ask(API_VERSIONS, 3))["error_code"] == 0  # Java's asks again
            assert await is_served(client)
            assert [each.principal for each in sessions(server)] == ["User:ann"]
            assert (await client.produce("fruit", make_batch(bytes(900_000))))["error_code"] == 3  # above 512 KiB
            assert (await client.ask(SASL_AUTHENTICATE, 2, auth_bytes=b"x"))["error_code"] == ILLEGAL_SASL_STATE
            assert await is_served(client)

    run(scenario)


@pytest.mark.parametrize("mechanism", ["PLAIN", SHA_256])
def test_tokens_without_requests_as_before_kafka_1_0(tmp_path: Path, mechanism: str) -> None:
    async def scenario() -> None:
        async with sasl_server(tmp_path) as server:
            client = await server.connect()
            assert (await client.ask(SASL_HANDSHAKE, 0, mechanism=mechanism))["error_code"] == 0
            if mechanism == "PLAIN":
                client.writer.write(frame(plain_token("ann", "pear")))
                assert await client.raw_reply() == b""
            else:
                peer = ScramPeer(mechanism, "ann", "pear")
                client.writer.write(frame(peer.first()))
                client.writer.write(frame(peer.final(await client.raw_reply())))
                assert peer.believes(await client.raw_reply())
            assert await is_served(client)
            assert (await client.ask(SASL_HANDSHAKE, 0, mechanism=mechanism))["error_code"] == ILLEGAL_SASL_STATE
            assert await is_served(client)
            wrong = await server.connect()
            assert (await wrong.ask(SASL_HANDSHAKE, 0, mechanism="PLAIN"))["error_code"] == 0
            wrong.writer.write(frame(plain_token("ann", "apple")))
            assert await wrong.ended() == b""

    run(scenario)


@pytest.mark.parametrize("mechanism", ["PLAIN", SHA_256, SHA_512])
def test_a_wrong_name_and_a_wrong_password_are_told_late_and_alike(
    tmp_path: Path, mechanism: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with sasl_server(tmp_path, "connection.failed.authentication.delay.ms=300") as server:
            answers = []
            for user, password in (("ann", "apple"), ("bob", "pear"), ("ann\x1b", "pear")):
                client = await server.connect()
                began = asyncio.get_running_loop().time()
                answers.append(await log_in(client, user, password, mechanism))
                assert asyncio.get_running_loop().time() - began >= 0.3
                assert await client.ended() == b""
            texts = {row["error_message"] for row in answers}
            assert {row["error_code"] for row in answers} == {SASL_AUTHENTICATION_FAILED}
            assert texts == {f"Authentication failed due to invalid credentials with SASL mechanism {mechanism}"}

    run(scenario)
    assert f"it could not log in: {mechanism}: a wrong name or password of ann" in caplog.text
    assert "\x1b" not in caplog.text


def test_a_mechanism_that_is_not_enabled(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, dialect_type=SaslKafkaDialect) as server:
            await add_user(server.broker.users, "ann", "pear")
            for wanted in ("PLAIN", "GSSAPI", "", "x" * 30_000):
                client = await server.connect()
                answer = await client.ask(SASL_HANDSHAKE, 1, mechanism=wanted)
                assert (answer["error_code"], answer["mechanisms"]) == (UNSUPPORTED_SASL_MECHANISM, [SHA_256, SHA_512])
                assert await client.ended() == b""

    run(scenario)


@pytest.mark.parametrize("key", [PRODUCE, METADATA, 50, 51, SASL_AUTHENTICATE, 999])
def test_nothing_is_done_for_a_stranger(tmp_path: Path, key: int, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with sasl_server(tmp_path) as server:
            client = await server.connect()
            client.writer.write(frame(key.to_bytes(2, "big") + b"\0\0" + bytes(6)))
            assert await client.ended() == b""
            after = await server.connect()
            assert (await after.ask(SASL_HANDSHAKE, 1, mechanism=SHA_256))["error_code"] == 0
            after.writer.write(frame(key.to_bytes(2, "big") + b"\0\0" + bytes(6)))
            if key != SASL_AUTHENTICATE:
                assert await after.ended() == b""

    run(scenario)
    assert f"API key {key} came before the client had logged in" in caplog.text


def test_frames_that_are_too_short_or_malformed_end_the_connection(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with sasl_server(tmp_path) as server:
            for payload in (b"", b"\0", b"\0\x11", b"\0\x11\0\1\0\0\0\1\xff\xff\x7f\xff", b"\0\x12\0\3"):
                client = await server.connect()
                client.writer.write(frame(payload))
                assert await client.ended() == b""

    run(scenario)


def test_a_request_before_the_answer_to_the_last_one_ends_the_connection(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with sasl_server(tmp_path) as server:
            client = await server.connect()
            assert (await client.ask(SASL_HANDSHAKE, 1, mechanism="PLAIN"))["error_code"] == 0
            client.send(SASL_AUTHENTICATE, 2, {"auth_bytes": plain_token("ann", "pear")})
            client.send(METADATA, 9, {"topics": []})
            assert await client.ended() == b""
            while server.server.pool.used:
                await asyncio.sleep(0.01)  # until the password is hashed

    run(scenario)
    assert "a request came before the answer to the last one" in caplog.text


class HeldClock(Clock):
    """Who waits for some time waits until a test lets all go on."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        await self.go_on.wait()
        await super().sleep(seconds)


def test_a_stranger_holds_little_memory(tmp_path: Path) -> None:
    async def scenario() -> None:
        clock = HeldClock()
        async with sasl_server(tmp_path, clock=clock) as server:
            large = await server.connect()
            large.writer.write((512 * 1024 + 1).to_bytes(4, "big"))
            assert await large.ended() == b""
            clients = [await server.connect() for _ in range(5)]
            for client in clients:
                assert (await client.ask(SASL_HANDSHAKE, 1, mechanism="PLAIN"))["error_code"] == 0
                client.send(SASL_AUTHENTICATE, 2, {"auth_bytes": bytes(500_000)})
                client.writer.write((512 * 1024).to_bytes(4, "big") + bytes(512 * 1024 - 1))
            deadline = asyncio.get_running_loop().time() + 60
            while len(server.server.connections) < 5 or server.server.pool.used < 5 * 1_000_000:
                assert asyncio.get_running_loop().time() < deadline
                await asyncio.sleep(0.01)
            assert max(connection.account.held for connection in server.server.connections) <= MIB
            clock.go_on.set()
            for client in clients:
                client.writer.transport.abort()

    run(scenario)


def test_a_request_with_many_tags_is_not_decoded(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with sasl_server(tmp_path) as server:
            client = await server.connect()
            tags = b"\x80\x01" + b"".join(bytes([number & 0x7F | 0x80, number >> 7, 0]) for number in range(128))
            client.writer.write(frame(b"\0\x12\0\3\0\0\0\1\xff\xff" + tags + b"\1\1\0"))
            assert await client.ended() == b""

    run(scenario)
    assert "TOO_MANY_ELEMENTS" in caplog.text or "malformed" in caplog.text


def test_the_time_to_log_in_is_limited_whatever_a_stranger_sends(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with sasl_server(tmp_path) as server:
            quiet = await server.connect()
            assert await log_in(quiet, "ann", "pear")
            server.dialect.first_request = server.dialect.first_request._replace(seconds=1.0)
            busy = await server.connect()
            ended = asyncio.create_task(busy.reader.read())
            while not ended.done():
                busy.send(API_VERSIONS, 0, {}, answered=False)
                await asyncio.sleep(0.05)
            assert await is_served(quiet)  # it was silent after its login

    run(scenario)
    assert "it had not logged in after 1 s" in caplog.text


def test_a_store_that_does_not_answer_lets_nobody_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with sasl_server(tmp_path) as server:

            async def fail(key: str) -> bytes | None:
                raise StoreError("the disk is gone")

            monkeypatch.setattr(server.broker.users._store, "load", fail)
            for mechanism in ("PLAIN", SHA_256):
                client = await server.connect()
                with pytest.raises(asyncio.IncompleteReadError):
                    await log_in(client, "ann", "pear", mechanism)

    run(scenario)


def test_inside_tls_the_login_counts_and_not_the_certificate(tmp_path: Path) -> None:
    authority = Authority(tmp_path)

    async def scenario() -> None:
        certificates = authority.certificates("requested")
        async with sasl_server(tmp_path / "data", certificates=certificates) as server:
            shown = authority.issue("client", "client.test")
            client = await server.connect(authority.client(shown))
            assert (await client.ask(API_VERSIONS, 3))["error_code"] == 0
            assert [each.principal.split(",")[0] for each in sessions(server)] == ["User:CN=client"]
            assert not sessions(server)[0].is_authenticated
            assert (await log_in(client, "ann", "pear", SHA_512))["error_code"] == 0
            assert await is_served(client)
            assert [each.principal for each in sessions(server)] == ["User:ann"]

    run(scenario)
