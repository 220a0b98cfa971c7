"""Consumer groups with time and storage: nothing is told before it is stored, and nothing told is forgotten."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from group_broker import GROUP, Groups, run_groups, until
from korvet_fast.core.groups.consumer.group import ConsumerGroup
from korvet_fast.core.groups.consumer.machine import GroupState
from korvet_fast.core.groups.consumer.members import LEAVES, PAUSES, Beat, Beaten
from korvet_fast.core.groups.documents import group_key


def beat(world: Groups, member_id: str, epoch: int, **values: Any) -> "asyncio.Task[Beaten]":
    return asyncio.create_task(world.groups.consumers.beat(GROUP, Beat(member_id, epoch, **values)))


def join(world: Groups, member_id: str = "m", **values: Any) -> "asyncio.Task[Beaten]":
    given = {"rebalance": 30.0, "names": ("t",), "owned": frozenset()}
    return beat(world, member_id, 0, **given | values)


def group_of(world: Groups) -> ConsumerGroup:
    fault, group = world.groups.describe(GROUP)
    assert fault == ""
    assert isinstance(group, ConsumerGroup)
    return group


def test_an_epoch_is_told_when_it_is_stored(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as world:
            world.store.hold = asyncio.Event()
            first = join(world)
            await until(lambda: world.store.saves == 1)
            second = beat(world, "m", 1)  # nothing is new, but what it says is not stored yet
            for _ in range(5):
                await asyncio.sleep(0)
            assert not first.done()
            assert not second.done()
            world.store.hold.set()
            joined = await first
            assert (joined.fault, joined.epoch, len(joined.assigned or ())) == ("", 1, 2)
            assert (await second).epoch == 1
            saves = world.store.saves
            assert await beat(world, "m", 1) == Beaten("", "m", 1, None)
            assert world.store.saves == saves

    asyncio.run(run())


def test_a_restart_changes_nothing_for_members_that_go_on(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as world:
            first = await join(world, instance_id="i", regex="x.*", assignor="range")
            await join(world, "n")
            await world.commit(5)
            before = {one.id: one.progress for one in group_of(world).members}
            epoch = group_of(world).epoch
        async with run_groups(tmp_path) as world:
            group = group_of(world)
            assert (group.epoch, {one.id: one.progress for one in group.members}) == (epoch, before)
            assert group.state is GroupState.RECONCILING
            asked = await beat(world, "m", first.epoch, instance_id="i")
            assert (asked.fault, asked.epoch, len(asked.assigned or ())) == ("", first.epoch, 1)
            assert (await beat(world, "m", first.epoch, instance_id="i", owned=asked.assigned)).epoch == epoch
            assert len((await beat(world, "n", epoch)).assigned or ()) == 1
            assert group.state is GroupState.STABLE
            world.tick(44.0)
            await beat(world, "m", epoch, instance_id="i")
            world.tick(2.0)
            assert [one.id for one in group.members] == ["m"]

    asyncio.run(run())


@pytest.mark.parametrize("failure", ["refused", "moved"])
def test_a_group_that_cannot_be_stored_is_loaded_again(tmp_path: Path, failure: str) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as world:
            await join(world)
            world.store.unreadable = True
            if failure == "refused":
                world.store.refuse = "the disk is gone"
            else:
                world.store.blind = True
            refused = await join(world, "n")
            assert refused == Beaten("COORDINATOR_NOT_AVAILABLE" if failure == "refused" else "NOT_COORDINATOR")
            assert await beat(world, "m", 1) == Beaten("COORDINATOR_LOAD_IN_PROGRESS")
            world.store.refuse, world.store.blind, world.store.unreadable = "", False, False
            await until(lambda: world.groups.describe(GROUP)[0] == "")
            assert [(one.id, one.epoch) for one in group_of(world).members] == [("m", 1)]
            assert (await beat(world, "m", 1)).fault == ""

    asyncio.run(run())


def test_after_a_broken_history_no_epoch_comes_twice(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as world:
            await join(world)
            key = group_key(GROUP)
            old = await world.store.load(key)
            await join(world, "n")
            new = await world.store.load(key)
            epoch = group_of(world).epoch
            assert await world.store.store.save(key, old, new)  # it has forgotten the second member
            world.broker._host.forks += 1
            world.groups.restore()
            await until(lambda: world.groups.describe(GROUP)[0] == "")
            assert await world.store.load(key) == new
            assert group_of(world).epoch > epoch + 100  # so many may have been told, and lost
            assert (await beat(world, "m", 1)).fault == ""
            assert (await join(world, "o")).epoch > epoch + 100

    asyncio.run(run())


def test_an_empty_group_turns_and_what_it_was_is_not_forgotten(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as world:
            old = await world.form()
            assert await world.commit(3, old) == ""
            assert (await join(world)).fault == "GROUP_ID_NOT_FOUND"
            world.groups.leave(GROUP, [(old.member_id, None)])
            new = await join(world)
            assert (new.fault, new.epoch > old.generation) == ("", True)
            assert (await world.join()).fault == "INCONSISTENT_GROUP_PROTOCOL"
        async with run_groups(tmp_path) as world:
            assert await world.fetch() == 3
            assert (await beat(world, "m", new.epoch)).fault == ""
            assert (await beat(world, "m", LEAVES)).fault == ""
            again = await world.join()
            assert (again.fault, again.generation > new.epoch) == ("", True)
        async with run_groups(tmp_path) as world:
            assert not isinstance(world.groups.describe(GROUP)[1], ConsumerGroup)
            assert (await beat(world, "m", new.epoch)).fault == "GROUP_ID_NOT_FOUND"

    asyncio.run(run())


def test_silent_members_expire_by_themselves(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path, "group.consumer.session.timeout.ms=50") as world:
            await join(world, instance_id="i")
            world.clock.seconds += 1.0
            await until(lambda: not group_of(world).members)
            assert (await beat(world, "m", 1)).fault == "UNKNOWN_MEMBER_ID"
            assert await beat(world, "m", PAUSES, instance_id="i") == Beaten("UNKNOWN_MEMBER_ID")

    asyncio.run(run())


def test_whoever_is_no_member_of_nothing_may_join(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as world:
            assert (await beat(world, "m", 7)).fault == "UNKNOWN_MEMBER_ID"
            assert world.groups.list() == ("", [])
            assert (await join(world)).fault == ""

    asyncio.run(run())


def test_a_deleted_group_has_nobody(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as world:
            await join(world)
            await world.commit(1)
            assert await world.groups.delete(GROUP) == "NON_EMPTY_GROUP"
            await beat(world, "m", LEAVES)
            assert await world.groups.delete(GROUP) == ""
            assert GROUP not in [key.rsplit("/", 1)[1] for key in await world.store.scan("groups-")]
            assert (await join(world)).epoch == 1

    asyncio.run(run())


def test_an_empty_group_without_commits_is_removed_in_time(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as world:
            await join(world)
            await world.groups.expire()
            assert group_of(world).in_use
            await beat(world, "m", LEAVES)
            assert group_of(world).state is GroupState.EMPTY
            await world.groups.expire()
            assert world.groups.list() == ("", [])
            assert await world.store.load(group_key(GROUP)) is None
            assert (await beat(world, "m", 1)).fault == "UNKNOWN_MEMBER_ID"

    asyncio.run(run())


def test_members_whose_answers_wait_for_the_store_are_told_when_it_fails(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as world:
            world.store.hold = asyncio.Event()
            waiting = [join(world, name) for name in ("m", "n", "o")]
            await until(lambda: world.store.saves == 1)
            world.store.refuse = "the disk is gone"
            world.store.hold.set()
            assert {(await one).fault for one in waiting} == {"COORDINATOR_NOT_AVAILABLE"}
            world.store.hold, world.store.refuse = None, ""
            await until(lambda: world.groups.keepers.fault_of(GROUP) == "")
            assert (await join(world)).epoch == 1, "nothing of the first try was told, or stored"

    asyncio.run(run())
