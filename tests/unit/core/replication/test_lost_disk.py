"""A broker comes back with an empty directory: what it had promised and stored is not taken for given away."""

import asyncio
import logging
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from korvet_fast.core.replication.peers import FetchedLog, FetchPosition, NotCarriedOut, split_qualified
from replicated_scene import ReplicatedScene, open_brokers


async def lose_disk(scene: ReplicatedScene, place: Path, identity: int) -> None:
    """The broker ends, and all of its files are gone."""
    await scene.stop(identity)
    shutil.rmtree(place / str(identity))


async def test_with_one_that_was_behind_nobody_is_named_before_the_third_is_back(tmp_path: Path) -> None:
    """1 and 2 shrink the ISR without 3, and acknowledge. 2 loses its disk, 1 is away: 3 does not know of any of it."""
    async with ReplicatedScene(tmp_path) as scene:
        log = await scene.create()
        await scene.acquire(log, 1)
        await scene.append(log, 1)
        await scene.copy_metadata()
        scene.isolate(3)
        await scene.isr(log, 1, 1, 2)
        await scene.append(log, 1, 5)  # acknowledged by 1 and 2
        await scene.stop(1)
        await lose_disk(scene, tmp_path, 2)
        scene.cut = set()
        opening = scene.begin(2)
        why = ""
        while "only 1 of 3" in (why := await scene.brokers[3].election.become_leader()) or not why:
            assert why, "3 leads, and knows nothing of the records"
        assert why.startswith("broker 2 began with an empty directory, and does not count")
        await scene.start(1)
        await opening
        await scene.until(lambda: scene.brokers[1].replicas.find_leader(log) == 1)
        await scene.acquire(log, 1)
        await scene.isr(log, 1, 1, 2, 3)
        assert await scene.read(log, 1) == await scene.read(log, 3) == list(range(6))
        await scene.until(lambda: not scene.brokers[2].metadata_replica.is_new)


async def test_it_is_named_all_the_same_if_somebody_insists(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        await scene.copy_metadata()
        await scene.stop(1)
        await lose_disk(scene, tmp_path, 2)
        opening = scene.begin(2)
        await scene.appoint_metadata(3, unclean=True)
        await opening
        assert await scene.stores[2].save("k", b"1", None)
        assert not scene.brokers[2].metadata_replica.is_new


async def test_a_lost_disk_among_whole_brokers_is_copied_anew(tmp_path: Path) -> None:
    """Also of the broker that led: the two others are most brokers."""
    async with ReplicatedScene(tmp_path) as scene:
        assert await scene.stores[2].save("k", b"1", None)
        await scene.copy_metadata()
        await lose_disk(scene, tmp_path, 1)
        await scene.appoint_metadata(3)
        await scene.start(1)
        assert await scene.stores[1].load("k") == b"1"
        await scene.until(lambda: not scene.brokers[1].metadata_replica.is_new)
        await scene.stop(2)
        await scene.stop(3)
        await scene.start(3)
        assert await scene.stores[1].save("k", b"2", b"1"), "1 has copied all, and counts again"


async def test_a_part_of_a_partition_is_not_taken_for_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1 led before, and does not know at first what it acknowledged then; 3 is in sync, and lost its disk."""
    async with ReplicatedScene(tmp_path, "replica.lag.timeout=60000") as scene:
        log = await scene.create(min_insync_replicas=2)
        await scene.acquire(log, 1)
        for _ in range(3):
            await scene.append(log, 1)
        await scene.copy_metadata()
        await scene.stop(1)
        await lose_disk(scene, tmp_path, 3)
        await scene.start(1, 3)
        leading, given, again = scene.brokers[1].leading, 0, asyncio.Event()
        fetch = leading.fetch

        async def fetch_one_batch(follower: int, asked: Sequence[FetchPosition], wait_ms: int) -> list[FetchedLog]:
            nonlocal given
            if follower != 3 or log not in (split_qualified(one.log)[0] for one in asked):
                return await fetch(follower, asked, wait_ms)
            if given:
                again.set()
                raise NotCarriedOut("no more is told")
            answers = await fetch(follower, asked, wait_ms, 1)
            given += sum(bool(answer.records) for answer in answers)
            return answers

        monkeypatch.setattr(leading, "fetch", fetch_one_batch)
        await scene.acquire(log, 1)
        await again.wait()
        assert scene.replica(log, 3).end == 1
        why = await scene.brokers[3].replicas.appoint(log, 3, unclean=False)
        assert why.endswith("in sync is broker 1 or 2, so name that: korvet-fast partition lead orders 0 --broker 1")


async def test_who_lost_the_disk_does_not_say_that_it_leads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither in its log nor to clients: who runs the brokers sees that nobody leads, and names another one."""
    scene = ReplicatedScene(tmp_path)
    async with open_brokers(scene, monkeypatch) as brokers:
        await brokers[1].topics.create("orders", 1, {})
        await scene.until(lambda: all("orders:0" in one.replicas.logs for one in scene.brokers.values()))
        await scene.until(lambda: not any(scene.replica("orders:0", one).is_new for one in scene.ids))
        state = scene.brokers[1].replicas.find_state("orders:0")
        assert state is not None
        lost, other = state.leader, state.leader % 3 + 1
        await scene.appoint_metadata(other)
        await scene.copy_metadata()
    shutil.rmtree(tmp_path / str(lost))
    caplog.set_level(logging.INFO)
    caplog.clear()
    async with open_brokers(scene, monkeypatch) as brokers:
        await scene.until(lambda: "orders:0: this broker has copied nothing yet, or its copy is gone" in caplog.text)
        for broker in brokers.values():  # the others read what it led before, until it has written that it does not
            await scene.until(lambda broker=broker: broker.find_leader(broker.topics.get("orders"), 0)[0] == -1)
        assert "leads 1 partition" not in caplog.text
        assert await scene.brokers[other].replicas.appoint("orders:0", other, unclean=False) == ""
        for broker in brokers.values():
            await scene.until(lambda broker=broker: broker.find_leader(broker.topics.get("orders"), 0)[0] == other)
