"""The disk of the metadata log's leader takes nothing: whoever asks is told so, and what to do."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from korvet_fast.core.network_use import NetworkUse
from korvet_fast.core.readiness import find_obstacle
from korvet_fast.errors import StoreError
from korvet_fast.store.interface import OpenedLog
from korvet_fast.store.types import Appending, RecordBatch
from replicated_scene import ReplicatedScene, open_brokers

HELP = "no space left; or have another broker lead @registry: korvet-fast partition lead @registry 0 --broker N"


def break_disk(scene: ReplicatedScene, identity: int, *, flushes: bool = False) -> OpenedLog:
    """A broker's metadata log takes no batch, or (`flushes`) its flushes fail; returns what it was."""
    replica = scene.brokers[identity].metadata_replica
    opened = replica.opened

    def append(batches: Sequence[RecordBatch], *more: Any) -> Appending:
        if not batches:
            return opened.append(batches, *more)
        if not flushes:
            raise StoreError("no space left")
        failed = asyncio.get_running_loop().create_future()
        failed.set_exception(StoreError("no space left", logged=True))
        return Appending(opened.append(batches, *more).stored, failed)

    replica.opened = OpenedLog(append, opened.read)
    return opened


@pytest.mark.parametrize("flushes", [False, True])
async def test_it_does_not_pass_for_the_leader_and_another_one_can_be_named(tmp_path: Path, flushes: bool) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        await scene.copy_metadata()
        first = scene.brokers[1]
        opened = break_disk(scene, 1, flushes=flushes)
        for identity in (1, 2):
            with pytest.raises(StoreError, match=HELP):
                await scene.stores[identity].save(f"k/{identity}", b"x", None)
            assert scene.brokers[identity].registry.failure == HELP
        quorum = first.describe_quorum()
        assert (quorum.leader, quorum.ends[1]) == (-1, -1)
        assert await first.election.become_leader() == "no space left"
        await scene.copy_metadata()  # a candidate that lacks what 3 has copied by now has to be another one
        await scene.appoint_metadata(2)
        assert await scene.stores[3].save("k/3", b"x", None)
        assert scene.brokers[2].describe_quorum().leader == 2
        first.metadata_replica.opened = opened


async def test_it_leads_again_once_there_is_room(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        await scene.copy_metadata()
        first = scene.brokers[1]
        opened = break_disk(scene, 1)
        with pytest.raises(StoreError, match="no space left"):
            await scene.stores[2].save("k/1", b"x", None)
        assert first.describe_quorum().leader == -1
        first.metadata_replica.opened = opened
        assert await scene.stores[2].save("k/1", b"x", None)
        quorum = first.describe_quorum()
        assert (quorum.leader, quorum.ends[1]) == (1, first.metadata_replica.end)
        assert await first.election.become_leader() == ""
        assert scene.brokers[2].registry.failure == ""


async def test_readiness_has_the_cause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = ReplicatedScene(tmp_path)
    async with open_brokers(scene, monkeypatch) as brokers:
        opened = break_disk(scene, 1)
        with pytest.raises(StoreError, match="no space left"):
            await scene.stores[2].save("k/1", b"x", None)
        with monkeypatch.context() as late:
            late.setattr(brokers[2].cluster, "holds_lease", lambda: False)
            late.setattr(brokers[2], "network_use", lambda: NetworkUse(0, 0, 1))
            assert find_obstacle(brokers[2]).endswith(f"broker.session.timeout.ms: {HELP}")
        scene.brokers[1].metadata_replica.opened = opened
