"""Life in a group over sockets: every version of Join, Sync, Heartbeat, Leave and FindCoordinator."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kafka_server import (
    FIND_COORDINATOR,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    METADATA,
    SYNC_GROUP,
    KafkaServer,
    RawClient,
    error_of,
    kafka_server,
    run,
)

QUICK = "group.initial.rebalance.delay.ms=0"
RANGE = [{"name": "range", "metadata": b"what I read"}]


def ask_to_join(client: RawClient, version: int, member_id: str = "", **values: Any) -> None:
    given = {"group_id": "g", "session_timeout_ms": 10_000, "rebalance_timeout_ms": 20_000, "member_id": member_id}
    client.send(JOIN_GROUP, version, given | {"protocol_type": "consumer", "protocols": RANGE} | values)


async def join(client: RawClient, version: int = 9, member_id: str = "", **values: Any) -> dict[str, Any]:
    """Join, twice if that is asked for."""
    ask_to_join(client, version, member_id, **values)
    answer = await client.reply()
    if error_of(answer) == "MEMBER_ID_REQUIRED":
        assert version >= 4
        ask_to_join(client, version, answer["member_id"], **values)
        answer = await client.reply()
    return answer


async def sync(client: RawClient, joined: dict[str, Any], version: int = 5, **values: Any) -> dict[str, Any]:
    assignments = [
        {"member_id": row["member_id"], "assignment": row["member_id"].encode()} for row in joined["members"]
    ]
    given = {"group_id": "g", "generation_id": joined["generation_id"], "member_id": joined["member_id"]}
    return await client.ask(SYNC_GROUP, version, **given | {"assignments": assignments} | values)


async def heartbeat(client: RawClient, joined: dict[str, Any], version: int = 4, **values: Any) -> str:
    given = {"group_id": "g", "generation_id": joined["generation_id"], "member_id": joined["member_id"]}
    return error_of(await client.ask(HEARTBEAT, version, **given | values))


async def delayed(server: KafkaServer, count: int) -> None:
    """Until so many joins wait."""
    while (
        sum(one.joining is not None for _, group in server.broker.groups.groups.list()[1] for one in group.members)
        != count
    ):
        await asyncio.sleep(0.001)


@pytest.mark.parametrize("version", range(10))
def test_a_life_in_a_group(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, QUICK) as server:
            client = await server.connect()
            joined = await join(client, version)
            assert (error_of(joined), joined["generation_id"], joined["protocol_name"]) == ("", 1, "range")
            assert joined["protocol_type"] == ("consumer" if version >= 7 else None)
            assert joined["leader"] == joined["member_id"]
            assert joined["member_id"].startswith("test-")
            assert [row["metadata"] for row in joined["members"]] == [b"what I read"]
            synced = await sync(client, joined, min(version, 5))
            assert synced["assignment"] == joined["member_id"].encode()
            assert synced["protocol_name"] == ("range" if version >= 5 else None)
            assert await heartbeat(client, joined, min(version, 4)) == ""
            assert await heartbeat(client, joined | {"generation_id": 0}, min(version, 4)) == "ILLEGAL_GENERATION"
            identity = {"member_id": joined["member_id"]}
            leaving = {"members": [identity, {"member_id": "nobody"}]} if version >= 3 else identity
            left = await client.ask(LEAVE_GROUP, min(version, 5), group_id="g", **leaving)
            assert error_of(left) == ""
            if version >= 3:
                assert [error_of(row) for row in left["members"]] == ["", "UNKNOWN_MEMBER_ID"]
            else:
                assert error_of(await client.ask(LEAVE_GROUP, version, group_id="g", **identity)) == "UNKNOWN_MEMBER_ID"
            assert await heartbeat(client, joined, min(version, 4)) == "UNKNOWN_MEMBER_ID"

    run(scenario)


@pytest.mark.parametrize("version", range(10))
def test_a_refused_join_has_the_names_its_version_wants(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, QUICK) as server:
            client = await server.connect()
            refused = await join(client, version, "nobody")
            assert (error_of(refused), refused["member_id"]) == ("UNKNOWN_MEMBER_ID", "nobody")
            assert refused["protocol_name"] == (None if version >= 7 else "")
            assert error_of(await join(client, version, group_id="")) == "INVALID_GROUP_ID"
            assert error_of(await join(client, version, session_timeout_ms=1)) == "INVALID_SESSION_TIMEOUT"
            assert error_of(await join(client, version, protocols=[])) == "INCONSISTENT_GROUP_PROTOCOL"

    run(scenario)


def test_three_members_join_and_one_goes(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, "group.initial.rebalance.delay.ms=50") as server:
            clients = [await server.connect() for _ in range(3)]
            joined = await asyncio.gather(*[join(client) for client in clients])
            assert {one["generation_id"] for one in joined} == {1}
            (leader,) = {one["leader"] for one in joined}
            assert [len(one["members"]) for one in joined] == [3 if one["member_id"] == leader else 0 for one in joined]
            synced = await asyncio.gather(*[sync(*pair) for pair in zip(clients, joined, strict=True)])
            assert [one["assignment"] for one in synced] == [one["member_id"].encode() for one in joined]
            last = {"member_id": joined[2]["member_id"]}
            await clients[2].ask(LEAVE_GROUP, 5, group_id="g", members=[last])
            assert await heartbeat(clients[0], joined[0]) == "REBALANCE_IN_PROGRESS"
            again = await asyncio.gather(*[join(clients[one], 9, joined[one]["member_id"]) for one in (0, 1)])
            assert {one["generation_id"] for one in again} == {2}

    run(scenario)


def test_answers_behind_a_delayed_join_wait_for_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, "group.initial.rebalance.delay.ms=100") as server:
            client = await server.connect()
            ask_to_join(client, 3)
            client.send(METADATA, 12, {"topics": []})
            assert error_of(await client.reply()) == ""  # which checks that it is the join's
            assert (await client.reply())["brokers"]

    run(scenario)


def test_a_closed_connection_ends_its_delayed_join(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, "group.initial.rebalance.delay.ms=600000") as server:
            staying, leaving = await server.connect(), await server.connect()
            ask_to_join(staying, 3)
            await delayed(server, 1)
            ask_to_join(leaving, 3)
            await delayed(server, 2)
            leaving.writer.close()
            await delayed(server, 1)
            (_, group), *_ = server.broker.groups.groups.list()[1]
            assert len(group.members) == 1

    run(scenario)


def test_a_half_closed_connection_gets_its_answer_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, "group.initial.rebalance.delay.ms=600000") as server:
            client = await server.connect()
            ask_to_join(client, 3)
            await delayed(server, 1)
            client.writer.write_eof()
            assert error_of(await client.reply()) == "COORDINATOR_LOAD_IN_PROGRESS"

    run(scenario)


def test_short_of_memory_delayed_joins_and_syncs_are_sent_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, QUICK) as server:
            leader, follower = await server.connect(), await server.connect()
            first = await join(leader)
            ask_to_join(follower, 3)
            await delayed(server, 1)
            for connection in server.server.connections:
                connection.release_memory()
            assert error_of(await follower.reply()) == "COORDINATOR_LOAD_IN_PROGRESS"
            ask_to_join(follower, 3)
            await delayed(server, 1)
            again = await join(leader, 9, first["member_id"])
            joined = await follower.reply()
            assert again["generation_id"] == joined["generation_id"] == 2
            waiting = asyncio.create_task(sync(follower, joined))
            while not any(one.syncing for _, group in server.broker.groups.groups.list()[1] for one in group.members):
                await asyncio.sleep(0.001)
            for connection in server.server.connections:
                connection.release_memory()
            assert error_of(await waiting) == "REBALANCE_IN_PROGRESS"

    run(scenario)


@pytest.mark.parametrize("version", [5, 8, 9])
def test_a_static_member_restarts(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, QUICK) as server:
            before, after = await server.connect(), await server.connect()
            first = await join(before, version, group_instance_id="i")
            synced = await sync(before, first, group_instance_id="i")
            second = await join(after, version, group_instance_id="i")
            assert (error_of(second), second["generation_id"]) == ("", 1)
            assert second["member_id"] != first["member_id"]
            assert second["skip_assignment"] == (version >= 9)
            if version < 9:
                assert second["leader"] == first["member_id"]
                assert second["members"] == []
            again = await sync(after, second | {"members": []}, group_instance_id="i")
            assert again["assignment"] == synced["assignment"]
            assert await heartbeat(before, first, group_instance_id="i") == "FENCED_INSTANCE_ID"
            assert await heartbeat(after, second, group_instance_id="i") == ""
            removed = [{"member_id": "", "group_instance_id": "i"}, {"member_id": "x", "group_instance_id": "i"}]
            left = await after.ask(LEAVE_GROUP, 5, group_id="g", members=removed)
            assert [error_of(row) for row in left["members"]] == ["", "UNKNOWN_MEMBER_ID"]

    run(scenario)


def test_the_same_protocol_named_twice_counts_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, QUICK) as server:
            one, two = await server.connect(), await server.connect()
            await join(one, protocols=RANGE * 2)
            assert error_of(await join(two, 3, protocols=[{"name": "other", "metadata": b""}])) == (
                "INCONSISTENT_GROUP_PROTOCOL"
            )

    run(scenario)


@pytest.mark.parametrize("version", range(6))
def test_the_coordinator_is_found(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()

            async def find(key: str, kind: int = 0) -> dict[str, Any]:
                if version >= 4:
                    answer = await client.ask(FIND_COORDINATOR, version, key_type=kind, coordinator_keys=[key, "other"])
                    assert [row["key"] for row in answer["coordinators"]] == [key, "other"]
                    row: dict[str, Any] = answer["coordinators"][0]
                    return row
                client.send(FIND_COORDINATOR, version, {"key": key, "key_type": kind})
                return await client.reply()

            found = await find("g")
            assert (error_of(found), found["node_id"], found["host"], found["port"]) == ("", 1, *server.address)
            assert error_of(await find("")) == "INVALID_GROUP_ID"
            if version >= 1:
                assert error_of(await find("t", 1)) == "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
                assert error_of(await find("s", 2)) == "INVALID_REQUEST"

    run(scenario)
