"""Consumer groups with time and storage: nothing is told before it is stored, and nothing told is forgotten."""

import asyncio
import cProfile
from pathlib import Path
from typing import Any

import pytest

from group_broker import GROUP, Groups, run_groups, until
from korvet_fast.core.groups.consumer.group import ConsumerGroup
from korvet_fast.core.groups.consumer.machine import ConsumerGroupState
from korvet_fast.core.groups.consumer.members import LEAVES, PAUSES, HeartbeatRequest, HeartbeatResult
from korvet_fast.core.groups.documents import group_key
from korvet_fast.errors import Errors


def heartbeat(world: Groups, member_id: str, epoch: int, **values: Any) -> "asyncio.Task[HeartbeatResult]":
    return asyncio.create_task(
        world.coordinator.consumer.heartbeat(GROUP, HeartbeatRequest(member_id, epoch, **values))
    )


def join(world: Groups, member_id: str = "m", **values: Any) -> "asyncio.Task[HeartbeatResult]":
    given = {"rebalance_timeout": 30.0, "names": ("t",), "owned": frozenset()}
    return heartbeat(world, member_id, 0, **given | values)


def group_of(world: Groups) -> ConsumerGroup:
    error, group = world.coordinator.groups.describe(GROUP)
    assert error == ""
    assert isinstance(group, ConsumerGroup)
    return group


def test_an_epoch_is_told_when_it_is_stored(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as world:
            world.store.hold = asyncio.Event()
            first = join(world)
            await until(lambda: world.store.saves == 1)
            second = heartbeat(world, "m", 1)  # nothing is new, but what it says is not stored yet
            for _ in range(5):
                await asyncio.sleep(0)
            assert not first.done()
            assert not second.done()
            world.store.hold.set()
            joined = await first
            assert (joined.error, joined.epoch, len(joined.assigned or ())) == ("", 1, 2)
            assert (await second).epoch == 1
            saves = world.store.saves
            assert await heartbeat(world, "m", 1) == HeartbeatResult("", "m", 1, None)
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
            assert group.state is ConsumerGroupState.RECONCILING
            asked = await heartbeat(world, "m", first.epoch, instance_id="i")
            assert (asked.error, asked.epoch, len(asked.assigned or ())) == ("", first.epoch, 1)
            assert (await heartbeat(world, "m", first.epoch, instance_id="i", owned=asked.assigned)).epoch == epoch
            assert len((await heartbeat(world, "n", epoch)).assigned or ()) == 1
            assert group.state is ConsumerGroupState.STABLE
            world.tick(44.0)
            await heartbeat(world, "m", epoch, instance_id="i")
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
            assert refused == HeartbeatResult(
                "COORDINATOR_NOT_AVAILABLE" if failure == "refused" else "NOT_COORDINATOR"
            )
            assert await heartbeat(world, "m", 1) == HeartbeatResult(Errors.COORDINATOR_LOAD_IN_PROGRESS)
            world.store.refuse, world.store.blind, world.store.unreadable = "", False, False
            await until(lambda: world.coordinator.groups.describe(GROUP)[0] == "")
            assert [(one.id, one.epoch) for one in group_of(world).members] == [("m", 1)]
            assert (await heartbeat(world, "m", 1)).error == ""

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
            world.broker.generation.number += 1
            world.coordinator.partitions.restore()
            await until(lambda: world.coordinator.groups.describe(GROUP)[0] == "")
            assert await world.store.load(key) == new
            assert group_of(world).epoch > epoch + 100  # so many may have been told, and lost
            assert (await heartbeat(world, "m", 1)).error == ""
            assert (await join(world, "o")).epoch > epoch + 100

    asyncio.run(run())


def test_an_empty_group_turns_and_what_it_was_is_not_forgotten(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as world:
            old = await world.form()
            assert await world.commit(3, old) == ""
            assert (await join(world)).error == "GROUP_ID_NOT_FOUND"
            world.coordinator.classic.leave(GROUP, [(old.member_id, None)])
            new = await join(world)
            assert (new.error, new.epoch > old.generation) == ("", True)
            assert (await world.join()).error == "INCONSISTENT_GROUP_PROTOCOL"
        async with run_groups(tmp_path) as world:
            assert await world.fetch() == 3
            assert (await heartbeat(world, "m", new.epoch)).error == ""
            assert (await heartbeat(world, "m", LEAVES)).error == ""
            again = await world.join()
            assert (again.error, again.generation > new.epoch) == ("", True)
        async with run_groups(tmp_path) as world:
            assert not isinstance(world.coordinator.groups.describe(GROUP)[1], ConsumerGroup)
            assert (await heartbeat(world, "m", new.epoch)).error == "GROUP_ID_NOT_FOUND"

    asyncio.run(run())


def test_silent_members_expire_by_themselves(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path, "group.consumer.session.timeout.ms=50") as world:
            await join(world, instance_id="i")
            world.clock.seconds += 1.0
            await until(lambda: not group_of(world).members)
            assert (await heartbeat(world, "m", 1)).error == "UNKNOWN_MEMBER_ID"
            assert await heartbeat(world, "m", PAUSES, instance_id="i") == HeartbeatResult(Errors.UNKNOWN_MEMBER_ID)

    asyncio.run(run())


def test_whoever_is_no_member_of_nothing_may_join(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as world:
            assert (await heartbeat(world, "m", 7)).error == "UNKNOWN_MEMBER_ID"
            assert world.coordinator.groups.list() == ("", [])
            assert (await join(world)).error == ""

    asyncio.run(run())


def test_a_deleted_group_has_nobody(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as world:
            await join(world)
            await world.commit(1)
            assert await world.coordinator.groups.delete(GROUP) == "NON_EMPTY_GROUP"
            await heartbeat(world, "m", LEAVES)
            assert await world.coordinator.groups.delete(GROUP) == ""
            assert GROUP not in [key.rsplit("/", 1)[1] for key in await world.store.scan("groups-")]
            assert (await join(world)).epoch == 1

    asyncio.run(run())


def test_an_empty_group_without_commits_is_removed_in_time(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as world:
            await join(world)
            await world.coordinator.offsets.expire()
            assert group_of(world).in_use
            await heartbeat(world, "m", LEAVES)
            assert group_of(world).state is ConsumerGroupState.EMPTY
            await world.coordinator.offsets.expire()
            assert world.coordinator.groups.list() == ("", [])
            assert await world.store.load(group_key(GROUP)) is None
            assert (await heartbeat(world, "m", 1)).error == "UNKNOWN_MEMBER_ID"

    asyncio.run(run())


def test_members_whose_answers_wait_for_the_store_are_told_when_it_fails(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as world:
            world.store.hold = asyncio.Event()
            waiting = [join(world, name) for name in ("m", "n", "o")]
            await until(lambda: world.store.saves == 1)
            world.store.refuse = "the disk is gone"
            world.store.hold.set()
            assert {(await one).error for one in waiting} == {"COORDINATOR_NOT_AVAILABLE"}
            world.store.hold, world.store.refuse = None, ""
            await until(lambda: world.coordinator.partitions.error_of(GROUP) == "")
            assert (await join(world)).epoch == 1, "nothing of the first try was told, or stored"

    asyncio.run(run())


def test_finding_2_15_joining_over_many_partitions_takes_few_steps_for_each(tmp_path: Path) -> None:
    """Counted in calls, as times depend on the machine: it was 36 for each partition."""

    async def run() -> None:
        many = 19_000
        async with run_groups(tmp_path) as world:
            await world.broker.topics.create("large", many, {"durability": "written"})
            profile = cProfile.Profile()
            for number in range(3):  # the first is alone, the others share with it and with each other
                ask = HeartbeatRequest(
                    f"m{number}", 0, rebalance_timeout=30.0, names=("large",), owned=frozenset(), new_member_id=""
                )
                profile.enable()
                answer = await world.coordinator.consumer.heartbeat(GROUP, ask)
                profile.disable()
                assert answer.error == ""
                assert len(answer.assigned or ()) == (many if number == 0 else 0)
            calls = sum(row.callcount for row in profile.getstats())
            assert calls < 10 * many, f"{calls / many:.1f} for each partition"

    asyncio.run(run())
