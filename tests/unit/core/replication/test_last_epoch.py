"""An epoch is an int32, and each leader's has to have one after it: the last number is nobody's."""

from pathlib import Path

import pytest

from korvet_fast.core.replication.partition_state import unpack_state
from korvet_fast.core.replication.peers import Vote, VoteRequest
from korvet_fast.core.replication.quorum import LogPosition, Promise
from korvet_fast.errors import StoreError
from replicated_scene import ReplicatedScene

LAST = 2**31 - 2  # that a leader may have
REFUSED = "no broker can lead under epoch 2147483647: no other one could lead after it"
AHEAD = LogPosition(LAST, 10**9)


async def test_no_broker_votes_for_it(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        election = scene.brokers[2].election
        before = election.epoch
        for trial in (True, False):
            with pytest.raises(StoreError, match=REFUSED):
                await election.vote(VoteRequest(3, LAST + 1, AHEAD, trial=trial))
        assert election.epoch == before
        await scene.appoint_metadata(2)
        assert await scene.stores[3].save("k/1", b"x", None)


async def test_a_broker_that_says_that_another_one_has_it_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        await scene.copy_metadata()

        async def lie(_: VoteRequest) -> Vote:
            return Vote(Promise(False, LAST + 1, AHEAD), 3, True)

        monkeypatch.setattr(scene.brokers[3].election, "vote", lie)
        election = scene.brokers[2].election
        await election.learn_leader(3, LAST + 1)
        assert election.epoch < LAST
        await scene.appoint_metadata(2)
        assert election.epoch < LAST
        assert await scene.stores[1].save("k/1", b"x", None)


async def test_after_the_last_epoch_a_candidate_says_why_nobody_can_lead(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        election = scene.brokers[2].election
        await election.learn_leader(3, LAST)
        assert (election.leader, election.epoch) == (3, LAST)
        assert await election.become_leader() == REFUSED
        assert election.epoch == LAST


async def test_nobody_leads_a_partition_under_it(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path, count=1) as scene:
        log, store = await scene.create("orders", [1]), scene.stores[1]
        await scene.acquire(log, 1)
        await scene.append(log, 1)
        document = await store.load(f"partitions/{log}")
        assert document is not None
        state = unpack_state(log, document)
        assert await store.save(f"partitions/{log}", state._replace(version=9, epoch=LAST).pack(), document)
        with pytest.raises(StoreError, match=f"{log}: {REFUSED}"):
            await scene.acquire(log, 1)
        assert await store.load(f"partitions/{log}") == state._replace(version=9, epoch=LAST).pack()
