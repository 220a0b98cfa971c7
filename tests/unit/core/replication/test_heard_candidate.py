"""A broker hears of a candidate before that one asks for its vote."""

import asyncio
from pathlib import Path

import pytest

from korvet_fast.core.replication.peers import Vote, VoteRequest
from replicated_scene import ReplicatedScene


async def test_it_gets_the_votes_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        await scene.copy_metadata()
        candidate, standing, heard = scene.brokers[2], asyncio.Event(), asyncio.Event()
        peers = candidate._peers
        vote = peers.vote

        async def vote_late(broker: int, request: VoteRequest) -> Vote:
            if not request.trial:
                standing.set()
                await heard.wait()
            return await vote(broker, request)

        monkeypatch.setattr(peers, "vote", vote_late)
        naming = asyncio.create_task(candidate.election.become_leader())
        await standing.wait()
        epoch = candidate.election.epoch
        for identity in (1, 3):
            await scene.brokers[identity].election.ask_who_leads()
        await scene.until(lambda: {broker.election.leader for broker in scene.brokers.values()} == {2})
        heard.set()
        assert await naming == ""
        assert candidate.election.epoch == epoch, "the operator need not try again"
        assert await scene.stores[3].save("k/1", b"x", None)
