"""A group without members may change its protocol: it does so when a member is let in, and not before."""

import asyncio
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from group_broker import GROUP, Groups, run_groups
from korvet_fast.core.groups.budget import GROUP as GROUP_SIZE
from korvet_fast.core.groups.consumer.members import LEAVES, HeartbeatRequest
from korvet_fast.core.groups.text.group import TextJoin
from korvet_fast.errors import NONE, Errors


async def join(world: Groups, protocol: str) -> Any:
    """A client asks to join by this protocol; the answer."""
    if protocol == "classic":
        return await world.join()
    if protocol == "text":
        return await world.coordinator.text.join(GROUP, TextJoin("m", "t", 2, None, "host"))
    asked = HeartbeatRequest("m", 0, rebalance_timeout=30.0, names=("t",), owned=frozenset())
    return await world.coordinator.consumer.heartbeat(GROUP, asked)


async def leave(world: Groups, protocol: str, joined: Any) -> None:
    """The member leaves."""
    if protocol == "classic":
        world.coordinator.classic.leave(GROUP, [(joined.member_id, None)])
    elif protocol == "text":
        assert not (await world.coordinator.text.leave(GROUP, "t", "m", joined.generation)).error
    else:
        assert not (await world.coordinator.consumer.heartbeat(GROUP, HeartbeatRequest("m", LEAVES))).error


@pytest.mark.parametrize(("former", "latter"), [*permutations(("classic", "consumer", "text"), 2)])
def test_a_refused_join_leaves_the_group_as_it_was(tmp_path: Path, former: str, latter: str) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as world:
            await leave(world, former, await join(world, former))
            assert await world.commit(5) == NONE
            error, group = world.coordinator.groups.describe(GROUP)
            assert error == NONE
            budget = world.coordinator.partitions.runtimes.budget
            room, budget.group_bytes = budget.group_bytes, 0
            assert (await join(world, latter)).error == Errors.GROUP_MAX_SIZE_REACHED
            assert world.coordinator.groups.describe(GROUP) == (NONE, group)
            assert await world.fetch() == 5
            budget.group_bytes = room
            assert not (await join(world, latter)).error
            assert type(world.coordinator.groups.describe(GROUP)[1]) is not type(group)
            assert await world.fetch() == 5

    asyncio.run(run())


@pytest.mark.parametrize("protocol", ["classic", "consumer", "text"])
def test_a_refused_join_makes_no_group(tmp_path: Path, protocol: str) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as world:
            budget = world.coordinator.partitions.runtimes.budget
            budget.all_bytes = budget.used + GROUP_SIZE + 1  # room for a group, and none for its member
            assert (await join(world, protocol)).error == Errors.COORDINATOR_NOT_AVAILABLE
            assert world.coordinator.groups.list() == (NONE, [])

    asyncio.run(run())
