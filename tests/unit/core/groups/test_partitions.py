"""Groups shared out among brokers over one store: each has one coordinator, and moves with all it has."""

import asyncio
import itertools
import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from core_world import SharedWorld, run_shared
from group_broker import until
from korvet_fast.core.groups.classic.machine import ClassicGroupState
from korvet_fast.core.groups.classic.requests import JoinRequest, JoinResult, SyncRequest
from korvet_fast.core.groups.documents import PARTITIONS, OffsetAndMetadata, TopicPartition, group_key
from korvet_fast.core.groups.ownership import PartitionOwnership, owner_key
from korvet_fast.errors import StoreError
from shared_store import Server

NAMES = [f"group-{number}" for number in range(200)]
PLACE = TopicPartition("t", 0)
IDS = itertools.count()


def over(body: Callable[[Server, SharedWorld], Coroutine[Any, Any, None]]) -> None:
    """With a broker that is alone at first, and a topic `t`."""

    async def run() -> None:
        server = Server()
        async with start(server, 1) as one:
            await one.create()
            await body(server, one)

    asyncio.run(run())


def start(server: Server, number: int) -> Any:
    return run_shared(server, f"node.id={number}", "group.initial.rebalance.delay.ms=0")


async def refresh(*worlds: SharedWorld) -> None:
    """They see who is there, and take over what falls to them."""
    for world in worlds:
        await world.broker.cluster.poll()
        await world.broker.groups.partitions.reconcile()


async def seize(world: SharedWorld) -> None:
    """The broker takes over partitions that others do not release, after the time that they may take."""
    world.clock.seconds += world.broker.cluster.lease
    await refresh(world)


def nobody(process: str) -> bool:
    """Lives."""
    return False


async def join(world: SharedWorld, group_id: str, member_id: str = "") -> JoinResult:
    protocols = (("range", b"metadata"),)
    ask = JoinRequest(member_id, None, "c", "/h", "consumer", protocols, 10, 30, f"member-{next(IDS)}", False, True)
    return await world.broker.groups.classic.join(group_id, ask)


async def form(world: SharedWorld, group_id: str) -> JoinResult:
    """A stable group of one, which has committed 7."""
    joined = await join(world, group_id)
    assert joined.error == ""
    ask = SyncRequest(joined.member_id, None, joined.generation, None, None, {joined.member_id: b"all"})
    assert (await world.broker.groups.classic.sync(group_id, ask)).assignment == b"all"
    assert await commit(world, group_id, joined, 7) == ""
    return joined


async def commit(world: SharedWorld, group_id: str, joined: JoinResult, offset: int) -> str:
    who = (joined.member_id, None, joined.generation)
    return (await world.broker.groups.offsets.commit(group_id, *who, {PLACE: OffsetAndMetadata(offset)}))[PLACE]


async def committed(world: SharedWorld, group_id: str) -> int:
    error, found = await world.broker.groups.offsets.fetch(group_id, [PLACE])
    assert error == ""
    return found[PLACE].offset


def heartbeat(world: SharedWorld, group_id: str, joined: JoinResult) -> str:
    return world.broker.groups.classic.heartbeat(group_id, joined.member_id, None, joined.generation)


def first_of(world: SharedWorld, broker: int) -> str:
    """A group that this broker coordinates."""
    return next(name for name in NAMES if world.broker.groups.partitions.find(name) == broker)


def test_each_group_has_one_coordinator_and_everybody_knows_which() -> None:
    async def body(server: Server, one: SharedWorld) -> None:
        assert {one.broker.groups.partitions.find(name) for name in NAMES} == {1}
        async with start(server, 2) as two, start(server, 3) as three:
            await refresh(one, two, three)
            for name in NAMES:
                (broker,) = {world.broker.groups.partitions.find(name) for world in (one, two, three)}
                errors = [world.broker.groups.groups.describe(name)[0] for world in (one, two, three)]
                expected = ["NOT_COORDINATOR"] * 3
                expected[broker - 1] = "GROUP_ID_NOT_FOUND"
                assert errors == expected
            shares = [one.broker.groups.partitions.find(name) for name in NAMES]
            assert all(shares.count(broker) > len(NAMES) / 5 for broker in (1, 2, 3))

    over(body)


def test_groups_move_when_a_broker_comes_and_nobody_rebalances() -> None:
    async def body(server: Server, one: SharedWorld) -> None:
        joined = {name: await form(one, name) for name in NAMES[:20]}
        async with start(server, 2) as two:
            await two.broker.topics.refresh()
            moving = next(name for name in joined if two.broker.groups.partitions.find(name) == 2)
            delayed = asyncio.ensure_future(join(one, moving))
            await asyncio.sleep(0)
            await refresh(one, two)
            assert (await delayed).error == "NOT_COORDINATOR"
            for name, member in joined.items():
                here, there = (two, one) if two.broker.groups.partitions.find(name) == 2 else (one, two)
                assert heartbeat(there, name, member) == "NOT_COORDINATOR"
                assert heartbeat(here, name, member) == ""
                assert await committed(here, name) == 7
                assert await commit(here, name, member, 8) == ""
            leaving = asyncio.create_task(two.broker.leave())
            while not leaving.done():
                await refresh(one, two)
            await refresh(one)
            assert {heartbeat(one, name, member) for name, member in joined.items()} == {""}
            assert {await committed(one, name) for name in joined} == {8}

    over(body)


def test_a_coordinator_that_lives_releases_a_group_before_another_answers_for_it() -> None:
    async def body(server: Server, one: SharedWorld) -> None:
        joined = {name: await form(one, name) for name in NAMES[:20]}
        async with start(server, 2) as two:
            name = next(name for name in joined if two.broker.groups.partitions.find(name) == 2)
            await refresh(two)
            assert (await join(two, name)).error == "COORDINATOR_LOAD_IN_PROGRESS"
            assert await commit(one, name, joined[name], 8) == ""  # it does not know yet, and nobody else does more
            await one.broker.cluster.poll()
            server.down = True
            with pytest.raises(StoreError):
                await one.broker.groups.partitions.reconcile()
            server.down = False
            await refresh(two)
            assert one.broker.groups.groups.describe(name)[0] == "NOT_COORDINATOR"
            assert (await join(two, name)).error == "COORDINATOR_LOAD_IN_PROGRESS"
            await refresh(one, two)
            assert await committed(two, name) == 8
            assert heartbeat(two, name, joined[name]) == ""

    over(body)


def test_a_coordinator_that_was_taken_for_dead_has_nothing_when_it_comes_back() -> None:
    async def body(server: Server, one: SharedWorld) -> None:
        joined = {name: await form(one, name) for name in NAMES[:20]}
        async with start(server, 2) as two:
            await refresh(one, two)
            name = next(name for name in joined if two.broker.groups.partitions.find(name) == 1)
            del server.keys["brokers/1"]
            await refresh(two)
            assert await commit(two, name, joined[name], 9) == ""
            for _ in range(2):
                await one.broker.cluster.poll()  # it sees that it was gone, and is back before it has done anything
            assert one.broker.groups.partitions.find(name) == 1
            assert one.broker.groups.groups.describe(name)[0] == "NOT_COORDINATOR"
            await refresh(one, two, one)
            assert await committed(one, name) == 9

    over(body)


def test_a_coordinator_partition_is_taken_from_the_dead_and_from_who_released_it() -> None:
    async def body(server: Server, one: SharedWorld) -> None:
        ours, theirs = (PartitionOwnership(one.store, 0, token) for token in ("this process", "another"))
        assert await ours.acquire(1, nobody)
        assert not await theirs.acquire(2, lambda process: process == "this process")
        assert await ours.verify(1)
        await theirs.release()  # it has nothing to release
        assert await ours.verify(1)
        assert await ours.acquire(1, lambda _: True)
        await ours.release()
        assert not await ours.verify(1)
        assert await theirs.acquire(2, lambda _: True)

    over(body)


def test_a_coordinator_that_does_not_know_that_it_was_replaced_tells_nothing() -> None:
    async def body(server: Server, one: SharedWorld) -> None:
        joined = {name: await form(one, name) for name in NAMES[:20]}
        async with start(server, 2) as two:
            await seize(two)
            name = next(name for name in joined if two.broker.groups.partitions.find(name) == 2)
            assert (await join(two, name, joined[name].member_id)).generation == 2
            assert await commit(two, name, joined[name]._replace(generation=2), 9) == "REBALANCE_IN_PROGRESS"
            assert (await join(one, name, joined[name].member_id)).error == "NOT_COORDINATOR"
            _, group = two.broker.groups.groups.describe(name)
            assert group is not None
            assert (group.state, group.generation) == (ClassicGroupState.COMPLETING, 2)

    over(body)


def test_what_is_committed_is_shown_to_the_tools_of_the_store() -> None:
    async def body(server: Server, one: SharedWorld) -> None:
        await form(one, "g")
        assert server.shown == {("t:0", "g"): 7}
        assert await commit(one, "h", JoinResult(), 3) == ""
        assert server.shown == {("t:0", "g"): 7, ("t:0", "h"): 3}
        assert await one.broker.groups.offsets.delete("h", [PLACE]) == ""
        assert server.shown["t:0", "h"] is None
        _, group = one.broker.groups.groups.describe("g")
        assert group is not None
        (member,) = group.members
        one.broker.groups.classic.leave("g", [(member.id, None)])
        assert await one.broker.groups.groups.delete("g") == ""
        assert server.shown["t:0", "g"] is None

    over(body)


def test_a_coordinator_that_was_replaced_writes_nothing_at_all() -> None:
    """Not even what the new one has not touched: it has answered already that nothing is there."""

    async def body(server: Server, one: SharedWorld) -> None:
        members = {name: await form(one, name) for name in NAMES[:20]}
        async with start(server, 2) as two:
            await seize(two)
            name = next(name for name in members if two.broker.groups.partitions.find(name) == 2)
            joined = members[name]
            unseen = TopicPartition("u", 0)
            await one.broker.topics.create("u", 1, {})
            assert (await two.broker.groups.offsets.fetch(name, [unseen])) == ("", {})
            who = (joined.member_id, None, joined.generation)
            errors = await one.broker.groups.offsets.commit(name, *who, {unseen: OffsetAndMetadata(1)})
            assert errors == {unseen: "NOT_COORDINATOR"}
            assert await committed(two, name) == 7
            assert one.broker.groups.groups.describe(name)[0] == "COORDINATOR_LOAD_IN_PROGRESS"
            await until(lambda: one.broker.groups.groups.describe(name)[0] == "NOT_COORDINATOR")
            await refresh(one)
            assert one.broker.groups.groups.describe(name)[0] == "NOT_COORDINATOR"
            assert heartbeat(two, name, joined) == ""

    over(body)


def test_who_takes_a_coordinator_partition_has_a_larger_epoch_than_all_before_whatever_the_server_forgot() -> None:
    async def body(server: Server, one: SharedWorld) -> None:
        ours, theirs = (PartitionOwnership(one.store, 0, token) for token in ("this process", "another"))
        assert await ours.acquire(1, nobody)
        (mine,) = ours.comparison
        assert await ours.verify(1)
        assert await theirs.acquire(2, nobody)
        assert not await ours.verify(1)
        (taken,) = theirs.comparison
        assert json.loads(taken.value)["epoch"] == json.loads(mine.value)["epoch"] + 1
        server.keys[owner_key(0)] = mine.value  # the taking is forgotten
        assert await theirs.verify(2)
        (again,) = theirs.comparison
        assert json.loads(again.value) == {
            "broker": 2,
            "process": "another",
            "epoch": json.loads(taken.value)["epoch"] + 1,
        }
        assert not await ours.verify(1)

    over(body)


def test_a_broker_that_lost_its_place_coordinates_nothing() -> None:
    async def body(server: Server, one: SharedWorld) -> None:
        joined = await form(one, "g")
        one.clock.seconds += 2_000_000.0
        assert not one.broker.cluster.holds_lease()
        assert heartbeat(one, "g", joined) == "NOT_COORDINATOR"
        assert await commit(one, "g", joined, 8) == "NOT_COORDINATOR"
        assert (await join(one, "g")).error == "NOT_COORDINATOR"

    over(body)


def test_what_cannot_be_loaded_is_loaded_later() -> None:
    async def body(server: Server, one: SharedWorld) -> None:
        joined = {name: await form(one, name) for name in NAMES[:20]}
        async with start(server, 2) as two:
            await refresh(one, two)
            name = next(name for name in joined if two.broker.groups.partitions.find(name) == 2)
            records = {key: server.keys.pop(key) for key in list(server.keys) if key.startswith("brokers/2")}
            assert records  # broker 2 is gone
            await one.broker.cluster.poll()
            server.down = True
            with pytest.raises(StoreError):
                await one.broker.groups.partitions.reconcile()
            assert (await join(one, name)).error == "COORDINATOR_LOAD_IN_PROGRESS"
            assert heartbeat(one, name, joined[name]) == ""
            server.down = False
            await one.broker.groups.partitions.reconcile()
            assert heartbeat(one, name, joined[name]) == ""
            assert await committed(one, name) == 7
            server.keys |= records

    over(body)


def test_a_server_that_forgot_is_told_again() -> None:
    async def body(server: Server, one: SharedWorld) -> None:
        joined = {name: await form(one, name) for name in NAMES[:5]}
        lost = {key for key in server.keys if key.startswith("groups-")}
        assert len(lost) == 10 + PARTITIONS
        for key in lost:
            del server.keys[key]
        lost = {key for key in lost if not key.endswith("/owner")}
        server.change_history("the history broke")
        await until(lambda: lost <= server.keys.keys())
        await until(lambda: all(one.broker.groups.groups.describe(name)[0] == "" for name in joined))
        for name, member in joined.items():
            assert group_key(name) in server.keys
            assert heartbeat(one, name, member) == ""
            assert await committed(one, name) == 7

    over(body)


def test_groups_are_loaded_again_after_an_unforeseen_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def body(server: Server, one: SharedWorld) -> None:
        joined = await form(one, "g")
        documents, raised = one.broker.groups.partitions._documents, False
        read = documents.read

        async def read_badly(partition: int) -> Any:
            nonlocal raised
            if not raised:
                raised = True
                raise ZeroDivisionError("unforeseen")
            return await read(partition)

        monkeypatch.setattr(documents, "read", read_badly)
        server.change_history("the history broke")
        await until(lambda: raised)
        await until(lambda: one.broker.groups.groups.describe("g")[0] == "")
        assert heartbeat(one, "g", joined) == ""
        assert await committed(one, "g") == 7

    over(body)
    assert "background work failed, and is done again: unforeseen" in caplog.text
