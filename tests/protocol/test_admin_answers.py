"""What tools ask of any broker: rights, users, quotas, the quorum, versions, and topics a page at a time."""

from pathlib import Path
from typing import Any

import pytest

from kafka_messages import CATALOG
from kafka_server import (
    ALTER_PARTITION_REASSIGNMENTS,
    API_VERSIONS,
    CREATE_ACLS,
    DELETE_ACLS,
    DESCRIBE_ACLS,
    DESCRIBE_CLIENT_QUOTAS,
    DESCRIBE_CONFIGS,
    DESCRIBE_QUORUM,
    DESCRIBE_TOPIC_PARTITIONS,
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    FETCH,
    INCREMENTAL_ALTER_CONFIGS,
    LIST_CONFIG_RESOURCES,
    METADATA,
    SASL_HANDSHAKE,
    KafkaServer,
    RawClient,
    error_of,
    kafka_server,
    run,
)

SECURITY_DISABLED, ILLEGAL_SASL_STATE, RESOURCE_NOT_FOUND, UNSUPPORTED_VERSION = 54, 34, 91, 35
DUPLICATE_RESOURCE = 92
TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
DELETE = 1


@pytest.mark.parametrize("version", range(1, 4))
def test_acls_are_disabled_for_each_that_is_asked_for(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            described = await client.ask(DESCRIBE_ACLS, version, resource_type_filter=1, operation=1, permission_type=1)
            created = await client.ask(CREATE_ACLS, version, creations=[{"resource_name": "t"}] * 2)
            deleted = await client.ask(DELETE_ACLS, version, filters=[{"resource_type_filter": 1}] * 3)
            rows = [described, *created["results"], *deleted["filter_results"]]
            assert [row["error_code"] for row in rows] == [SECURITY_DISABLED] * 6
            assert all("No Authorizer" in row["error_message"] for row in rows)
            assert described["resources"] == []

    run(scenario)


@pytest.mark.parametrize("version", range(2))
def test_nobody_has_to_log_in_and_the_connection_goes_on(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            answer = await client.ask(SASL_HANDSHAKE, version, mechanism="PLAIN")
            assert (answer["error_code"], answer["mechanisms"]) == (ILLEGAL_SASL_STATE, [])
            assert error_of(await client.ask(API_VERSIONS, 3)) == ""

    run(scenario)


def test_there_are_no_users_and_no_quotas(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            for version in range(2):
                component = {"entity_type": "user", "match_type": 2, "match": None}
                answer = await client.ask(DESCRIBE_CLIENT_QUOTAS, version, components=[component])
                assert (answer["error_code"], answer["entries"]) == (0, [])
            for users in (None, []):
                answer = await client.ask(DESCRIBE_USER_SCRAM_CREDENTIALS, 0, users=users)
                assert (answer["error_code"], answer["results"]) == (0, [])
            named = [{"name": "ada"}, {"name": "bob"}, {"name": "ada"}]
            answer = await client.ask(DESCRIBE_USER_SCRAM_CREDENTIALS, 0, users=named)
            assert [(row["user"], row["error_code"]) for row in answer["results"]] == [
                ("ada", DUPLICATE_RESOURCE),
                ("bob", RESOURCE_NOT_FOUND),
            ]

    run(scenario)


@pytest.mark.parametrize("version", range(3))
def test_the_quorum_is_one_voter(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, "node.id=7") as server:
            client = await server.connect()
            asked = [
                {"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}, {"partition_index": 1}]},
                {"topic_name": "t", "partitions": [{"partition_index": 0}]},
            ]
            answer = await client.ask(DESCRIBE_QUORUM, version, topics=asked)
            assert answer["error_code"] == 0
            (known, other), (foreign,) = (topic["partitions"] for topic in answer["topics"])
            assert (known["error_code"], known["leader_id"], known["observers"]) == (0, 7, [])
            assert [row["replica_id"] for row in known["current_voters"]] == [7]
            for row in (other, foreign):
                assert (error_of(row), row["current_voters"]) == ("UNKNOWN_TOPIC_OR_PARTITION", [])

    run(scenario)


def test_versions_of_kafka_are_told(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            for version in (3, 4):
                answer = await client.ask(API_VERSIONS, version)
                (finalized,), (supported,) = answer["finalized_features"], answer["supported_features"]
                assert (finalized["name"], supported["name"]) == ("metadata.version", "metadata.version")
                assert supported["min_version"] <= finalized["max_version_level"] <= supported["max_version"]
                assert answer["finalized_features_epoch"] == 0
            resource = {"resource_type": BROKER, "resource_name": "1"}
            keys = ["inter.broker.protocol.version"]
            answer = await client.ask(DESCRIBE_CONFIGS, 4, resources=[resource | {"configuration_keys": keys}])
            ((entry,),) = (row["configs"] for row in answer["results"])
            assert entry["value"].startswith("4.0")
            assert entry["read_only"]

    run(scenario)


def test_resources_with_settings_are_listed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("a")
            await client.create("b")

            async def listed(version: int, *kinds: int) -> list[tuple[int, str]]:
                answer = await client.ask(LIST_CONFIG_RESOURCES, version, resource_types=list(kinds))
                assert answer["error_code"] == 0
                return [(row["resource_type"], row["resource_name"]) for row in answer["config_resources"]]

            assert await listed(1, TOPIC) == [(TOPIC, "a"), (TOPIC, "b")]
            assert await listed(1, GROUP, CLIENT_METRICS) == []
            assert await listed(1) == [(TOPIC, "a"), (TOPIC, "b"), (BROKER, "1"), (LOGGER, "1")]
            assert await listed(0) == []
            answer = await client.ask(LIST_CONFIG_RESOURCES, 1, resource_types=[TOPIC, 99])
            assert (answer["error_code"], answer["config_resources"]) == (UNSUPPORTED_VERSION, [])

    run(scenario)


def test_a_group_has_the_settings_of_the_broker(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, "group.consumer.session.timeout.ms=50000") as server:
            client = await server.connect()
            asked = {"resource_type": GROUP, "resource_name": "g", "configuration_keys": None}
            answer = await client.ask(DESCRIBE_CONFIGS, 4, resources=[asked])
            (row,) = answer["results"]
            found = {entry["name"]: entry["value"] for entry in row["configs"]}
            assert found == {"consumer.session.timeout.ms": "50000", "consumer.heartbeat.interval.ms": "5000"}
            assert all(entry["read_only"] for entry in row["configs"])

    run(scenario)


def test_a_brokers_setting_that_was_never_set_can_be_deleted_but_none_set(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()

            async def alter(broker: str, **operations: int) -> str:
                rows = [
                    {"name": name.replace("_", "."), "config_operation": how, "value": None if how == DELETE else "5"}
                    for name, how in operations.items()
                ]
                resource = {"resource_type": BROKER, "resource_name": broker, "configs": rows}
                return error_of((await client.ask(INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource]))["responses"][0])

            throttles = {"leader_replication_throttled_rate": DELETE, "num_partitions": DELETE}
            assert await alter("1", **throttles) == ""
            assert await alter("", **throttles) == ""
            assert await alter("9", **throttles) == "INVALID_REQUEST"
            assert await alter("1", **throttles, num_io_threads=0) == "INVALID_REQUEST"

    run(scenario)


def test_the_one_replica_may_stay_where_it_is(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t")

            async def arrange(replicas: list[int] | None, name: str = "t") -> str:
                topic = {"name": name, "partitions": [{"partition_index": 0, "replicas": replicas}]}
                answer = await client.ask(ALTER_PARTITION_REASSIGNMENTS, 0, topics=[topic])
                return error_of(answer["responses"][0]["partitions"][0])

            assert await arrange([1]) == ""
            assert await arrange([2]) == "INVALID_REPLICA_ASSIGNMENT"
            assert await arrange([1, 2]) == "INVALID_REPLICA_ASSIGNMENT"
            assert await arrange(None) == "NO_REASSIGNMENT_IN_PROGRESS"
            assert await arrange([1], "unknown") == "UNKNOWN_TOPIC_OR_PARTITION"

    run(scenario)


@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state", "__cluster_metadata"])
def test_internal_topics_are_not_made_by_a_look(tmp_path: Path, name: str) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            asked = {"topics": [{"name": name}, {"name": "other"}], "allow_auto_topic_creation": True}
            rows = (await client.ask(METADATA, 9, **asked))["topics"]
            assert {row["name"]: error_of(row) for row in rows} == {name: "UNKNOWN_TOPIC_OR_PARTITION", "other": ""}
            assert [topic.name for topic in server.broker.topics] == ["other"]

    run(scenario)


def test_a_newer_fetch_is_refused_and_the_connection_goes_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            frame = FETCH.to_bytes(2, "big") + (18).to_bytes(2, "big") + (77).to_bytes(4, "big") + b"\xff\xff\x00rest"
            client.writer.write(len(frame).to_bytes(4, "big") + frame)
            answer = CATALOG[FETCH].response.decode(await client.raw_reply(), 12, 1000)
            assert (answer["correlation_id"], answer["error_code"]) == (77, UNSUPPORTED_VERSION)
            assert answer["responses"] == []
            assert error_of(await client.ask(API_VERSIONS, 3)) == ""

    run(scenario)


async def pages(client: RawClient, names: list[str], limit: int) -> list[list[tuple[str, list[int]]]]:
    """All pages, each as topics with their partitions."""
    cursor: dict[str, Any] | None = None
    found = []
    while True:
        asked = {"topics": [{"name": name} for name in names], "response_partition_limit": limit, "cursor": cursor}
        answer = await client.ask(DESCRIBE_TOPIC_PARTITIONS, 0, **asked)
        rows = [(row["name"], [one["partition_index"] for one in row["partitions"]]) for row in answer["topics"]]
        found.append(rows)
        cursor = answer["next_cursor"]
        if cursor is None:
            return found


def test_topics_are_described_a_page_at_a_time(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            for name, partitions in (("b", 3), ("a", 2), ("c", 1)):
                await client.create(name, partitions)
            everything = [("a", [0, 1]), ("b", [0, 1, 2]), ("c", [0])]
            assert await pages(client, [], 2000) == [everything]
            assert await pages(client, [], 0) == await pages(client, [], 1)
            by_two = [[("a", [0, 1])], [("b", [0, 1])], [("b", [2]), ("c", [0])]]
            assert await pages(client, [], 2) == by_two
            assert await pages(client, ["c", "b", "b", "a"], 2) == by_two
            assert await pages(client, ["zz", "b"], 3) == [[("b", [0, 1, 2])], [("zz", [])]]
            far = {"topic_name": "b", "partition_index": 99}
            answer = await client.ask(DESCRIBE_TOPIC_PARTITIONS, 0, topics=[], cursor=far)
            assert [(row["name"], len(row["partitions"])) for row in answer["topics"]] == [("b", 0), ("c", 1)]

    run(scenario)


def test_a_described_partition_says_what_metadata_says(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t", 2)
            (said,) = (await client.ask(METADATA, 12, topics=[{"name": "t"}]))["topics"]
            (row,) = (await client.ask(DESCRIBE_TOPIC_PARTITIONS, 0, topics=[{"name": "t"}]))["topics"]
            assert (row["name"], row["topic_id"], row["is_internal"]) == ("t", said["topic_id"], False)
            assert row["topic_authorized_operations"] > 0
            no_elr = {"eligible_leader_replicas": [], "last_known_elr": []}
            assert row["partitions"] == [partition | no_elr for partition in said["partitions"]]
            assert await _error(client, "unknown") == "UNKNOWN_TOPIC_OR_PARTITION"
            assert await _error(client, "not/legal") == "INVALID_TOPIC_EXCEPTION"
            assert _names(server) == ["t"]

    run(scenario)


async def _error(client: RawClient, name: str) -> str:
    (row,) = (await client.ask(DESCRIBE_TOPIC_PARTITIONS, 0, topics=[{"name": name}]))["topics"]
    return error_of(row)


def _names(server: KafkaServer) -> list[str]:
    return [topic.name for topic in server.broker.topics]
