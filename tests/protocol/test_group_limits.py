"""Limits of the memory that groups take: beyond them new members are refused, and the others go on."""

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest

from kafka_messages import CATALOG
from kafka_server import (
    CONSUMER_GROUP_HEARTBEAT,
    DESCRIBE_GROUPS,
    HEARTBEAT,
    JOIN_GROUP,
    LIST_GROUPS,
    OFFSET_COMMIT,
    SYNC_GROUP,
    RawClient,
    error_of,
    frame,
    kafka_server,
    run,
)
from korvet_fast.wire.kafka.costs import of_offset_fetch

HALF_AN_HOUR = 1_800_000


def ask_to_join(group_id: str, metadata: bytes = b"x", **values: Any) -> dict[str, Any]:
    defaults = {"session_timeout_ms": HALF_AN_HOUR, "rebalance_timeout_ms": HALF_AN_HOUR, "member_id": ""}
    protocols = [{"name": "range", "metadata": metadata}]
    return {"group_id": group_id, "protocol_type": "consumer", "protocols": protocols} | defaults | values


def ask_to_commit(group_id: str, offset: int = 1, metadata: str = "") -> dict[str, Any]:
    row = {"partition_index": 0, "committed_offset": offset, "committed_metadata": metadata}
    member = {"generation_id_or_member_epoch": -1, "member_id": ""}
    return {"group_id": group_id, "topics": [{"name": "t", "partitions": [row]}]} | member


async def join(client: RawClient, group_id: str, metadata: bytes = b"x", **values: Any) -> dict[str, Any]:
    """The answer to a static member, after everybody's joins."""
    given = {"group_instance_id": "one"} | values
    return await client.ask(JOIN_GROUP, 5, **ask_to_join(group_id, metadata, **given))


async def commit(client: RawClient, group_id: str, **values: Any) -> str:
    answer = await client.ask(OFFSET_COMMIT, 8, **ask_to_commit(group_id, **values))
    return error_of(answer["topics"][0]["partitions"][0])


def test_finding_3_1_metadata_is_bounded_for_a_group_and_for_all_groups(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, "group.initial.rebalance.delay.ms=0") as server:
            client = await server.connect()
            assert error_of(await join(client, "large", bytes(16 << 20))) == "GROUP_MAX_SIZE_REACHED"
            answers = [await join(client, f"g{number}", bytes(10 << 20)) for number in range(12)]
            assert [error_of(answer) for answer in answers] == [""] * 10 + ["COORDINATOR_NOT_AVAILABLE"] * 2
            # Who is there already goes on, and may come back with as much.
            member = {"group_id": "g0", "generation_id": 1, "member_id": answers[0]["member_id"]}
            assert error_of(await client.ask(HEARTBEAT, 3, group_instance_id="one", **member)) in (
                "",
                "REBALANCE_IN_PROGRESS",
            )
            again = await join(client, "g0", bytes(10 << 20), member_id=answers[0]["member_id"])
            assert error_of(again) == ""

    run(scenario)


def test_finding_3_4_new_groups_by_commit_are_bounded_and_leave_room_for_members(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, "group.initial.rebalance.delay.ms=0") as server:
            client = await server.connect()
            await client.create("t")
            found: list[str] = []
            for number in range(15_050 + 100):
                if number < 15_050:
                    client.send(OFFSET_COMMIT, 8, ask_to_commit(f"group-{number}"))
                if number >= 100:
                    found.append(error_of((await client.reply())["topics"][0]["partitions"][0]))
            assert found == [""] * 15_000 + ["COORDINATOR_NOT_AVAILABLE"] * 50
            assert await commit(client, "group-0", offset=7) == ""
            assert error_of(await join(client, "with a member")) == ""
            assert await commit(client, "one more") == "COORDINATOR_NOT_AVAILABLE"

    run(scenario)
    warnings = [record.message for record in caplog.records if "max.groups" in record.message]
    assert 1 <= len(warnings) <= 20
    assert "delete groups that nobody uses" in warnings[0]


def test_commits_beyond_the_memory_of_a_group_are_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, "group.memory.max.bytes=10000") as server:
            client = await server.connect()
            await client.create("t")
            assert await commit(client, "g") == ""
            assert await commit(client, "g", metadata="x" * 4000) == "INVALID_COMMIT_OFFSET_SIZE"
            assert await commit(client, "g", metadata="x" * 500) == ""

    run(scenario)


@pytest.mark.parametrize("size", [256, 32_767])
def test_finding_3_6_the_id_of_a_group_has_up_to_255_characters(tmp_path: Path, size: int) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t")
            assert await commit(client, "g" * size) == "INVALID_GROUP_ID"
            assert error_of(await join(client, "g" * size)) == "INVALID_GROUP_ID"
            assert await commit(client, "g" * 255) == ""
            assert error_of(await join(client, "h", group_instance_id="i" * size)) == "INVALID_REQUEST"
            protocols = [{"name": "p" * size, "metadata": b""}]
            assert error_of(await join(client, "h", protocols=protocols)) == "INCONSISTENT_GROUP_PROTOCOL"
            listed = await client.ask(LIST_GROUPS, 2)
            assert [group["group_id"] for group in listed["groups"]] == ["g" * 255]

    run(scenario)


def test_finding_3_6_a_long_client_id_makes_no_member_id_that_cannot_be_told(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            header = {"api_key": JOIN_GROUP, "api_version": 5, "correlation_id": 1, "client_id": "c" * 32_760}
            client.writer.write(frame(CATALOG[JOIN_GROUP].request.encode(header | ask_to_join("g"), 5)))
            reply = await asyncio.wait_for(client.raw_reply(), 120)
            answer = CATALOG[JOIN_GROUP].response.decode(reply, 5, 100)
            assert error_of(answer) == "MEMBER_ID_REQUIRED"
            assert len(answer["member_id"]) < 300

    run(scenario)


async def count_members_of_many_names(client: RawClient, names: list[str]) -> int:
    """How many members that want to read all of these a group takes, of ten."""
    values = {"group_id": "wide", "member_epoch": 0, "rebalance_timeout_ms": 10_000, "topic_partitions": []}
    found = []
    for number in range(10):
        own = {"member_id": str(number).rjust(22, "A"), "subscribed_topic_names": [*names, str(number)]}
        found.append(error_of(await client.ask(CONSUMER_GROUP_HEARTBEAT, 1, **values | own)))
    taken = found.count("")
    assert found == [""] * taken + ["GROUP_MAX_SIZE_REACHED"] * (10 - taken)
    return taken


@pytest.mark.parametrize("first", ["a", "\N{CJK UNIFIED IDEOGRAPH-4E00}"])
def test_many_short_names_are_counted_with_what_they_take(tmp_path: Path, first: str) -> None:
    """5,000 names of one or two characters take some 400 KB of memory, a hundred times what they say."""

    async def scenario() -> None:
        async with kafka_server(tmp_path, "group.memory.max.bytes=3000000") as server:
            client = await server.connect()
            names = [first + chr(0x100 + number) for number in range(5000)]
            assert 1 <= await count_members_of_many_names(client, names) <= 6

    run(scenario)


def test_a_group_that_was_loaded_counts_with_what_it_takes(tmp_path: Path) -> None:
    """Not only from its next change on: a restart makes no room."""
    names = ["n" * 200 + str(number) for number in range(50)]

    async def ask(client: RawClient, member_id: str) -> str:
        values = {"group_id": "g", "member_id": member_id.rjust(22, "A"), "member_epoch": 0, "topic_partitions": []}
        values |= {"subscribed_topic_names": names, "rebalance_timeout_ms": HALF_AN_HOUR}
        return error_of(await client.ask(CONSUMER_GROUP_HEARTBEAT, 1, **values))

    async def scenario() -> None:
        counted: list[int] = []
        for _ in range(2):
            async with kafka_server(tmp_path, "group.memory.max.bytes=50000") as server:
                client = await server.connect()
                if not counted:
                    assert await ask(client, "one") == ""
                counted.append(server.broker.groups.partitions.runtimes.budget.used)
                assert await ask(client, "two") == "GROUP_MAX_SIZE_REACHED"
        assert counted[0] == counted[1] > 20_000

    run(scenario)


def test_a_member_has_100_protocols_at_most(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, "group.initial.rebalance.delay.ms=0") as server:
            client = await server.connect()
            protocols = [{"name": str(number), "metadata": b""} for number in range(101)]
            assert error_of(await join(client, "many", protocols=protocols)) == "INCONSISTENT_GROUP_PROTOCOL"
            assert error_of(await join(client, "many", protocols=protocols[:100])) == ""

    run(scenario)


def test_the_text_of_a_commit_counts_as_it_is_kept(tmp_path: Path) -> None:
    """1,300 characters that are not ASCII are 7,800 bytes of the document, and 2,600 of memory besides."""
    greek = "\N{GREEK SMALL LETTER ALPHA}" * 1300

    async def scenario() -> None:
        async with kafka_server(tmp_path, "group.memory.max.bytes=20000") as server:
            client = await server.connect()
            await client.create("t")
            assert await commit(client, "g", metadata="x" * 4000) == ""
            assert await commit(client, "h", metadata=greek) == "INVALID_COMMIT_OFFSET_SIZE"

    run(scenario)


def test_descriptions_of_large_groups_wait_for_memory(tmp_path: Path) -> None:
    async def scenario() -> None:
        settings = ("group.initial.rebalance.delay.ms=0", f"queued.max.request.bytes={32 << 20}")
        async with kafka_server(tmp_path, *settings) as server:
            client = await server.connect()
            joined = await join(client, "g", bytes(8 << 20))
            member = {"generation_id": joined["generation_id"], "member_id": joined["member_id"]}
            synced = await client.ask(SYNC_GROUP, 3, group_id="g", group_instance_id="one", **member)
            assert error_of(joined) == error_of(synced) == ""
            most, rounds = 0, 0
            sockets = []
            for _ in range(8):
                slow = socket.socket()
                slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                sockets.append(slow)
                slow.setblocking(False)
                await asyncio.get_running_loop().sock_connect(slow, tuple(server.address))
                await asyncio.get_running_loop().sock_sendall(
                    slow, frame(client.request(DESCRIBE_GROUPS, 5, {"groups": ["g"]}))
                )
            while rounds < 50:
                await asyncio.sleep(0.02)
                most = max(most, server.server.pool.used)
                rounds += most > 8 << 20  # since the first was described
            for slow in sockets:
                slow.close()
            assert 8 << 20 < most < 48 << 20

    run(scenario)


def test_committed_texts_are_charged_before_they_are_told(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t", 2000)
            rows = [{"partition_index": index, "committed_offset": 1} for index in range(1999)]
            rows.append({"partition_index": 1999, "committed_offset": 1, "committed_metadata": "x" * 4096})
            topics = [{"name": "t", "partitions": rows}]
            await client.ask(OFFSET_COMMIT, 8, **ask_to_commit("g") | {"topics": topics})
            session = server.dialect.session("here")

            def cost(asked: list[dict[str, Any]] | None) -> int:
                found = of_offset_fetch(session, {"groups": [], "group_id": "g", "topics": asked})
                return found.answer_bytes if found is not None else 0

            assert cost([{"name": "t", "partition_indexes": [1999] * 100}]) > 100 * 4096
            assert cost([{"name": "t", "partition_indexes": [1999]}] * 100) > 100 * 4096
            once = [{"name": "t", "partition_indexes": [*range(2000)]}]
            assert 2000 * 500 < cost(None) < cost(once) < 2001 * 500 + 10_000
            assert cost([{"name": "t", "partition_indexes": [1999]}]) == 0

    run(scenario)


LONG = "\N{GRINNING FACE}" * 255  # characters that take 4 bytes of memory each, and 12 of the document


def test_the_ids_of_classic_members_count(tmp_path: Path) -> None:
    async def scenario() -> None:
        settings = ("group.initial.rebalance.delay.ms=0", "group.memory.max.bytes=50000")
        async with kafka_server(tmp_path, *settings) as server:
            client = await server.connect()
            # A member that has not synced within its rebalance timeout is removed: long enough for a busy machine.
            found = []
            for number in range(10):
                given = {"group_instance_id": f"{LONG[:-1]}{number}", "rebalance_timeout_ms": 1000}
                found.append(error_of(await join(client, "g", **given)))
            taken = found.count("")
            assert 3 <= taken <= 6
            assert found == [""] * taken + ["GROUP_MAX_SIZE_REACHED"] * (10 - taken)
            # Who is there may come back.
            given = {"group_instance_id": f"{LONG[:-1]}0", "rebalance_timeout_ms": 1000}
            assert error_of(await join(client, "g", **given)) == ""

    run(scenario)


def test_the_ids_of_consumer_members_count(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, "group.memory.max.bytes=100000") as server:
            client = await server.connect()
            values = {"group_id": "g", "member_epoch": 0, "rebalance_timeout_ms": 10_000, "topic_partitions": []}
            values |= {"rack_id": LONG, "subscribed_topic_names": ["t"]}
            found = []
            for number in range(20):
                own = {"member_id": f"{LONG[:-2]}{number:2}", "instance_id": f"{LONG[:-2]}{number:2}"}
                found.append(error_of(await client.ask(CONSUMER_GROUP_HEARTBEAT, 1, **values | own)))
            taken = found.count("")
            assert 5 <= taken <= 8
            assert found == [""] * taken + ["GROUP_MAX_SIZE_REACHED"] * (20 - taken)

    run(scenario)
