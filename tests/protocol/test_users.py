"""DescribeUserScramCredentials and AlterUserScramCredentials, as Kafka's admin clients send them."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from kafka_server import (
    ALTER_USER_SCRAM_CREDENTIALS,
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    KafkaServer,
    RawClient,
    kafka_server,
    run,
)
from korvet_fast.wire.dialect import CloseConnection
from korvet_fast.wire.kafka.dialect import SaslKafkaDialect
from sasl_world import SHA_256, SHA_512, add_user, log_in

UNSUPPORTED_SASL_MECHANISM, RESOURCE_NOT_FOUND, DUPLICATE_RESOURCE, UNACCEPTABLE_CREDENTIAL = 33, 91, 92, 93
NUMBERS = {SHA_256: 1, SHA_512: 2}
SALT = b"salt of the test"


def upsertion(name: str, password: str, mechanism: str = SHA_256, iterations: int = 4096) -> dict[str, Any]:
    digest = {SHA_256: "sha256", SHA_512: "sha512"}[mechanism]
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), SALT, iterations)
    row = {"name": name, "mechanism": NUMBERS[mechanism], "iterations": iterations}
    return row | {"salt": SALT, "salted_password": salted}


def deletion(name: str, mechanism: str = SHA_256) -> dict[str, Any]:
    return {"name": name, "mechanism": NUMBERS[mechanism]}


async def alter(client: RawClient, *rows: dict[str, Any]) -> dict[str, int]:
    deleted, set_ = ([row for row in rows if ("salt" in row) == kind] for kind in (False, True))
    answer = await client.ask(ALTER_USER_SCRAM_CREDENTIALS, 0, deletions=deleted, upsertions=set_)
    assert len({row["user"] for row in answer["results"]}) == len(answer["results"])
    return {row["user"]: row["error_code"] for row in answer["results"]}


async def describe(client: RawClient) -> dict[str, list[tuple[int, int]]]:
    answer = await client.ask(DESCRIBE_USER_SCRAM_CREDENTIALS, 0, users=None)
    return {
        row["user"]: [(each["mechanism"], each["iterations"]) for each in row["credential_infos"]]
        for row in answer["results"]
    }


async def enter(server: KafkaServer, *who: str) -> RawClient:
    """A client that has logged in."""
    client = await server.connect()
    assert (await log_in(client, *who))["error_code"] == 0
    return client


def test_users_come_change_and_go(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, dialect_type=SaslKafkaDialect) as server:
            await add_user(server.broker.users, "ann", "pear", SHA_512)
            client = await enter(server, "ann", "pear", SHA_512)
            assert await describe(client) == {"ann": [(2, 4096)]}
            rows = (
                upsertion("bob", "plum", iterations=8192),
                upsertion("bob", "plum", SHA_512),
                deletion("ann", SHA_512),
            )
            assert await alter(client, *rows) == {"bob": 0, "ann": 0}
            assert await describe(client) == {"bob": [(1, 8192), (2, 4096)]}
            await enter(server, "bob", "plum", SHA_256)
            gone = await server.connect()
            assert (await log_in(gone, "ann", "pear", SHA_512))["error_code"] == 58
            assert await alter(client, upsertion("bob", "fig"), deletion("bob", SHA_512)) == {"bob": 0}
            await enter(server, "bob", "fig", SHA_256)
            old = await server.connect()
            assert (await log_in(old, "bob", "plum", SHA_256))["error_code"] == 58

    run(scenario)


def test_the_byte_that_librdkafka_writes_too_many(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            session = server.dialect.session("127.0.0.1")
            asked = client.request(
                ALTER_USER_SCRAM_CREDENTIALS, 0, {"deletions": [], "upsertions": [upsertion("a", "b")]}
            )
            assert await session.handle(bytearray(asked + b"\0"))
            assert await describe(client) == {"a": [(1, 4096)]}
            for more in (b"\0\0", b"\1"):
                with pytest.raises(CloseConnection, match="left over"):
                    await session.handle(bytearray(asked + more))

    run(scenario)


def test_names_of_every_kind(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, dialect_type=SaslKafkaDialect) as server:
            names = ("a,b=c", "Jürgen", "{x}:/*", "CN=ann,O=x", "a" * 1024, " ")
            for name in names:
                await add_user(server.broker.users, name, "päss\0word", SHA_256)
                written = name.replace("=", "=3D").replace(",", "=2C")
                client = await server.connect()
                assert (await log_in(client, written, "päss\0word", SHA_256))["error_code"] == 0
            assert (await describe(client)).keys() == set(names)

    run(scenario)


def test_credentials_outlive_the_broker(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, dialect_type=SaslKafkaDialect) as server:
            await add_user(server.broker.users, "ann", "pear")
            stranger = await server.connect()
            salts = [await _salt(stranger, "bob")]
        async with kafka_server(tmp_path, dialect_type=SaslKafkaDialect) as server:
            await enter(server, "ann", "pear", SHA_512)
            salts += [await _salt(await server.connect(), user) for user in ("bob", "bea")]
        assert salts[0] == salts[1] != salts[2]  # who is not there looks the same each time, as who is there

    async def _salt(client: RawClient, user: str) -> str:
        assert (await client.ask(SASL_HANDSHAKE, 1, mechanism=SHA_256))["error_code"] == 0
        answer = await client.ask(SASL_AUTHENTICATE, 2, auth_bytes=f"n,,n={user},r=abc".encode())
        assert answer["error_code"] == 0
        return bytes(answer["auth_bytes"]).decode().split(",")[1]

    run(scenario)


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ([deletion("bob")], RESOURCE_NOT_FOUND),
        ([deletion("ann", SHA_512)], RESOURCE_NOT_FOUND),
        ([deletion("ann"), upsertion("ann", "fig")], DUPLICATE_RESOURCE),
        ([upsertion("ann", "fig"), upsertion("ann", "plum")], DUPLICATE_RESOURCE),
        ([upsertion("ann", "fig") | {"mechanism": 3}], UNSUPPORTED_SASL_MECHANISM),
        ([deletion("ann") | {"mechanism": 0}], UNSUPPORTED_SASL_MECHANISM),
        ([upsertion("ann", "fig", iterations=4095)], UNACCEPTABLE_CREDENTIAL),
        ([upsertion("ann", "fig") | {"iterations": 16_385}], UNACCEPTABLE_CREDENTIAL),
        ([upsertion("ann", "fig") | {"iterations": -1}], UNACCEPTABLE_CREDENTIAL),
        ([upsertion("ann", "fig") | {"salt": b""}], UNACCEPTABLE_CREDENTIAL),
        ([upsertion("ann", "fig") | {"salted_password": bytes(1025)}], UNACCEPTABLE_CREDENTIAL),
        ([upsertion("", "fig")], UNACCEPTABLE_CREDENTIAL),
        ([upsertion("a" * 1025, "fig")], UNACCEPTABLE_CREDENTIAL),
        ([upsertion("ann", "fig", SHA_512), deletion("ann"), deletion("ann")], DUPLICATE_RESOURCE),
    ],
)
def test_changes_that_are_refused_change_nothing(tmp_path: Path, rows: list[dict[str, Any]], code: int) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            await add_user(server.broker.users, "ann", "pear", SHA_256)
            before = await server.broker.users.list()
            client = await server.connect()
            assert await alter(client, *rows, upsertion("other", "fig")) == {rows[0]["name"]: code, "other": 0}
            after = await server.broker.users.list()
            assert after.pop("other")
            assert after == before

    run(scenario)
