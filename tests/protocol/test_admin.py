"""Topics, their records and what is told about them, over a socket."""

from pathlib import Path
from typing import Any

import pytest

from kafka_server import (
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    DESCRIBE_CLUSTER,
    DESCRIBE_LOG_DIRS,
    INIT_PRODUCER_ID,
    LIST_PARTITION_REASSIGNMENTS,
    METADATA,
    error_of,
    kafka_server,
    make_batch,
    run,
)

NOT_ASKED = -(2**31)


@pytest.mark.parametrize("version", range(13))
def test_metadata_creates_what_it_is_asked_for(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, "num.partitions=3") as server:
            client = await server.connect()
            answer = await client.ask(METADATA, version, topics=[{"name": "made"}, {"name": "not/legal"}])
            assert [(broker["host"], broker["port"]) for broker in answer["brokers"]] == [server.address]
            assert answer["cluster_id"] == (server.broker.cluster_id if version >= 2 else None)
            made, illegal = answer["topics"]
            assert error_of(made) == ""
            assert [row["partition_index"] for row in made["partitions"]] == [0, 1, 2]
            assert {(row["leader_id"], *row["replica_nodes"], *row["isr_nodes"]) for row in made["partitions"]} == {
                (1, 1, 1)
            }
            assert error_of(illegal) == "INVALID_TOPIC_EXCEPTION"
            everything = await client.ask(METADATA, version, topics=None if version else [])
            assert everything["topics"] == [made]
            assert (
                everything["topics"] == (await client.ask(METADATA, version, topics=None if version else []))["topics"]
            )
            if version:
                assert (await client.ask(METADATA, version, topics=[]))["topics"] == []

    run(scenario)


def test_metadata_of_all_topics_follows_every_change(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()

            async def shape() -> list[tuple[str, int]]:
                answer = await client.ask(METADATA, 12, topics=None)
                return [(row["name"], len(row["partitions"])) for row in answer["topics"]]

            assert await shape() == []
            await client.create("b")
            await client.create("a", 2)
            assert await shape() == [("a", 2), ("b", 1)]
            await client.ask(CREATE_PARTITIONS, 3, topics=[{"name": "b", "count": 3, "assignments": None}])
            assert await shape() == [("a", 2), ("b", 3)]
            await client.ask(DELETE_TOPICS, 6, topics=[{"name": "a"}])
            assert await shape() == [("b", 3)]

    run(scenario)


def test_metadata_creates_nothing_where_it_may_not(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path / "a") as server:
            client = await server.connect()
            answer = await client.ask(METADATA, 12, topics=[{"name": "t"}], allow_auto_topic_creation=False)
            assert error_of(answer["topics"][0]) == "UNKNOWN_TOPIC_OR_PARTITION"
        async with kafka_server(tmp_path / "b", "auto.create.topics.enable=false") as server:
            client = await server.connect()
            answer = await client.ask(METADATA, 12, topics=[{"name": "t"}], allow_auto_topic_creation=True)
            assert error_of(answer["topics"][0]) == "UNKNOWN_TOPIC_OR_PARTITION"

    run(scenario)


def test_metadata_by_id_and_operations(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            made = await client.create("t")
            # An empty name beside an id is what Java's clients send.
            asked = [{"name": "", "topic_id": made["topic_id"]}, {"name": "", "topic_id": bytes(15) + b"x"}]
            known, unknown = (await client.ask(METADATA, 12, topics=asked))["topics"]
            assert (known["name"], known["topic_id"]) == ("t", made["topic_id"])
            assert known["topic_authorized_operations"] == NOT_ASKED
            assert (unknown["name"], error_of(unknown)) == (None, "UNKNOWN_TOPIC_ID")
            wanted = {"include_topic_authorized_operations": True, "include_cluster_authorized_operations": True}
            answer = await client.ask(METADATA, 10, topics=None, **wanted)
            assert answer["cluster_authorized_operations"] == 0b1_1111_1010_0000 & ~(1 << 6)
            assert answer["topics"][0]["topic_authorized_operations"] == 0b1101_1111_1000

    run(scenario)


@pytest.mark.parametrize("version", range(2, 8))
def test_topics_are_created(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, "num.partitions=5") as server:
            client = await server.connect()

            async def create(name: str, **given: Any) -> dict[str, Any]:
                values = {"num_partitions": 2, "replication_factor": 1, "configs": [], "assignments": []} | given
                validate_only = values.pop("validate_only", False)
                topics = [{"name": name, **values}]
                answer = await client.ask(CREATE_TOPICS, version, topics=topics, validate_only=validate_only)
                row: dict[str, Any] = answer["topics"][0]
                return row

            config = [{"name": "retention.ms", "value": "1000"}]
            row = await create("t", configs=config)
            assert error_of(row) == ""
            if version >= 5:
                assert (row["num_partitions"], row["replication_factor"]) == (2, 1)
                shown = {entry["name"]: (entry["value"], entry["config_source"]) for entry in row["configs"]}
                assert shown["retention.ms"] == ("1000", 1)
                assert shown["max.message.bytes"] == ("1048588", 5)
            assert error_of(await create("t")) == "TOPIC_ALREADY_EXISTS"
            assert error_of(await create("d", num_partitions=-1, replication_factor=-1)) == ""
            topic = server.broker.topics.get("d")
            assert topic is not None
            assert len(topic.partitions) == 5
            assert error_of(await create("v", validate_only=True)) == ""
            assert server.broker.topics.get("v") is None
            assert error_of(await create("a/b")) == "INVALID_TOPIC_EXCEPTION"
            assert error_of(await create("z", num_partitions=0)) == "INVALID_PARTITIONS"
            assert error_of(await create("z", replication_factor=2)) == "INVALID_REPLICATION_FACTOR"
            assert error_of(await create("z", configs=[{"name": "nonsense", "value": "1"}])) == "INVALID_CONFIG"
            assert error_of(await create("z", configs=[{"name": "retention.ms", "value": None}])) == "INVALID_CONFIG"

    run(scenario)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"assignments": [(0, [1]), (1, [1])]}, ""),
        ({"assignments": [(0, [1, 2])]}, "INVALID_REPLICA_ASSIGNMENT"),
        ({"assignments": [(1, [1])]}, "INVALID_REPLICA_ASSIGNMENT"),
        ({"assignments": [(0, [])]}, "INVALID_REPLICA_ASSIGNMENT"),
        ({"assignments": [(0, [1])], "num_partitions": 1}, "INVALID_REQUEST"),
    ],
)
def test_assignments_may_only_name_this_broker(tmp_path: Path, given: dict[str, Any], expected: str) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            rows = [{"partition_index": index, "broker_ids": ids} for index, ids in given["assignments"]]
            topic = {"name": "t", "num_partitions": -1, "replication_factor": -1} | given | {"assignments": rows}
            row = (await client.ask(CREATE_TOPICS, 7, topics=[topic]))["topics"][0]
            assert error_of(row) == expected
            if not expected:
                assert row["num_partitions"] == 2

    run(scenario)


def test_a_name_given_twice_is_refused_twice(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            topic = {"name": "t", "num_partitions": 1, "replication_factor": 1}
            rows = (await client.ask(CREATE_TOPICS, 7, topics=[topic, topic]))["topics"]
            assert [error_of(row) for row in rows] == ["INVALID_REQUEST"] * 2
            await client.create("t")
            grown = [{"name": "t", "count": 3, "assignments": None}] * 2
            rows = (await client.ask(CREATE_PARTITIONS, 3, topics=grown))["results"]
            assert [error_of(row) for row in rows] == ["INVALID_REQUEST"] * 2

    run(scenario)


@pytest.mark.parametrize("version", range(1, 7))
def test_topics_are_deleted(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t")
            names = ["t", "unknown"]
            asked = {"topics": [{"name": name} for name in names]} if version >= 6 else {"topic_names": names}
            rows = (await client.ask(DELETE_TOPICS, version, **asked))["responses"]
            assert [error_of(row) for row in rows] == ["", "UNKNOWN_TOPIC_OR_PARTITION"]
            assert server.broker.topics.get("t") is None
            assert error_of(await client.fetch("t", 0)) == "UNKNOWN_TOPIC_OR_PARTITION"

    run(scenario)


def test_topics_are_deleted_by_id(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            identity = (await client.create("t"))["topic_id"]
            asked = [{"name": None, "topic_id": identity}]
            row = (await client.ask(DELETE_TOPICS, 6, topics=asked))["responses"][0]
            assert (error_of(row), row["name"], row["topic_id"]) == ("", "t", identity)
            row = (await client.ask(DELETE_TOPICS, 6, topics=asked))["responses"][0]
            assert (error_of(row), row["name"], row["topic_id"]) == ("UNKNOWN_TOPIC_ID", None, identity)

    run(scenario)


@pytest.mark.parametrize("version", range(4))
def test_partitions_are_added(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t")

            async def grow(count: int, assignments: Any = None, name: str = "t", **given: Any) -> str:
                topic = {"name": name, "count": count, "assignments": assignments}
                answer = await client.ask(CREATE_PARTITIONS, version, topics=[topic], **given)
                return error_of(answer["results"][0])

            assert await grow(3, validate_only=True) == ""
            topic = server.broker.topics.get("t")
            assert topic is not None
            assert len(topic.partitions) == 1
            assert await grow(3) == ""
            assert len(topic.partitions) == 3
            assert await grow(3) == "INVALID_PARTITIONS"
            assert await grow(2) == "INVALID_PARTITIONS"
            assert await grow(4, [{"broker_ids": [1]}]) == ""
            assert await grow(5, [{"broker_ids": [2]}]) == "INVALID_REPLICA_ASSIGNMENT"
            assert await grow(6, [{"broker_ids": [1]}]) == "INVALID_REPLICA_ASSIGNMENT"
            assert await grow(6, name="unknown") == "UNKNOWN_TOPIC_OR_PARTITION"
            assert (await client.produce("t", make_batch(b"x"), index=3))["error_code"] == 0

    run(scenario)


@pytest.mark.parametrize("version", range(6))
def test_producer_ids_are_new_every_time(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            answers = [await client.ask(INIT_PRODUCER_ID, version, transaction_timeout_ms=1) for _ in range(3)]
            assert len({answer["producer_id"] for answer in answers}) == 3
            assert {(error_of(answer), answer["producer_epoch"]) for answer in answers} == {("", 0)}
            refused = await client.ask(INIT_PRODUCER_ID, version, transactional_id="tx", transaction_timeout_ms=1)
            assert error_of(refused) == "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"

    run(scenario)


@pytest.mark.parametrize("version", range(1, 5))
def test_sizes_are_told(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t", 2)
            await client.create("u")
            batch = make_batch(b"x" * 500)
            await client.produce("t", batch)

            async def sizes(topics: Any) -> list[tuple[str, int, int]]:
                found = (await client.ask(DESCRIBE_LOG_DIRS, version, topics=topics))["results"]
                return [
                    (topic["name"], row["partition_index"], row["partition_size"])
                    for topic in found[0]["topics"]
                    for row in topic["partitions"]
                ]

            assert await sizes(None) == [("t", 0, len(batch)), ("t", 1, 0), ("u", 0, 0)]
            asked = [{"topic": "t", "partitions": [1, 9]}, {"topic": "unknown", "partitions": [0]}]
            assert await sizes(asked) == [("t", 1, 0)]

    run(scenario)


@pytest.mark.parametrize("version", range(3))
def test_the_cluster_is_one_broker(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            answer = await client.ask(DESCRIBE_CLUSTER, version, include_cluster_authorized_operations=False)
            assert error_of(answer) == ""
            assert (answer["controller_id"], answer["cluster_id"]) == (1, server.broker.cluster_id)
            assert [(row["host"], row["port"]) for row in answer["brokers"]] == [server.address]
            assert answer["cluster_authorized_operations"] == NOT_ASKED
            asked = await client.ask(DESCRIBE_CLUSTER, version, include_cluster_authorized_operations=True)
            assert asked["cluster_authorized_operations"] > 0
            if version >= 1:
                assert error_of(await client.ask(DESCRIBE_CLUSTER, version, endpoint_type=2)) == "INVALID_REQUEST"

    run(scenario)


def test_no_partition_is_ever_reassigned(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t")
            named = [{"name": "t", "partition_indexes": [0]}]
            for topics in (None, named):
                answer = await client.ask(LIST_PARTITION_REASSIGNMENTS, 0, topics=topics)
                assert (answer["error_code"], answer["topics"]) == (0, [])

    run(scenario)
