"""Three brokers over files: what is safe stays, whoever leads, and the copies become the same again."""

import asyncio
from pathlib import Path

import pytest

from korvet_fast.core import fair_queue
from korvet_fast.core.replication import metadata_log
from korvet_fast.core.replication.peers import EpochRequest, FetchPosition
from korvet_fast.core.topics.topic import Document
from korvet_fast.errors import KorvetError, StoreError
from korvet_fast.store.types import NotLeader, OffsetConflict
from replicated_scene import PATIENCE, ReplicatedScene
from store.record_batches import make_record_batch, up_to


async def test_what_is_acknowledged_is_on_every_disk_in_sync(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        log = await scene.create(min_insync_replicas=2)
        await scene.acquire(log, 1)
        await scene.append(log, 1, 3)
        await scene.append(log, 1, 2)
        for identity in scene.ids:
            assert await scene.read(log, identity) == [0, 1, 2, 3, 4]
        assert (await scene.stores[1].bounds(log)).durable == 5


async def test_who_is_not_named_does_not_become_the_leader(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        log = await scene.create()
        with pytest.raises(NotLeader, match="is to be led by broker 1"):
            await scene.acquire(log, 2)
        with pytest.raises(OffsetConflict):
            scene.stores[2].open_log(log).append((), 0, sync=True)


async def test_a_follower_that_is_away_is_in_sync_no_more_and_comes_back(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        log = await scene.create(min_insync_replicas=2)
        await scene.acquire(log, 1)
        await scene.append(log, 1)
        await scene.stop(3)
        await scene.append(log, 1)  # waits until broker 3 does not count
        assert await scene.read(log, 2) == [0, 1]
        await scene.isr(log, 2, 1, 2)
        await scene.start(3)
        await scene.isr(log, 1, 1, 2, 3)
        assert await scene.read(log, 3) == [0, 1]


async def test_alone_the_leader_acknowledges_nothing(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        log = await scene.create(min_insync_replicas=2)
        await scene.acquire(log, 1)
        await scene.append(log, 1)
        scene.mute = {(2, log), (3, log)}
        waiting = scene.append(log, 1)
        await scene.isr(log, 1, 1)
        why = scene.stores[1].durability_error(log, True, 2)
        assert why is not None
        assert "too few brokers are in sync, 1," in why
        assert not waiting.done()
        assert scene.replica(log, 1).high_watermark == 1


async def test_a_former_leader_truncates_what_nobody_else_has(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        log = await scene.create(min_insync_replicas=2)
        first = await scene.acquire(log, 1)
        lost = await scene.diverge(log)
        assert not lost.done()
        scene.cut.clear()
        with pytest.raises(OffsetConflict):
            await lost
        await scene.isr(log, 2, 1, 2, 3)
        for identity in scene.ids:
            assert await scene.read(log, identity) == [0, 1, 2, 3, 4]
        assert [entry[1] for entry in scene.replica(log, 1).epochs.entries] == [0, 2]
        assert scene.replica(log, 1).epochs.last > first


async def test_who_is_not_in_sync_is_named_only_uncleanly(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        log = await scene.create(min_insync_replicas=2)
        await scene.acquire(log, 1)
        await scene.append(log, 1)
        scene.mute = {(3, log)}
        await scene.append(log, 1, 2)
        why = "broker 3 is not in sync, and would lose records; in sync: 1, 2"
        assert await scene.appoint(log, 3, patience=0) == why
        assert await scene.appoint(log, 3, unclean=True) == ""
        scene.mute.clear()
        await scene.isr(log, 3, 1, 2, 3)
        for identity in scene.ids:
            assert await scene.read(log, identity) == [0]


async def test_who_has_fetched_nothing_yet_is_named_when_he_has(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        scene.mute = {(2, "orders:0")}
        log = await scene.create(min_insync_replicas=1)
        await scene.acquire(log, 1)
        why = await scene.appoint(log, 2, patience=0.05)
        assert why.startswith(
            "broker 2 has copied nothing of orders:0 yet, or its copy is gone; in sync is broker 1 or 3"
        )
        assert scene.replica(log, 1).progress is not None
        appointed = asyncio.ensure_future(scene.appoint(log, 2))
        await asyncio.sleep(0.1)
        assert not appointed.done()
        scene.mute.clear()
        assert await appointed == ""
        await scene.append(log, 2, 3)


async def test_a_broker_whose_disk_is_gone_does_not_become_the_leader(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        log = await scene.create(min_insync_replicas=2)
        await scene.acquire(log, 1)
        await scene.append(log, 1, 2)
        await scene.appoint_metadata(2)
        await scene.isr(log, 1, 1, 2, 3)
        await scene.stop(1)
        (tmp_path / "1").rename(tmp_path / "gone")
        await scene.start(1)
        await scene.until(lambda: log in scene.brokers[1].replicas.logs)
        with pytest.raises(
            StoreError, match="has copied nothing yet, or its copy is gone; in sync is broker 2 or 3, so"
        ):
            await scene.acquire(log, 1)
        assert await scene.appoint(log, 3) == ""
        await scene.until(lambda: scene.replica(log, 1).state.end == 2)
        assert await scene.read(log, 1) == [0, 1]


@pytest.mark.parametrize("asked", [3, 1])
async def test_an_empty_broker_leads_if_somebody_insists(tmp_path: Path, asked: int) -> None:
    """Broker 3 never copied anything; it is named at itself, or at another broker."""
    async with ReplicatedScene(tmp_path) as scene:
        scene.mute = {(3, "orders:0")}
        log = await scene.create(min_insync_replicas=2)
        await scene.acquire(log, 1)
        await scene.append(log, 1, 3)
        await scene.isr(log, 3, 1, 2)
        assert scene.replica(log, 3).is_new
        assert await scene.brokers[asked].replicas.appoint(log, 3, unclean=True) == ""
        await scene.until(lambda: scene.brokers[3].replicas.find_leader(log) == 3)
        scene.mute.clear()
        await scene.acquire(log, 3)
        await scene.isr(log, 3, 1, 2, 3)
        await scene.append(log, 3, 2)
        for identity in scene.ids:
            assert await scene.read(log, identity) == [0, 1]


async def test_who_has_the_only_copy_and_lost_it_leads_again_if_somebody_insists(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        log = await scene.create(replicas=(3,), min_insync_replicas=1)
        for disk in ("first", "second"):
            await scene.acquire(log, 3)
            await scene.append(log, 3, 2)
            await scene.stop(3)
            (tmp_path / "3").rename(tmp_path / disk)
            await scene.start(3)
            await scene.until(lambda: log in scene.brokers[3].replicas.logs)
            with pytest.raises(StoreError, match=r"no other broker is in sync.*name this broker: --broker 3 --unclean"):
                await scene.acquire(log, 3)
            assert not scene.brokers[3].replicas.is_led_by(log, 3)
            why = await scene.brokers[3].replicas.appoint(log, 3, unclean=False)
            assert why.endswith("If nobody has it, name this broker: --broker 3 --unclean")
            assert await scene.brokers[3].replicas.appoint(log, 3, unclean=True) == ""
            await scene.until(lambda: scene.brokers[3].replicas.is_led_by(log, 3))
        await scene.acquire(log, 3)
        assert await scene.read(log, 3) == []
        await scene.append(log, 3, 1)


async def test_others_have_turns_while_a_topic_of_many_partitions_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fair_queue, "SLICE", -1.0)  # as on a slow processor
    async with ReplicatedScene(tmp_path) as scene:
        document = Document(b"many".ljust(16, b"\0"), 50, {}, replicas=[[1]] * 50)
        assert await scene.stores[1].save("topics/many", document.pack(), None)
        replicas = scene.brokers[1].replicas
        await scene.until(lambda: sum(log.startswith("many:") for log in replicas.logs) == 50)
        altered = document._replace(version=1, configs={"segment.bytes": "1000000"})
        assert await scene.stores[1].save("topics/many", altered.pack(), document.pack())
        copying, turns = asyncio.create_task(replicas._copy_topic("many")), 0
        while not copying.done():
            await asyncio.sleep(0)
            turns += 1
        await copying
        assert turns >= 50
        assert {replicas.logs[f"many:{index}"].segment_limits[0] for index in range(50)} == {1_000_000}


async def test_retention_of_the_leader_is_followed(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        log = await scene.create(min_insync_replicas=2)
        await scene.acquire(log, 1)
        for _ in range(4):
            await scene.append(log, 1, 5)
        assert (await scene.stores[1].delete_records(log, 10)).start == 10
        await scene.append(log, 1)
        await scene.until(lambda: scene.replica(log, 2).start == scene.replica(log, 3).start == 10)
        with pytest.raises(KorvetError, match="OFFSET_OUT_OF_RANGE"):
            await scene.stores[1].delete_records(log, 1000)


async def test_retention_goes_on_while_records_are_on_their_way_to_the_followers(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        log = await scene.create(min_insync_replicas=2)
        await scene.acquire(log, 1)
        size = len(make_record_batch(0).data)
        limits = up_to(size)
        for _ in range(4):
            await scene.append(log, 1, limits=limits)
        scene.isolate(1)
        on_their_way = [scene.append(log, 1, limits=limits) for _ in range(3)]
        leader = scene.replica(log, 1)
        assert (leader.high_watermark, leader.end) == (4, 7)
        assert (await scene.stores[1].apply_retention(log, larger_than=5 * size)).start == 2
        await scene.until(lambda: leader.progress is None or leader.progress.end == 7)  # on this broker's disk
        assert (await scene.stores[1].apply_retention(log, larger_than=0, older_than=1 << 50)).start == 4
        assert await scene.read(log, 1) == [4, 5, 6]
        scene.cut.clear()
        await asyncio.gather(*on_their_way)
        assert (await scene.stores[1].apply_retention(log, larger_than=0)).start == 7


async def test_a_follower_too_far_behind_begins_where_the_leader_does(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        log = await scene.create(min_insync_replicas=2)
        await scene.acquire(log, 1)
        await scene.append(log, 1, 3)
        await scene.stop(3)
        for _ in range(3):
            await scene.append(log, 1, 4)
        await scene.stores[1].delete_records(log, 9)  # within a batch, which stays whole
        await scene.start(3)
        await scene.isr(log, 1, 1, 2, 3)
        assert await scene.read(log, 3) == list(range(7, 15))
        assert scene.replica(log, 3).start == 9


async def test_a_deleted_topic_leaves_nothing(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        log = await scene.create()
        await scene.acquire(log, 1)
        await scene.append(log, 1)
        store = scene.stores[2]
        await store.drop(log)
        assert await store.save("topics/orders", None, await store.load("topics/orders"))
        for identity in scene.ids:
            await scene.until(lambda identity=identity: log not in scene.brokers[identity].replicas.logs)
            await scene.until(lambda identity=identity: not (tmp_path / str(identity) / "orders-0").exists())


async def test_a_peer_that_lies_harms_nobody(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        log = await scene.create(min_insync_replicas=2)
        epoch = await scene.acquire(log, 1)
        await scene.append(log, 1, 3)
        leading = scene.brokers[1].leading

        async def ask(follower: int, epoch: int, offset: int, name: str = log) -> str:
            (answer,) = await leading.fetch(follower, [FetchPosition(name, epoch, offset)], 0)
            return str(answer.error)

        assert await ask(2, epoch, 4) == "OFFSET_OUT_OF_RANGE"  # beyond the end
        assert await ask(2, epoch - 1, 3) == "FENCED_LEADER_EPOCH"
        assert await ask(2, epoch + 1, 3) == "UNKNOWN_LEADER_EPOCH"
        assert await ask(9, epoch, 3) == "NOT_LEADER_OR_FOLLOWER"  # no replica
        assert await ask(1, epoch, 3) == "NOT_LEADER_OR_FOLLOWER"  # the leader itself
        assert await ask(2, epoch, 3, "strange:0") == "NOT_LEADER_OR_FOLLOWER"
        assert await ask(2, epoch, 1) == ""  # it goes back
        assert scene.replica(log, 1).high_watermark == 3
        (end,) = leading.find_epoch_ends([EpochRequest(log, epoch - 1, 0)])
        assert end.error == "FENCED_LEADER_EPOCH"


async def test_the_logs_of_a_fetch_take_turns_where_there_is_room_for_one(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        logs = [await scene.create(f"topic{number}") for number in range(3)]
        epochs = [await scene.acquire(log, 1) for log in logs]
        for log in logs:
            await scene.append(log, 1)
        positions = [FetchPosition(log, epoch, 0) for log, epoch in zip(logs, epochs, strict=True)]
        served: list[str] = []
        for _ in range(6):
            answers = await scene.brokers[1].leading.fetch(2, positions, 0, 1)
            served += [answer.log for answer in answers if answer.records]
        assert served == logs * 2


async def test_all_survives_a_restart_of_everybody(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        log = await scene.create(min_insync_replicas=2)
        first = await scene.acquire(log, 1)
        await scene.append(log, 1, 3)
        assert await scene.stores[2].save("some/key", b"1", None)
    async with ReplicatedScene(tmp_path) as scene:
        assert await scene.stores[3].load("some/key") == b"1"
        await scene.until(lambda: log in scene.brokers[1].replicas.logs)
        assert await scene.acquire(log, 1) > first
        await asyncio.wait_for(scene.append(log, 1), 60)
        assert await scene.read(log, 1) == [0, 1, 2, 3]


async def test_a_broker_that_hangs_keeps_nobody_from_leading_the_metadata_log(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        scene.hung = {1}
        async with asyncio.timeout(PATIENCE):
            await scene.appoint_metadata(2)
            await scene.until(lambda: scene.brokers[3].election.leader == 2)
        scene.hung = set()
        await scene.until(lambda: scene.brokers[1].election.leader == 2)


async def test_what_was_deleted_while_a_broker_was_away_is_removed_when_it_comes_back(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        log, kept = await scene.create(min_insync_replicas=2), await scene.create("kept", min_insync_replicas=2)
        for each in (log, kept):
            await scene.acquire(each, 1)
            await scene.append(each, 1)
        await scene.stop(3)
        registry = scene.brokers[1].registry
        assert await registry.save("topics/orders", None, await registry.load("topics/orders"))
        await scene.start(3)
        local = scene.brokers[3].local
        while "replica/orders:0" in await local.scan("replica/"):
            await asyncio.sleep(0.01)
        assert await scene.read(log, 3) == []
        assert await scene.read(kept, 3) == [0]


async def test_who_is_throttled_catches_up_and_is_in_sync_again(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path, "follower.replication.throttled.rate=200") as scene:
        log, other = await scene.create(min_insync_replicas=2), await scene.create("other", min_insync_replicas=2)
        for each in (log, other):
            await scene.acquire(each, 1)
        await scene.append(log, 1)
        scene.mute = {(3, log)}
        await scene.isr(log, 1, 1, 2)
        await scene.append(log, 1)
        await scene.append(log, 1)
        await scene.isr(log, 3, 1, 2)  # before it copies: it is in sync again soon after that
        scene.mute = set()
        copy = scene.replica(log, 3)
        await scene.append(other, 1, 2)
        await scene.until(lambda: scene.replica(other, 3).end == 2)
        await scene.until(lambda: copy.end == 3)
        await scene.isr(log, 1, 1, 2, 3)
        await scene.until(lambda: copy.in_sync)  # broker 3 hears of it as well


async def test_a_former_leader_that_is_cut_off_does_not_take_itself_for_the_leader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It led the metadata log too, so nobody but itself tells it what that says."""
    async with ReplicatedScene(tmp_path) as scene:
        log = await scene.create()
        await scene.acquire(log, 1)
        await scene.append(log, 1)
        assert await scene.stores[1].is_leader(log)
        await scene.copy_metadata()
        await scene.until(lambda: not scene.replica(log, 2).is_new)
        scene.isolate(1)
        await scene.appoint_metadata(2)
        assert await scene.appoint(log, 2) == ""
        with monkeypatch.context() as hasty, pytest.raises(StoreError, match="may be made or not"):
            hasty.setattr(metadata_log, "_PATIENCE", 0.2)
            await scene.stores[1].is_leader(log)
        assert await scene.stores[2].is_leader(log)


@pytest.mark.parametrize("index", [-1, 1])
async def test_nobody_has_copies_of_a_partition_that_there_is_not(tmp_path: Path, index: int) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        await scene.create()
        replicas = scene.brokers[1].replicas
        assert replicas.find_replicas(f"orders:{index}") == ()
        assert replicas.find_state(f"orders:{index}") is None
