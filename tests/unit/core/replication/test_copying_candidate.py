"""An operator names a broker that still copies from the present leader, with the third one away."""

import asyncio
from pathlib import Path

import pytest

from korvet_fast.core.replication import election
from korvet_fast.core.replication.peers import METADATA_LOG, Vote, VoteRequest
from korvet_fast.core.replication.quorum import LogPosition, Promise, explain_defeat
from replicated_scene import PATIENCE, ReplicatedScene


async def begin_naming(scene: ReplicatedScene, monkeypatch: pytest.MonkeyPatch) -> "asyncio.Task[str]":
    """Broker 1, which leads, has a record that broker 2 lacks; broker 2 is named, and has asked it for its vote."""
    await scene.copy_metadata()
    scene.isolate(3)
    scene.mute = {(2, METADATA_LOG)}
    before = scene.brokers[1].metadata_replica.end
    saving = asyncio.create_task(scene.stores[1].save("k/1", b"x", None))
    saving.add_done_callback(lambda done: done.cancelled() or done.exception())
    await scene.until(lambda: scene.brokers[1].metadata_replica.end > before)
    voter, refused = scene.brokers[1].election, asyncio.Event()
    vote = voter.vote

    async def tell(request: VoteRequest) -> Vote:
        answer = await vote(request)
        if not answer.promise.granted:
            refused.set()
        return answer

    monkeypatch.setattr(voter, "vote", tell)
    naming = asyncio.create_task(scene.brokers[2].election.become_leader())
    await refused.wait()
    return naming


async def test_it_leads_once_it_has_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(election, "_CATCH_UP", PATIENCE)
    async with ReplicatedScene(tmp_path) as scene:
        naming = await begin_naming(scene, monkeypatch)
        scene.mute.clear()
        assert await naming == ""
        scene.cut.clear()
        await scene.until(lambda: scene.brokers[3].election.leader == 2)


async def test_it_says_in_the_end_what_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(election, "_CATCH_UP", 0.3)
    async with ReplicatedScene(tmp_path) as scene:
        naming = await begin_naming(scene, monkeypatch)
        assert (await naming).startswith("broker 1 has 1 record of the metadata log that this one lacks")
        scene.cut.clear()
        scene.mute.clear()


async def test_what_it_copies_while_it_asks_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(election, "_CATCH_UP", PATIENCE)
    async with ReplicatedScene(tmp_path) as scene:
        await scene.copy_metadata()
        scene.isolate(3)
        candidate, asked = scene.brokers[2].election, list[VoteRequest]()
        peers = scene.brokers[2]._peers
        vote = peers.vote

        async def vote_late(broker: int, request: VoteRequest) -> Vote:
            answer = await vote(broker, request)
            if not asked:
                asked.append(request)
                assert await scene.stores[1].save("k/1", b"x", None)
                await scene.until(lambda: candidate.position > request.position)
            return answer

        monkeypatch.setattr(peers, "vote", vote_late)
        assert await candidate.become_leader() == ""
        assert asked[0].trial
        scene.cut.clear()


def test_records_are_counted() -> None:
    own, promises = LogPosition(3, 10), {1: Promise(False, 4, LogPosition(3, 11))}
    assert "has 1 record of" in explain_defeat(promises, 3, own)
    promises[1] = Promise(False, 4, LogPosition(3, 12))
    assert "has 2 records of" in explain_defeat(promises, 3, own)
