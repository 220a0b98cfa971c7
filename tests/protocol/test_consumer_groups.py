"""Groups of the consumer protocol over sockets: heartbeats, commits with epochs, and what administrators see."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kafka_server import (
    CONSUMER_GROUP_DESCRIBE,
    CONSUMER_GROUP_HEARTBEAT,
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    LIST_GROUPS,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    SYNC_GROUP,
    RawClient,
    error_of,
    kafka_server,
    run,
)

QUICK = "group.initial.rebalance.delay.ms=0"


async def heartbeat(client: RawClient, member_id: str, epoch: int, version: int = 1, **values: Any) -> dict[str, Any]:
    given = {"group_id": "g", "member_id": member_id, "member_epoch": epoch}
    return await client.ask(CONSUMER_GROUP_HEARTBEAT, version, **given | values)


async def join(client: RawClient, member_id: str = "m", version: int = 1, **values: Any) -> dict[str, Any]:
    given = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ["t"], "topic_partitions": []}
    return await heartbeat(client, member_id, 0, version, **given | values)


def assigned(answer: dict[str, Any]) -> list[int] | None:
    """The partitions of the one topic that a member may use; None if they are as they were."""
    if answer["assignment"] is None:
        return None
    return [index for row in answer["assignment"]["topic_partitions"] for index in row["partitions"]]


async def commit(client: RawClient, version: int, epoch: int, member_id: str = "m") -> str:
    row = {"partition_index": 0, "committed_offset": 7, "committed_metadata": "here"}
    who = {"group_id": "g", "member_id": member_id, "generation_id_or_member_epoch": epoch}
    answer = await client.ask(OFFSET_COMMIT, version, **who, topics=[{"name": "t", "partitions": [row]}])
    return error_of(answer["topics"][0]["partitions"][0])


async def fetch(client: RawClient, **who: Any) -> tuple[str, list[int]]:
    answer = await client.ask(OFFSET_FETCH, 9, groups=[{"group_id": "g", "topics": None, **who}])
    (group,) = answer["groups"]
    return error_of(group), [row["committed_offset"] for topic in group["topics"] for row in topic["partitions"]]


async def describe(client: RawClient, version: int = 1, group: str = "g") -> dict[str, Any]:
    asked = {"group_ids": [group], "include_authorized_operations": True}
    (found,) = (await client.ask(CONSUMER_GROUP_DESCRIBE, version, **asked))["groups"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("version", [0, 1])
def test_a_life_in_a_group(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, "group.consumer.heartbeat.interval.ms=1234") as server:
            client = await server.connect()
            await client.create("t", 3)
            joined = await join(client, "" if version == 0 else "mine", version)
            assert (error_of(joined), joined["member_epoch"], joined["heartbeat_interval_ms"]) == ("", 1, 1234)
            member_id = joined["member_id"]
            assert member_id if version == 0 else member_id == "mine"
            assert assigned(joined) == [0, 1, 2]
            again = await heartbeat(client, member_id, 1, version)
            assert (error_of(again), again["member_epoch"], assigned(again)) == ("", 1, None)
            stale = await heartbeat(client, member_id, 5, version)
            assert error_of(stale) == "FENCED_MEMBER_EPOCH"
            assert stale["error_message"]
            left = await heartbeat(client, member_id, -1, version)
            assert (error_of(left), left["member_epoch"]) == ("", -1)
            assert error_of(await heartbeat(client, member_id, 1, version)) == "UNKNOWN_MEMBER_ID"

    run(scenario)


def test_partitions_move_from_one_member_to_the_other(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t", 4)
            first = await join(client, "one")
            identity = first["assignment"]["topic_partitions"][0]["topic_id"]
            second = await join(client, "two")
            assert (assigned(second), second["member_epoch"]) == ([], 2)
            asked = await heartbeat(client, "one", 1)
            kept = assigned(asked)
            assert (len(kept or []), asked["member_epoch"]) == (2, 1)
            assert assigned(await heartbeat(client, "two", 2)) is None
            owned = [{"topic_id": identity, "partitions": kept}]
            assert (await heartbeat(client, "one", 1, topic_partitions=owned))["member_epoch"] == 2
            got = assigned(await heartbeat(client, "two", 2))
            assert sorted([*(kept or []), *(got or [])]) == [0, 1, 2, 3]
            shown = await describe(client)
            assert (shown["group_state"], shown["group_epoch"], shown["assignment_epoch"]) == ("Stable", 2, 2)

    run(scenario)


@pytest.mark.parametrize(
    ("version", "wrong"),
    [
        (1, {"group_id": ""}),
        (1, {"member_id": ""}),
        (0, {"member_id": "", "member_epoch": 3}),
        (1, {"instance_id": ""}),
        (1, {"rack_id": ""}),
        (1, {"member_epoch": -3}),
        (1, {"member_epoch": -2}),
        (1, {"rebalance_timeout_ms": -1}),
        (1, {"topic_partitions": None}),
        (1, {"topic_partitions": [{"topic_id": bytes(16), "partitions": [0]}]}),
        (1, {"subscribed_topic_names": None}),
    ],
)
def test_requests_that_contradict_themselves(tmp_path: Path, version: int, wrong: dict[str, Any]) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            right = {"group_id": "g", "member_id": "m", "member_epoch": 0, "rebalance_timeout_ms": 60_000}
            right |= {"subscribed_topic_names": ["t"], "topic_partitions": []}
            answer = await client.ask(CONSUMER_GROUP_HEARTBEAT, version, **right | wrong)
            assert error_of(answer) == "INVALID_REQUEST"
            assert answer["error_message"]
            assert (await client.ask(LIST_GROUPS, 5))["groups"] == []

    run(scenario)


def test_assignors_and_patterns_that_are_not_served(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, "group.consumer.assignors=range") as server:
            client = await server.connect()
            await client.create("t", 1)
            assert error_of(await join(client, server_assignor="uniform")) == "UNSUPPORTED_ASSIGNOR"
            for pattern in ("(", r"(a)\1", "(?=t)"):
                answer = await join(client, subscribed_topic_regex=pattern)
                assert error_of(answer) == "INVALID_REGULAR_EXPRESSION"
                assert pattern[:3] in answer["error_message"].replace("\\\\", "\\")
            assert (await client.ask(LIST_GROUPS, 5))["groups"] == []
            assert error_of(await join(client, server_assignor="range")) == ""
            assert (await describe(client))["assignor_name"] == "range"

    run(scenario)


def test_a_pattern_is_applied_here_to_topics_of_now_and_later(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            for name in ("orders-eu", "orders-us", "my-orders"):
                await client.create(name, 2)
            joined = await join(client, subscribed_topic_names=None, subscribed_topic_regex="orders-[a-z]+")
            assert assigned(joined) == [0, 1, 0, 1]
            await client.create("orders-jp", 1)
            assert assigned(await heartbeat(client, "m", 1)) is not None
            shown = await describe(client)
            rows = shown["members"][0]["assignment"]["topic_partitions"]
            assert {row["topic_name"] for row in rows} == {"orders-eu", "orders-us", "orders-jp"}
            assert shown["members"][0]["subscribed_topic_regex"] == "orders-[a-z]+"

    run(scenario)


def test_a_commit_of_an_earlier_epoch_is_taken_for_what_the_member_kept(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t", 1)
            await join(client)
            await join(client, "other")
            assert (await heartbeat(client, "m", 1))["member_epoch"] == 2
            assert await commit(client, 9, 1) == ""
            assert await commit(client, 9, 1, "other") == "STALE_MEMBER_EPOCH"

    run(scenario)


def test_commits_say_in_which_epoch_they_are_made(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t", 1)
            assert await commit(client, 9, 1) == "GROUP_ID_NOT_FOUND"
            assert await commit(client, 8, 1) == "ILLEGAL_GENERATION"
            await join(client)
            assert await commit(client, 9, 1) == ""
            assert await commit(client, 8, 1) == "UNSUPPORTED_VERSION"
            assert await commit(client, 9, 0) == "STALE_MEMBER_EPOCH"
            assert await commit(client, 9, 1, "stranger") == "UNKNOWN_MEMBER_ID"
            assert await commit(client, 9, -1, "") == "UNKNOWN_MEMBER_ID"
            assert await fetch(client, member_id="m", member_epoch=1) == ("", [7])
            assert await fetch(client) == ("", [7])
            assert await fetch(client, member_id="m", member_epoch=0) == ("STALE_MEMBER_EPOCH", [])
            assert await fetch(client, member_id="stranger", member_epoch=1) == ("UNKNOWN_MEMBER_ID", [])
            await heartbeat(client, "m", -1)
            assert await commit(client, 9, -1, "") == ""

    run(scenario)


def test_administrators_see_groups_of_both_kinds(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, QUICK) as server:
            client = await server.connect()
            await client.create("t", 2)
            await join(client, "m", instance_id="i", rack_id="r", server_assignor="uniform")
            protocols = [{"name": "range", "metadata": b""}]
            classic = {"session_timeout_ms": 9000, "protocol_type": "consumer", "protocols": protocols}
            await client.ask(JOIN_GROUP, 3, group_id="old", **classic)
            listed = (await client.ask(LIST_GROUPS, 5))["groups"]
            assert [(row["group_id"], row["group_type"]) for row in listed] == [("g", "consumer"), ("old", "classic")]
            for kind, name in (("Consumer", "g"), ("classic", "old")):
                (row,) = (await client.ask(LIST_GROUPS, 5, types_filter=[kind]))["groups"]
                assert (row["group_id"], row["protocol_type"]) == (name, "consumer")
            assert (await client.ask(LIST_GROUPS, 5, types_filter=["share"]))["groups"] == []
            assert len((await client.ask(LIST_GROUPS, 5, states_filter=["stable"]))["groups"]) == 1
            (row,) = (await client.ask(DESCRIBE_GROUPS, 6, groups=["g"]))["groups"]
            assert (error_of(row), row["group_state"]) == ("GROUP_ID_NOT_FOUND", "Dead")
            (row,) = (await client.ask(DESCRIBE_GROUPS, 5, groups=["g"]))["groups"]
            assert (error_of(row), row["group_state"]) == ("", "Dead")
            for name in ("old", "none"):
                assert error_of(await describe(client, group=name)) == "GROUP_ID_NOT_FOUND"
            assert error_of(await describe(client, group="")) == "INVALID_GROUP_ID"
            for version in (0, 1):
                shown = await describe(client, version)
                (member,) = shown["members"]
                topics = member.pop("assignment")["topic_partitions"]
                assert [(one["topic_name"], one["partitions"]) for one in topics] == [("t", [0, 1])]
                assert member.pop("target_assignment")["topic_partitions"] == topics
                assert member == {
                    "member_id": "m",
                    "instance_id": "i",
                    "rack_id": "r",
                    "member_epoch": 1,
                    "client_id": "test",
                    "client_host": "/127.0.0.1",
                    "subscribed_topic_names": ["t"],
                    "subscribed_topic_regex": None,
                    "member_type": 1 if version else -1,
                }
                assert shown["authorized_operations"] > 0

    run(scenario)


def test_groups_of_the_other_protocol_refuse_while_somebody_is_there(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, QUICK) as server:
            client = await server.connect()
            await client.create("t", 2)
            protocols = [{"name": "range", "metadata": b""}]
            classic = {"group_id": "g", "session_timeout_ms": 9000, "protocol_type": "consumer", "protocols": protocols}
            old = await client.ask(JOIN_GROUP, 3, **classic)
            who = {"group_id": "g", "member_id": old["member_id"], "generation_id": old["generation_id"]}
            assert error_of(await client.ask(SYNC_GROUP, 2, **who)) == ""
            assert await commit(client, 8, old["generation_id"], old["member_id"]) == ""
            assert error_of(await join(client)) == "GROUP_ID_NOT_FOUND"
            await client.ask(LEAVE_GROUP, 2, group_id="g", member_id=old["member_id"])
            new = await join(client)  # it is empty: it turns, and keeps what is committed
            assert error_of(new) == ""
            assert new["member_epoch"] > old["generation_id"]
            assert await fetch(client) == ("", [7])
            assert error_of(await client.ask(JOIN_GROUP, 3, **classic)) == "INCONSISTENT_GROUP_PROTOCOL"
            who = {"group_id": "g", "member_id": "m", "generation_id": new["member_epoch"]}
            assert error_of(await client.ask(SYNC_GROUP, 5, **who)) == "UNKNOWN_MEMBER_ID"
            assert error_of(await client.ask(HEARTBEAT, 4, **who)) == "UNKNOWN_MEMBER_ID"
            left = await client.ask(LEAVE_GROUP, 5, group_id="g", members=[{"member_id": "m"}])
            assert [error_of(row) for row in left["members"]] == ["UNKNOWN_MEMBER_ID"]
            await heartbeat(client, "m", -1)
            assert error_of(await client.ask(JOIN_GROUP, 3, **classic, member_id="m")) == "UNKNOWN_MEMBER_ID"
            back = await client.ask(JOIN_GROUP, 3, **classic)
            assert error_of(back) == ""
            assert back["generation_id"] > new["member_epoch"]
            assert await fetch(client) == ("", [7])

    run(scenario)


def test_static_members_are_removed_and_empty_groups_deleted(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t", 2)
            await join(client, "m", instance_id="i")
            await commit(client, 9, 1)
            (row,) = (await client.ask(DELETE_GROUPS, 2, groups_names=["g"]))["results"]
            assert error_of(row) == "NON_EMPTY_GROUP"
            places = [{"name": "t", "partitions": [{"partition_index": 0}]}]
            answer = await client.ask(OFFSET_DELETE, 0, group_id="g", topics=places)
            assert error_of(answer["topics"][0]["partitions"][0]) == "GROUP_SUBSCRIBED_TO_TOPIC"
            left = await client.ask(LEAVE_GROUP, 5, group_id="g", members=[{"member_id": "", "group_instance_id": "i"}])
            assert [error_of(row) for row in left["members"]] == [""]
            assert error_of(await heartbeat(client, "m", 1, instance_id="i")) == "UNKNOWN_MEMBER_ID"
            assert (await describe(client))["group_state"] == "Empty"
            answer = await client.ask(OFFSET_DELETE, 0, group_id="g", topics=places)
            assert error_of(answer["topics"][0]["partitions"][0]) == ""
            (row,) = (await client.ask(DELETE_GROUPS, 2, groups_names=["g"]))["results"]
            assert error_of(row) == ""
            assert error_of(await describe(client)) == "GROUP_ID_NOT_FOUND"

    run(scenario)


def test_a_static_member_comes_back_within_its_session(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t", 2)
            await join(client, "m", instance_id="i")
            assert error_of(await join(client, "n", instance_id="i")) == "UNRELEASED_INSTANCE_ID"
            left = await heartbeat(client, "m", -2, instance_id="i")
            assert (error_of(left), left["member_epoch"]) == ("", -2)
            back = await join(client, "n", instance_id="i")
            assert (error_of(back), back["member_epoch"], assigned(back)) == ("", 1, [0, 1])
            assert error_of(await heartbeat(client, "m", 1, instance_id="i")) == "FENCED_INSTANCE_ID"

    run(scenario)


def test_many_members_join_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, "group.consumer.max.size=20") as server:
            client = await server.connect()
            await client.create("t", 40)
            clients = [await server.connect() for _ in range(21)]
            joined = await asyncio.gather(*[join(one, f"m{turn}") for turn, one in enumerate(clients)])
            assert [error_of(one) for one in joined] == [""] * 20 + ["GROUP_MAX_SIZE_REACHED"]

    run(scenario)
