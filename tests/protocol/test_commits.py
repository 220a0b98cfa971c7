"""Positions and administration of groups over sockets, in every version."""

from pathlib import Path
from typing import Any

import pytest

from kafka_server import (
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    LIST_GROUPS,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    RawClient,
    error_of,
    kafka_server,
    run,
)
from korvet_fast.wire.kafka.shapes.membership import ASSIGNMENT, SUBSCRIPTION, read_assignment, read_subscription
from protocol.test_groups import QUICK, join, sync

MEMBER = -(2**31)


def subscription(*topics: str, version: int = 1) -> bytes:
    return SUBSCRIPTION.encode({"version": version, "topics": list(topics)}, version)


async def commit(client: RawClient, version: int = 9, topic: str = "t", **values: Any) -> list[str]:
    """Commit 10 and 11 for partitions 0 and 1; their errors."""
    given = {name: values.pop(name) for name in list(values) if name.startswith("committed")}
    rows = [
        {"partition_index": index, "committed_offset": 10 + index, "committed_metadata": f"note {index}"} | given
        for index in (0, 1)
    ]
    topics = [{"name": topic, "partitions": rows}]
    answer = await client.ask(OFFSET_COMMIT, version, **{"group_id": "g", "topics": topics} | values)
    (row,) = answer["topics"]
    assert row["name"] == topic
    return [error_of(each) for each in row["partitions"]]


async def fetch(
    client: RawClient, version: int = 9, group_id: str = "g", *, everything: bool = False
) -> dict[str, Any]:
    topics = None if everything else [{"name": "t", "partition_indexes": [1, 5]}]
    if version < 8:
        return await client.ask(OFFSET_FETCH, version, group_id=group_id, topics=topics)
    groups = [{"group_id": group_id, "topics": topics}, {"group_id": "other", "topics": topics}]
    answer = await client.ask(OFFSET_FETCH, version, groups=groups)
    assert [row["group_id"] for row in answer["groups"]] == [group_id, "other"]
    row: dict[str, Any] = answer["groups"][0]
    return row


def told(answer: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [
        (topic["name"], row["partition_index"], row["committed_offset"], row["metadata"], error_of(row))
        for topic in answer["topics"]
        for row in topic["partitions"]
    ]


@pytest.mark.parametrize("version", range(2, 10))
def test_commits_are_kept_and_told(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, QUICK) as server:
            client = await server.connect()
            await client.create("t", 2)
            assert await commit(client, version, committed_leader_epoch=4) == ["", ""]
            for fetched in range(1, 10):
                answer = await fetch(client, fetched)
                assert told(answer) == [("t", 1, 11, "note 1", ""), ("t", 5, -1, "", "")]
                if fetched >= 5:
                    epochs = [row["committed_leader_epoch"] for row in answer["topics"][0]["partitions"]]
                    assert epochs == [4 if version >= 6 else -1, -1]
                if fetched >= 2:
                    answer = await fetch(client, fetched, everything=True)
                    assert told(answer) == [("t", 0, 10, "note 0", ""), ("t", 1, 11, "note 1", "")]
                    assert told(await fetch(client, fetched, "unknown", everything=True)) == []
            assert await commit(client, version, committed_metadata=None) == ["", ""]
            assert told(await fetch(client))[0] == ("t", 1, 11, "", "")
            assert await commit(client, version, topic="none") == ["UNKNOWN_TOPIC_OR_PARTITION"] * 2
            assert await commit(client, version, committed_metadata="x" * 4097) == ["OFFSET_METADATA_TOO_LARGE"] * 2
            assert await commit(client, version, generation_id_or_member_epoch=3) == ["UNKNOWN_MEMBER_ID"] * 2

    run(scenario)


@pytest.mark.parametrize("version", range(1, 10))
def test_a_long_answer_tells_every_partition_in_order(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, QUICK) as server:
            client = await server.connect()
            expected = []
            for topic in ("t", "a"):
                await client.create(topic, 100)
                rows = [
                    {"partition_index": index, "committed_offset": index, "committed_metadata": f"note {index}"}
                    for index in range(99, -1, -1)
                ]
                values = {"group_id": "g", "topics": [{"name": topic, "partitions": rows}]}
                await client.ask(OFFSET_COMMIT, 9, **values)
                expected.append([(topic, index, index, f"note {index}", "") for index in range(100)])

            async def ask(topics: list[dict[str, Any]] | None) -> list[tuple[Any, ...]]:
                one = {"group_id": "g", "topics": topics}
                if version < 8:
                    return told(await client.ask(OFFSET_FETCH, version, **one))
                for groups in ([one], [one, one | {"group_id": "h"}]):
                    answer = await client.ask(OFFSET_FETCH, version, groups=groups)
                    assert [error_of(group) for group in answer["groups"]] == [""] * len(groups)
                return told(answer["groups"][0])

            asked = [{"name": name, "partition_indexes": [*range(100), 100, 7]} for name in ("t", "a")]
            one, other = ([*rows, (rows[0][0], 100, -1, "", ""), rows[7]] for rows in expected)
            assert await ask(asked) == one + other
            if version >= 2:
                assert await ask(None) == expected[1] + expected[0]

    run(scenario)


@pytest.mark.parametrize("version", range(2, 10))
def test_only_members_of_the_generation_commit(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, QUICK) as server:
            client = await server.connect()
            await client.create("t", 2)
            joined = await join(client)
            member = {"member_id": joined["member_id"], "generation_id_or_member_epoch": 1}
            assert await commit(client, version, **member) == ["REBALANCE_IN_PROGRESS"] * 2
            await sync(client, joined)
            assert await commit(client, version, **member) == ["", ""]
            assert await commit(client, version) == ["UNKNOWN_MEMBER_ID"] * 2
            zombie = member | {"generation_id_or_member_epoch": 0}
            assert await commit(client, version, **zombie) == ["ILLEGAL_GENERATION"] * 2
            unknown = "ILLEGAL_GENERATION" if version < 9 else "GROUP_ID_NOT_FOUND"
            assert await commit(client, version, **member | {"group_id": "none"}) == [unknown] * 2

    run(scenario)


def test_an_error_of_the_group_stands_where_the_version_has_room(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            server.broker.groups.close()
            for version in range(1, 10):
                answer = await fetch(client, version)
                refused = [("t", index, -1, "", "NOT_COORDINATOR") for index in (1, 5)]
                assert told(answer) == (refused if version < 6 else [])
                if version >= 2:
                    assert error_of(answer) == "NOT_COORDINATOR"
                    everything = await fetch(client, version, everything=True)
                    assert (error_of(everything), everything["topics"]) == ("NOT_COORDINATOR", [])

    run(scenario)


@pytest.mark.parametrize("version", range(7))
def test_groups_are_described(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, QUICK) as server:
            client = await server.connect()
            joined = await join(client, group_instance_id="i")

            async def describe(*names: str) -> list[dict[str, Any]]:
                values = {"groups": list(names), "include_authorized_operations": True}
                rows: list[dict[str, Any]] = (await client.ask(DESCRIBE_GROUPS, version, **values))["groups"]
                return rows

            (row,) = await describe("g")
            assert (row["group_state"], row["protocol_type"], row["protocol_data"]) == (
                "CompletingRebalance",
                "consumer",
                "",
            )
            assert row["members"][0]["member_metadata"] == b""
            await sync(client, joined, group_instance_id="i")
            row, unknown = await describe("g", "none")
            assert (error_of(row), row["group_state"], row["protocol_data"]) == ("", "Stable", "range")
            (member,) = row["members"]
            assert member["member_id"] == joined["member_id"]
            assert member["group_instance_id"] == ("i" if version >= 4 else None)
            assert (member["client_id"], member["client_host"]) == ("test", "/127.0.0.1")
            assert (member["member_metadata"], member["member_assignment"]) == (
                b"what I read",
                joined["member_id"].encode(),
            )
            assert row["authorized_operations"] == (0b1_0100_1000 if version >= 3 else MEMBER)
            assert (unknown["group_id"], unknown["group_state"]) == ("none", "Dead")
            assert error_of(unknown) == ("GROUP_ID_NOT_FOUND" if version >= 6 else "")
            assert (unknown["error_message"] is not None) == (version >= 6)

    run(scenario)


@pytest.mark.parametrize("version", range(6))
def test_groups_are_listed(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, QUICK) as server:
            client = await server.connect()
            await client.create("t", 2)
            await commit(client, group_id="simple")
            await sync(client, await join(client))

            async def names(**filters: Any) -> list[str]:
                answer = await client.ask(LIST_GROUPS, version, **filters)
                assert error_of(answer) == ""
                return [row["group_id"] for row in answer["groups"]]

            assert await names() == ["g", "simple"]
            answer = await client.ask(LIST_GROUPS, version)
            assert [row["protocol_type"] for row in answer["groups"]] == ["consumer", ""]
            if version >= 4:
                assert [row["group_state"] for row in answer["groups"]] == ["Stable", "Empty"]
                assert await names(states_filter=["stable", "Dead"]) == ["g"]
            if version >= 5:
                assert {row["group_type"] for row in answer["groups"]} == {"classic"}
                assert await names(types_filter=["Classic"], states_filter=["Empty"]) == ["simple"]
                assert await names(types_filter=["consumer"]) == []

    run(scenario)


@pytest.mark.parametrize("version", range(3))
def test_groups_are_deleted(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, QUICK) as server:
            client = await server.connect()
            await client.create("t", 2)
            await commit(client, group_id="simple")
            await sync(client, await join(client))
            answer = await client.ask(DELETE_GROUPS, version, groups_names=["simple", "g", "none", ""])
            assert [(row["group_id"], error_of(row)) for row in answer["results"]] == [
                ("simple", ""),
                ("g", "NON_EMPTY_GROUP"),
                ("none", "GROUP_ID_NOT_FOUND"),
                ("", "INVALID_GROUP_ID"),
            ]
            assert told(await fetch(client, group_id="simple", everything=True)) == []

    run(scenario)


def test_offsets_are_deleted_where_nobody_reads(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, QUICK) as server:
            client = await server.connect()
            for topic in ("t", "u"):
                await client.create(topic, 2)
            metadata = [{"name": "range", "metadata": subscription("t", version=3)}]
            joined = await join(client, protocols=metadata)
            await sync(client, joined)
            member = {"member_id": joined["member_id"], "generation_id_or_member_epoch": 1}
            for topic in ("t", "u"):
                assert await commit(client, topic=topic, **member) == ["", ""]

            async def delete(group_id: str = "g") -> dict[str, Any]:
                rows = [{"name": name, "partitions": [{"partition_index": 1}]} for name in ("t", "u", "none")]
                return await client.ask(OFFSET_DELETE, 0, group_id=group_id, topics=rows)

            answer = await delete()
            assert error_of(answer) == ""
            assert [(row["name"], error_of(row["partitions"][0])) for row in answer["topics"]] == [
                ("t", "GROUP_SUBSCRIBED_TO_TOPIC"),
                ("u", ""),
                ("none", "UNKNOWN_TOPIC_OR_PARTITION"),
            ]
            left = [row[:2] for row in told(await fetch(client, everything=True))]
            assert left == [("t", 0), ("t", 1), ("u", 0)]
            assert error_of(await delete("nowhere")) == "GROUP_ID_NOT_FOUND"
            await join(client, group_id="other", protocol_type="connect")
            assert error_of(await delete("other")) == "NON_EMPTY_GROUP"
            await join(client, group_id="odd", protocols=[{"name": "range", "metadata": b"\0\x7f"}])
            assert error_of((await delete("odd"))["topics"][1]["partitions"][0]) == "GROUP_SUBSCRIBED_TO_TOPIC"

    run(scenario)


def test_what_members_say_is_read_in_every_version_and_refused_in_none() -> None:
    for version in range(4):
        assert read_subscription(subscription("a", "b", version=version)) == {"a", "b"}
        rows = [{"topic": "t", "partitions": [0, 2]}]
        assignment = ASSIGNMENT.encode({"version": version, "assigned_partitions": rows}, version)
        assert read_assignment(assignment) == [("t", 0), ("t", 2)]
        assert read_assignment(assignment[:-1]) is None
    assert read_assignment(b"") == []
    assert read_subscription(b"") is None
    assert read_subscription(b"\0\x09text") is None
