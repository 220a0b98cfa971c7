"""Logins and ACLs together: what a client may do depends on who it has logged in as, and on nothing before that."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from kafka_server import (
    ALTER_USER_SCRAM_CREDENTIALS,
    API_VERSIONS,
    CREATE_ACLS,
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    METADATA,
    KafkaServer,
    RawClient,
    kafka_server,
    make_batch,
    run,
)
from korvet_fast.core.acls.binding import Operation, PatternType, Permission, ResourceType
from korvet_fast.wire.kafka.dialect import SaslKafkaDialect
from sasl_world import SHA_256, add_user, log_in
from tls_world import Authority

SUPER = "User:CN=client.test"
SETTINGS = ("authorizer=acl", f"super.users=User:root;{SUPER}", f"sasl.enabled.mechanisms=PLAIN,{SHA_256}")
TOPIC_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED = 29, 31


@asynccontextmanager
async def guarded(data: Path, *settings: str, **options: Any) -> AsyncIterator[KafkaServer]:
    """A broker with the topics `mine` and `other`, and with users whose passwords are their names."""
    async with kafka_server(data, *SETTINGS, *settings, dialect_type=SaslKafkaDialect, **options) as server:
        for user in ("ann", "bob", "root"):
            await add_user(server.broker.users, user, user, SHA_256)
        for topic in ("mine", "other"):
            await server.broker.topics.create(topic, 1, {})
        yield server


async def enter(server: KafkaServer, user: str) -> RawClient:
    client = await server.connect()
    assert (await log_in(client, user, user, SHA_256))["error_code"] == 0
    return client


async def allow(root: RawClient, user: str, operation: Operation, topic: str) -> None:
    creation = {
        "resource_type": ResourceType.TOPIC,
        "resource_name": topic,
        "resource_pattern_type": PatternType.LITERAL,
        "principal": f"User:{user}",
        "host": "*",
        "operation": operation,
        "permission_type": Permission.ALLOW,
    }
    assert (await root.ask(CREATE_ACLS, 3, creations=[creation]))["results"][0]["error_code"] == 0


async def list_topics(client: RawClient) -> list[str]:
    return [row["name"] for row in (await client.ask(METADATA, 9, topics=None))["topics"]]


def test_each_client_has_the_rights_of_who_it_logged_in_as(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with guarded(tmp_path) as server:
            root, ann, bob = [await enter(server, user) for user in ("root", "ann", "bob")]
            assert [await list_topics(each) for each in (root, ann, bob)] == [["mine", "other"], [], []]
            await allow(root, "ann", Operation.WRITE, "mine")
            await allow(root, "bob", Operation.READ, "other")
            for _ in range(2):  # the second time what is kept is given
                assert [await list_topics(each) for each in (bob, root, ann)] == [
                    ["other"],
                    ["mine", "other"],
                    ["mine"],
                ]
            for client, code, end in ((bob, TOPIC_AUTHORIZATION_FAILED, 0), (ann, 0, 1)):
                assert (await client.produce("mine", make_batch(b"x")))["error_code"] == code
                assert server.broker.partition("mine", 0).log.end == end

    run(scenario)


def test_users_are_changed_by_who_may_alter_the_cluster(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with guarded(tmp_path) as server:
            ann, root = await enter(server, "ann"), await enter(server, "root")
            gone = {"deletions": [{"name": "bob", "mechanism": 1}], "upsertions": []}
            listed = await ann.ask(DESCRIBE_USER_SCRAM_CREDENTIALS, 0, users=None)
            assert (listed["error_code"], listed["results"]) == (CLUSTER_AUTHORIZATION_FAILED, [])
            for client, code in ((ann, CLUSTER_AUTHORIZATION_FAILED), (root, 0)):
                answer = await client.ask(ALTER_USER_SCRAM_CREDENTIALS, 0, **gone)
                assert [(row["user"], row["error_code"]) for row in answer["results"]] == [("bob", code)]
                assert ("bob" in await server.broker.users.list()) is bool(code)

    run(scenario)


def test_another_login_gives_no_other_rights(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with guarded(tmp_path) as server:
            ann = await enter(server, "ann")
            assert (await log_in(ann, "root", "root", SHA_256))["error_code"] == 58
            assert await ann.ended() == b""
            again = await enter(server, "ann")
            assert (await log_in(again, "ann", "ann", SHA_256))["error_code"] == 0
            assert await list_topics(again) == []

    run(scenario)


def test_the_certificate_of_a_super_user_opens_nothing_to_who_logs_in_as_another(tmp_path: Path) -> None:
    authority = Authority(tmp_path)

    async def scenario() -> None:
        certificates = authority.certificates("requested", rules="RULE:^CN=([^,]*).*$/CN=$1/,DEFAULT")
        async with guarded(tmp_path / "data", certificates=certificates) as server:
            shown = authority.client(authority.issue("client.test", "client.test"))
            stranger, client = await server.connect(shown), await server.connect(shown)
            assert (await stranger.ask(API_VERSIONS, 3))["error_code"] == 0
            assert SUPER in [connection.session.principal for connection in server.server.connections]
            stranger.send(METADATA, 9, {"topics": None}, answered=False)
            assert await stranger.ended() == b""
            assert (await log_in(client, "ann", "ann", SHA_256))["error_code"] == 0
            assert await list_topics(client) == []

    run(scenario)
