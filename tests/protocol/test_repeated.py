"""A request that names the same thing more than once: answered once, or refused, and never done twice."""

from pathlib import Path
from typing import Any

import pytest

from kafka_server import (
    ALTER_CONFIGS,
    CONSUMER_GROUP_DESCRIBE,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_GROUPS,
    DELETE_RECORDS,
    DELETE_TOPICS,
    DESCRIBE_CONFIGS,
    DESCRIBE_GROUPS,
    DESCRIBE_LOG_DIRS,
    FETCH,
    INCREMENTAL_ALTER_CONFIGS,
    LIST_OFFSETS,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    OFFSET_FOR_LEADER_EPOCH,
    PRODUCE,
    RawClient,
    error_of,
    kafka_server,
    make_batch,
    run,
)

REFUSED = "INVALID_REQUEST"
TOPIC = {"resource_type": 2, "resource_name": "t"}


def _partitions(field: str, name: str, **values: Any) -> list[dict[str, Any]]:
    """Partition 0 of topic `t` twice in one row of a topic, and once more in another; partition 1 once."""
    first, other = {name: 0} | values, {name: 1} | values
    return [{field: "t", "rows": [first, other, first]}, {field: "t", "rows": [first]}]


def _rename(topics: list[dict[str, Any]], rows: str) -> list[dict[str, Any]]:
    return [{rows if key == "rows" else key: value for key, value in topic.items()} for topic in topics]


async def _ask_partitions(client: RawClient, key: int, version: int, **values: Any) -> list[str]:
    """The errors of the rows of partition 0 and 1."""
    answer = await client.ask(key, version, **values)
    topics = answer.get("topics") or answer.get("responses")
    rows = [row for topic in topics for row in topic.get("partitions") or topic.get("partition_responses")]
    return [error_of(row) for row in rows]


OF_PARTITIONS = {
    PRODUCE: (9, "topic_data", "partition_data", "name", "index", {"records": bytes(make_batch(b"twice"))}),
    FETCH: (12, "topics", "partitions", "topic", "partition", {"partition_max_bytes": 1000}),
    LIST_OFFSETS: (7, "topics", "partitions", "name", "partition_index", {"timestamp": -1}),
    DELETE_RECORDS: (2, "topics", "partitions", "name", "partition_index", {"offset": 0}),
}


@pytest.mark.parametrize("key", OF_PARTITIONS)
def test_partitions_named_twice_are_refused(tmp_path: Path, key: int) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t", 2)
            await client.create("u", 1)
            version, topics, rows, name, index, values = OF_PARTITIONS[key]
            if key in (FETCH, LIST_OFFSETS):
                values = values | {"current_leader_epoch": -1}
            asked = _rename(_partitions(name, index, **values), rows)
            asked.append({name: "u", rows: [{index: 0} | values]})
            more = {"acks": -1, "timeout_ms": 10_000} if key == PRODUCE else {}
            errors = await _ask_partitions(client, key, version, **{topics: asked}, **more)
            assert errors == [REFUSED, "", REFUSED, REFUSED, ""]
            ends = [(await client.fetch("t", 0, index=index))["high_watermark"] for index in (0, 1)]
            assert ends == ([0, 1] if key == PRODUCE else [0, 0])

    run(scenario)


def test_topics_named_twice(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t", 1)
            identity = (await client.ask(METADATA, 12, topics=[{"name": "t"}]))["topics"][0]["topic_id"]
            new = {"name": "new", "num_partitions": 1, "replication_factor": 1}
            answer = await client.ask(CREATE_TOPICS, 7, topics=[new, new, new | {"name": "other"}], timeout_ms=1000)
            assert [error_of(row) for row in answer["topics"]] == [REFUSED, REFUSED, ""]
            more = {"name": "t", "count": 5, "assignments": None}
            answer = await client.ask(CREATE_PARTITIONS, 3, topics=[more, more, more | {"name": "other"}])
            assert [error_of(row) for row in answer["results"]] == [REFUSED, REFUSED, ""]
            answer = await client.ask(METADATA, 12, topics=[{"name": name} for name in ("t", "other", "t")])
            assert [(row["name"], len(row["partitions"])) for row in answer["topics"]] == [("t", 1), ("other", 5)]
            by_name, by_id = {"name": "t"}, {"name": None, "topic_id": identity}
            for asked in ([by_name, by_name], [by_id, by_id], [by_name, by_id]):
                answer = await client.ask(DELETE_TOPICS, 6, topics=[*asked, {"name": "missing"}])
                assert [error_of(row) for row in answer["responses"]] == [
                    REFUSED,
                    REFUSED,
                    "UNKNOWN_TOPIC_OR_PARTITION",
                ]
            answer = await client.ask(DELETE_TOPICS, 6, topics=[by_id, {"name": "other"}])
            assert [error_of(row) for row in answer["responses"]] == ["", ""]

    run(scenario)


def test_resources_named_twice(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t", 3)
            keys = [{"configuration_keys": ["retention.ms"]}, {"configuration_keys": None}]
            answer = await client.ask(DESCRIBE_CONFIGS, 4, resources=[TOPIC | keys[0], TOPIC | keys[1]])
            assert [[one["name"] for one in row["configs"]] for row in answer["results"]] == [["retention.ms"]]
            for key, version in ((ALTER_CONFIGS, 2), (INCREMENTAL_ALTER_CONFIGS, 1)):
                change = TOPIC | {"configs": [{"name": "retention.ms", "value": "5"}]}
                answer = await client.ask(key, version, resources=[change, change], validate_only=False)
                assert [error_of(row) for row in answer["responses"]] == [REFUSED, REFUSED]
            answer = await client.ask(DESCRIBE_CONFIGS, 4, resources=[TOPIC | keys[0]])
            assert answer["results"][0]["configs"][0]["value"] != "5"
            dirs = [{"topic": "t", "partitions": [0, 1, 1]}, {"topic": "t", "partitions": [1, -1, 7]}]
            answer = await client.ask(DESCRIBE_LOG_DIRS, 4, topics=dirs)
            (told,) = answer["results"][0]["topics"]
            assert [row["partition_index"] for row in told["partitions"]] == [0, 1]

    run(scenario)


def test_groups_named_twice(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t", 2)
            rows = [{"partition_index": 0, "committed_offset": offset} for offset in (5, 7)]
            rows.append({"partition_index": 1, "committed_offset": 3})
            topics = [{"name": "t", "partitions": rows}]
            answer = await client.ask(
                OFFSET_COMMIT, 8, group_id="g", generation_id_or_member_epoch=-1, member_id="", topics=topics
            )
            assert [error_of(row) for row in answer["topics"][0]["partitions"]] == ["", "", ""]
            twice = [{"name": "t", "partition_indexes": [0, 0, 1]}]
            answer = await client.ask(OFFSET_FETCH, 8, groups=[{"group_id": "g", "topics": twice}])
            found = answer["groups"][0]["topics"][0]["partitions"]
            assert [row["committed_offset"] for row in found] == [7, 7, 3]  # the last row counted
            groups = [{"group_id": "g", "topics": None}, {"group_id": "h", "topics": None}]
            answer = await client.ask(OFFSET_FETCH, 8, groups=[*groups, groups[0]])
            assert [(row["group_id"], error_of(row)) for row in answer["groups"]] == [
                ("g", REFUSED),
                ("h", ""),
                ("g", REFUSED),
            ]
            answer = await client.ask(DESCRIBE_GROUPS, 5, groups=["g", "g", "h"])
            assert [row["group_id"] for row in answer["groups"]] == ["g", "h"]
            answer = await client.ask(CONSUMER_GROUP_DESCRIBE, 0, group_ids=["g", "g"])
            assert [row["group_id"] for row in answer["groups"]] == ["g"]
            topics = [{"name": "t", "partitions": [{"partition_index": 0}, {"partition_index": 0}]}]
            answer = await client.ask(OFFSET_DELETE, 0, group_id="g", topics=topics)
            assert [error_of(row) for row in answer["topics"][0]["partitions"]] == [""]
            answer = await client.ask(DELETE_GROUPS, 2, groups_names=["g", "g", "h"])
            assert [(row["group_id"], error_of(row)) for row in answer["results"]] == [
                ("g", ""),
                ("h", "GROUP_ID_NOT_FOUND"),
            ]
            row = {"partition": 0, "leader_epoch": 0, "current_leader_epoch": -1}
            answer = await client.ask(OFFSET_FOR_LEADER_EPOCH, 4, topics=[{"topic": "t", "partitions": [row, row]}])
            assert [error_of(row) for row in answer["topics"][0]["partitions"]] == ["", ""]

    run(scenario)


@pytest.mark.parametrize("version", [1, 5])
def test_a_topic_without_a_name_is_none(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            answer = await client.ask(DELETE_TOPICS, version, topic_names=["", ""])
            assert [error_of(row) for row in answer["responses"]] == [REFUSED, REFUSED]
            answer = await client.ask(DELETE_TOPICS, version, topic_names=[""])
            assert [error_of(row) for row in answer["responses"]] == ["UNKNOWN_TOPIC_OR_PARTITION"]

    run(scenario)
