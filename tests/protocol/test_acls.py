"""ACLs: every API and version, allowed and denied, with the answers of the table; and what the table cannot say."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import acl_cases
from acl_cases import AUTHORIZATION, WHO, Case, cluster_bindings
from kafka_server import DESCRIBE_ACLS, METADATA, KafkaServer, RawClient, kafka_server, make_batch, run
from korvet_fast.core.acls.binding import AclBinding, AclFilter, Operation, PatternType, Permission, ResourceType
from korvet_fast.store.embedded.store import EmbeddedStore
from korvet_fast.wire.kafka.access import ACCESS
from korvet_fast.wire.kafka.routes import ROUTES

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
SETTINGS = ("authorizer=acl", "super.users=User:root", "group.initial.rebalance.delay.ms=0")


@asynccontextmanager
async def guarded(data: Path, *settings: str) -> AsyncIterator[tuple[KafkaServer, RawClient]]:
    async with kafka_server(data, *SETTINGS, *settings) as server:
        yield server, await server.connect()


async def allow(
    server: KafkaServer,
    operation: Operation,
    name: str,
    resource: ResourceType = TOPIC,
    permission: Permission = Permission.ALLOW,
    pattern: PatternType = PatternType.LITERAL,
    host: str = "*",
) -> None:
    assert server.broker.acls is not None
    binding = AclBinding(resource, name, pattern, WHO, host, operation, permission)
    await server.broker.acls.create([binding], "User:root")


async def set_cluster(server: KafkaServer, bindings: list[AclBinding]) -> None:
    """Replace the ACLs of the cluster by these."""
    acls = server.broker.acls
    assert acls is not None
    await acls.delete([AclFilter(CLUSTER)], "User:root", server.dialect.session("127.0.0.1").pace())
    await acls.create(bindings, "User:root")


async def make_topics(server: KafkaServer, *names: str) -> None:
    for name in names:
        await server.broker.topics.create(name, 1, {})


def test_every_route_is_in_the_table() -> None:
    assert ACCESS.keys() == ROUTES.keys()


def test_every_api_in_every_version_is_allowed_and_denied_as_the_table_says(tmp_path: Path) -> None:
    wrong: list[str] = []

    async def ask(client: RawClient, case: Case) -> None:
        client.send(case.key, case.version, dict(case.values))
        codes = case.find_codes(await asyncio.wait_for(client.reply(), 30))
        if case.allowed:
            if not codes or set(codes) & AUTHORIZATION:
                wrong.append(f"{case}: {codes}")
        elif not codes or set(codes) != {acl_cases.error_of(case)}:
            wrong.append(f"{case}: {codes}")

    async def scenario() -> None:
        every = acl_cases.cases()
        assert len(every) > 400
        async with guarded(tmp_path / "data", "auto.create.topics.enable=true") as (server, client):
            await make_topics(server, *acl_cases.topics())
            assert server.broker.acls is not None
            await server.broker.acls.create(list(acl_cases.bindings()), "User:root")
            for case in every:
                if case.right.resource is CLUSTER:
                    await set_cluster(server, cluster_bindings(case.kind, case.right.operation))
                    await ask(client, case)
                    await set_cluster(server, [])
                else:
                    await ask(client, case)
        assert wrong == []

    run(scenario)


def code(answer: dict[str, Any], *path: str) -> int:
    """The one error code behind this path."""
    found: Any = answer
    for part in path:
        found = found[part]
        if isinstance(found, list):
            (found,) = found
    return int(found["error_code"])


def test_of_a_request_the_allowed_part_is_done_and_the_rest_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with guarded(tmp_path / "data") as (server, client):
            await make_topics(server, "mine", "other")
            await allow(server, Operation.WRITE, "mine")
            batch = bytes(make_batch(b"x"))
            rows = [{"name": name, "partition_data": [{"index": 0, "records": batch}]} for name in ("other", "mine")]
            answer = await client.ask(0, 9, acks=-1, timeout_ms=5000, topic_data=rows)
            codes = {row["name"]: row["partition_responses"][0]["error_code"] for row in answer["responses"]}
            assert codes == {"mine": 0, "other": 29}
            assert server.broker.partition("mine", 0).log.end == 1
            assert server.broker.partition("other", 0).log.end == 0
            # Nothing is answered to acks=0, so the connection ends, as Kafka's does; the allowed part is stored.
            client.send(0, 9, {"acks": 0, "timeout_ms": 5000, "topic_data": rows}, answered=False)
            assert await client.ended() == b""
            assert server.broker.partition("mine", 0).log.end == 2
            assert server.broker.partition("other", 0).log.end == 0

    run(scenario)


def test_topics_that_may_not_be_described_are_hidden_and_each_principal_has_its_own_list(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with guarded(tmp_path / "data") as (server, client):
            await make_topics(server, "mine", "other")
            await allow(server, Operation.READ, "mine")

            async def names() -> list[str]:
                return [row["name"] for row in (await client.ask(METADATA, 9, topics=None))["topics"]]

            assert await names() == ["mine"]
            session = server.dialect.session("127.0.0.1")
            session.principal = "User:root"
            asked = client.request(METADATA, 9, {"topics": None})
            assert b"other" in b"".join(await session.handle(bytearray(asked)))
            assert await names() == ["mine"]
            page = await client.ask(75, 0, topics=[], response_partition_limit=10, cursor=None)
            assert [row["name"] for row in page["topics"]] == ["mine"]
            # What was kept is not given any more when the ACLs have changed.
            await allow(server, Operation.DESCRIBE, "oth", pattern=PatternType.PREFIXED)
            assert await names() == ["mine", "other"]
            await allow(server, Operation.DESCRIBE, "mine", permission=Permission.DENY)
            assert await names() == ["other"]
            named = await client.ask(METADATA, 9, topics=[{"name": "mine"}, {"name": "other"}])
            assert [row["error_code"] for row in named["topics"]] == [29, 0]

    run(scenario)


def test_a_topic_is_not_told_by_its_id_to_who_may_not_describe_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with guarded(tmp_path / "data") as (server, client):
            await make_topics(server, "secret")
            topic = server.broker.topics.get("secret")
            assert topic is not None
            answer = await client.ask(METADATA, 12, topics=[{"name": None, "topic_id": topic.id}])
            assert (code(answer, "topics"), answer["topics"][0]["name"]) == (29, None)
            answer = await client.ask(20, 6, topics=[{"name": None, "topic_id": topic.id}], timeout_ms=1000)
            assert (code(answer, "responses"), answer["responses"][0]["name"]) == (29, None)

    run(scenario)


def test_whether_a_topic_that_cannot_be_deleted_exists_is_told_to_who_may_describe_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with guarded(tmp_path / "data") as (server, client):
            await make_topics(server, "here")
            for described, codes in ((False, [29, 29]), (True, [29, 3])):
                if described:
                    for name in ("here", "gone"):
                        await allow(server, Operation.DESCRIBE, name)
                rows = [{"name": "here"}, {"name": "gone"}]
                answer = await client.ask(20, 6, topics=rows, timeout_ms=1000)
                assert [row["error_code"] for row in answer["responses"]] == codes
            assert server.broker.topics.get("here") is not None

    run(scenario)


def test_operations_that_are_told_are_those_that_are_allowed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with guarded(tmp_path / "data") as (server, client):
            await make_topics(server, "mine")
            await allow(server, Operation.WRITE, "mine")
            asked = {"topics": [{"name": "mine"}], "include_topic_authorized_operations": True}
            answer = await client.ask(METADATA, 9, **asked, include_cluster_authorized_operations=True)
            wanted = 1 << Operation.WRITE | 1 << Operation.DESCRIBE
            assert answer["topics"][0]["topic_authorized_operations"] == wanted
            assert answer["cluster_authorized_operations"] == 0
            await allow(server, Operation.ALTER, "kafka-cluster", CLUSTER)
            answer = await client.ask(60, 1, include_cluster_authorized_operations=True, endpoint_type=1)
            assert answer["cluster_authorized_operations"] == 1 << Operation.ALTER | 1 << Operation.DESCRIBE

    run(scenario)


def test_whoever_may_write_somewhere_gets_a_producer_id(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with guarded(tmp_path / "data") as (server, client):
            asked = {"transactional_id": None, "transaction_timeout_ms": 1000}
            assert (await client.ask(22, 4, **asked))["error_code"] == 31
            await allow(server, Operation.WRITE, "any", pattern=PatternType.PREFIXED)
            assert (await client.ask(22, 4, **asked))["error_code"] == 0
            await allow(server, Operation.WRITE, "a", permission=Permission.DENY, pattern=PatternType.PREFIXED)
            assert (await client.ask(22, 4, **asked))["error_code"] == 31
            await allow(server, Operation.IDEMPOTENT_WRITE, "kafka-cluster", CLUSTER)
            assert (await client.ask(22, 4, **asked))["error_code"] == 0

    run(scenario)


def test_a_pattern_of_a_consumer_group_matches_what_its_member_may_describe(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with guarded(tmp_path / "data") as (server, client):
            await make_topics(server, "t-mine", "t-other")
            await allow(server, Operation.READ, "group", GROUP)
            await allow(server, Operation.DESCRIBE, "t-mine")
            asked = {"group_id": "group", "member_id": "m", "rebalance_timeout_ms": 5000, "topic_partitions": []}

            async def list_topics(epoch: int, **more: Any) -> tuple[int, set[str]]:
                answer = await client.ask(68, 1, **asked | more, member_epoch=epoch)
                assert answer["error_code"] == 0, answer
                rows = answer["assignment"]["topic_partitions"] if answer["assignment"] else []
                topics = [server.broker.topics.by_id(row["topic_id"]) for row in rows]
                return answer["member_epoch"], {topic.name for topic in topics if topic is not None}

            epoch, found = await list_topics(0, subscribed_topic_regex="t-.*")
            assert found == {"t-mine"}
            await allow(server, Operation.DESCRIBE, "t-other")
            _, found = await list_topics(epoch)
            assert found == {"t-mine", "t-other"}
            # Whoever may not describe one of them is not shown the members.
            await allow(server, Operation.DESCRIBE, "t-other", permission=Permission.DENY)
            answer = await client.ask(69, 0, group_ids=["group"])
            assert (code(answer, "groups"), answer["groups"][0]["members"]) == (29, [])

    run(scenario)


def test_groups_are_listed_that_may_be_described(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with guarded(tmp_path / "data") as (server, client):
            await make_topics(server, "mine")
            await allow(server, Operation.READ, "mine")
            for group in ("one", "two"):
                await allow(server, Operation.READ, group, GROUP)
                row = {"partition_index": 0, "committed_offset": 0, "committed_metadata": ""}
                asked = {"group_id": group, "member_id": "", "topics": [{"name": "mine", "partitions": [row]}]}
                assert code(await client.ask(8, 8, **asked), "topics", "partitions") == 0
            await allow(server, Operation.ALL, "two", GROUP, Permission.DENY)
            assert [row["group_id"] for row in (await client.ask(16, 4))["groups"]] == ["one"]
            await allow(server, Operation.DESCRIBE, "kafka-cluster", CLUSTER)
            assert [row["group_id"] for row in (await client.ask(16, 4))["groups"]] == ["one", "two"]
            # All that a group has committed, but for topics that may not be described.
            await allow(server, Operation.DESCRIBE, "mine", permission=Permission.DENY)
            answer = await client.ask(9, 8, groups=[{"group_id": "one", "topics": None}])
            assert answer["groups"][0]["topics"] == []

    run(scenario)


def test_cve_2018_1288_who_says_to_be_a_replica_needs_the_right_of_brokers(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with guarded(tmp_path / "data") as (server, client):
            await make_topics(server, "mine")
            await allow(server, Operation.READ, "mine")
            assert (await client.fetch("mine", 0))["error_code"] == 0
            assert (await client.fetch("mine", 0, replica_id=1))["error_code"] == 29
            await allow(server, Operation.CLUSTER_ACTION, "kafka-cluster", CLUSTER)
            assert (await client.fetch("mine", 0, replica_id=1))["error_code"] == 42  # there are no such replicas

    run(scenario)


def test_a_broker_with_a_damaged_acl_starts_and_serves_super_users_who_mend_it(tmp_path: Path) -> None:
    settings = ("authorizer=acl", "super.users=User:root")

    async def list_topics(client: RawClient) -> list[str]:
        return [row["name"] for row in (await client.ask(METADATA, 9, topics=None))["topics"]]

    async def damage() -> None:
        async with kafka_server(tmp_path / "data", *settings) as server:
            await make_topics(server, "mine")
            await allow(server, Operation.READ, "mine")
            assert await list_topics(await server.connect()) == ["mine"]
        store = EmbeddedStore(tmp_path / "data")
        await store.open()
        assert await store.save("acls/damaged", b"?", None)
        await store.close()

    async def mend() -> None:
        async with kafka_server(tmp_path / "data", *settings) as server:
            client, acls = await server.connect(), server.broker.acls
            assert await list_topics(client) == []
            assert (await client.produce("mine", make_batch(b"x")))["error_code"] == 29
            root = server.dialect.session("127.0.0.1")
            root.principal = "User:root"
            asked = client.request(METADATA, 9, {"topics": None})
            assert b"mine" in b"".join(await root.handle(bytearray(asked)))
            assert acls is not None
            (kept,) = await acls.find(AclFilter(), root.pace())
            await acls.delete([AclFilter()], "User:root", root.pace())
            await acls.create([kept], "User:root")
            assert await list_topics(client) == ["mine"]

    run(damage)
    run(mend)


def test_acls_are_kept_over_a_restart_and_their_requests_follow_kafkas_rules(tmp_path: Path) -> None:
    creation = {"resource_type": 2, "resource_name": "t", "resource_pattern_type": 3, "principal": WHO, "host": "*"}
    creation |= {"operation": 3, "permission_type": 3}
    wrong = [
        creation | {"resource_type": 1},
        creation | {"resource_type": 99},
        creation | {"resource_name": ""},
        creation | {"resource_pattern_type": 2},
        creation | {"principal": "ann"},
        creation | {"host": ""},
        creation | {"operation": 1},
        creation | {"permission_type": 1},
        creation | {"resource_type": 4},
        creation | {"principal": "User:" + "x" * 5000},
    ]
    every = {"resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 1}
    every |= {"principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1}

    async def first() -> None:
        async with guarded(tmp_path / "data", f"super.users={WHO}") as (_, client):
            asked = [creation, creation, creation | {"operation": 4}, *wrong]
            answer = await client.ask(30, 3, creations=asked)
            assert [row["error_code"] for row in answer["results"]] == [0, 0, 0] + [42] * len(wrong)
            assert (await client.ask(DESCRIBE_ACLS, 3, **every | {"operation": 99}))["error_code"] == 42

    async def second() -> None:
        async with guarded(tmp_path / "data", f"super.users={WHO}") as (_, client):
            (row,) = (await client.ask(DESCRIBE_ACLS, 3, **every))["resources"]
            assert (row["resource_name"], [one["operation"] for one in row["acls"]]) == ("t", [3, 4])
            filters = [every | {"operation": 3}, every | {"pattern_type_filter": 77}, every]
            answer = await client.ask(31, 3, filters=filters)
            assert [row["error_code"] for row in answer["filter_results"]] == [0, 42, 0]
            assert [len(row["matching_acls"]) for row in answer["filter_results"]] == [1, 0, 2]
            assert (await client.ask(DESCRIBE_ACLS, 3, **every))["resources"] == []

    run(first)
    run(second)
