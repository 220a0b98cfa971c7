"""Logins that hold for a time (KIP-368), and our client, which logs in again before the time is over."""

import asyncio
from pathlib import Path

import pytest

from core_world import MovableClock
from kafka_server import API_VERSIONS, METADATA, SASL_AUTHENTICATE, SASL_HANDSHAKE, kafka_server, run
from korvet_fast.client.connection import connect
from korvet_fast.client.protocol.errors import ClientError
from korvet_fast.client.protocol.sasl import SaslLogin
from korvet_fast.client.security import Security
from korvet_fast.wire.kafka.dialect import SaslKafkaDialect
from korvet_fast.wire.kafka.shapes import cluster
from sasl_world import SHA_256, SHA_512, add_user, log_in, plain_token, send_token

ALL = f"sasl.enabled.mechanisms=PLAIN,{SHA_256},{SHA_512}"
ILLEGAL_SASL_STATE, SASL_AUTHENTICATION_FAILED = 34, 58


def test_a_login_ends_and_another_one_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    clock = MovableClock()

    async def scenario() -> None:
        settings = (ALL, "connections.max.reauth.ms=60000")
        async with kafka_server(tmp_path, *settings, clock=clock, dialect_type=SaslKafkaDialect) as server:
            await add_user(server.broker.users, "ann", "pear")
            client, idle = await server.connect(), await server.connect()
            for each in (client, idle):
                assert (await log_in(each, "ann", "pear", SHA_256))["session_lifetime_ms"] == 60_000
            clock.ahead += 50
            client.send(METADATA, 9, {"topics": []})  # under way while the client logs in again
            client.send(SASL_HANDSHAKE, 1, {"mechanism": SHA_256})
            assert (await client.reply())["cluster_id"]
            assert (await client.reply())["error_code"] == 0
            first = await send_token(client, b"n,,n=ann,r=abc")
            assert (first["error_code"], first["session_lifetime_ms"]) == (0, 0)
            late = await server.connect()
            assert (await log_in(late, "ann", "pear", SHA_512))["error_code"] == 0
            clock.ahead += 61
            assert (await log_in(late, "ann", "pear", SHA_512))["error_code"] == 0  # also when the time is over
            assert (await late.ask(METADATA, 9, topics=[]))["cluster_id"]
            again = await late.ask(SASL_HANDSHAKE, 1, mechanism=SHA_512)
            assert again["error_code"] == ILLEGAL_SASL_STATE  # not twice in a second
            assert (await late.ask(METADATA, 9, topics=[]))["cluster_id"]
            idle.send(API_VERSIONS, 3, {}, answered=False)
            assert await idle.ended() == b""

    run(scenario)
    assert "the login of User:ann holds no longer" in caplog.text
    assert "Fatal error" not in caplog.text  # asyncio's, of a protocol that raises


def test_who_logs_in_again_stays_the_same(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, ALL, dialect_type=SaslKafkaDialect) as server:
            for name in ("ann", "bob"):
                await add_user(server.broker.users, name, "pear")
            for user, password, mechanism in (
                ("bob", "pear", "PLAIN"),
                ("ann", "fig", "PLAIN"),
                ("ann", "pear", SHA_256),
            ):
                client = await server.connect()
                assert (await log_in(client, "ann", "pear"))["error_code"] == 0
                assert (await log_in(client, user, password, mechanism))["error_code"] == SASL_AUTHENTICATION_FAILED
                assert await client.ended() == b""
            client = await server.connect()
            assert (await log_in(client, "ann", "pear"))["error_code"] == 0
            assert (await client.ask(SASL_HANDSHAKE, 1, mechanism="PLAIN"))["error_code"] == 0
            assert (await client.ask(METADATA, 9, topics=[]))["cluster_id"]  # the former login holds meanwhile
            answer = await client.ask(SASL_AUTHENTICATE, 1, auth_bytes=plain_token("ann", "pear"))
            assert answer["error_code"] == 0

    run(scenario)


def test_our_client_logs_in_again_and_keeps_the_order(tmp_path: Path) -> None:
    clock = MovableClock()

    async def scenario() -> None:
        settings = (ALL, "connections.max.reauth.ms=60000")
        async with kafka_server(tmp_path, *settings, clock=clock, dialect_type=SaslKafkaDialect) as server:
            await add_user(server.broker.users, "ann", "pear")
            security = Security(login=SaslLogin(SHA_256, "ann", "pear"))
            connection = await connect(server.address, 60, security=security)
            now = asyncio.get_running_loop().time

            def let_time_pass() -> None:
                assert 30 < connection._login_ends - now() < 60, "before the broker ends it"
                clock.ahead += 50
                connection._login_ends = now()

            for _ in range(3):
                order: list[int] = []

                async def ask(number: int, order: list[int] = order) -> None:
                    assert (await connection.request(cluster.METADATA, {"topics": []}))["cluster_id"]
                    order.append(number)

                let_time_pass()
                await asyncio.gather(*map(ask, range(10)))
                assert order == list(range(10))
            ann = (await server.broker.users.list())["ann"]
            await server.broker.users.alter("ann", dict.fromkeys(ann), "User:root")
            let_time_pass()
            with pytest.raises(ClientError, match="as 'ann': Authentication failed"):
                await connection.request(cluster.METADATA, {"topics": []})
            assert connection.failure is not None
            await connection.close()

    run(scenario)
