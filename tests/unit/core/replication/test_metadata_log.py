"""The metadata log: one set of keys for all brokers, whoever leads it."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from korvet_fast._native import batch_headers
from korvet_fast.core.background import BackgroundTasks
from korvet_fast.core.generation import StoreGeneration
from korvet_fast.core.registry_reader import RegistryReader
from korvet_fast.core.replication import metadata_log
from korvet_fast.core.replication.metadata_log import MetadataLog
from korvet_fast.core.replication.peers import (
    METADATA_LOG,
    FetchPosition,
    KeyAnswer,
    KeyRequest,
    KeyVerb,
    Vote,
    VoteRequest,
)
from korvet_fast.errors import OutcomeUnknown, StoreError
from korvet_fast.rate_limited_log import RateLimitedLog
from korvet_fast.store.embedded.store import EmbeddedStore
from korvet_fast.store.interface import OpenedLog
from korvet_fast.store.types import Appending, Bounds, CompareAndSet, OffsetConflict, RecordBatch
from replicated_scene import ReplicatedScene


async def test_keys_are_the_same_for_all(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        store = scene.stores[3]
        assert await store.save("a/x", b"1", None, CompareAndSet("a/y", b"2", None))
        assert not await store.save("a/x", b"3", None)
        version = await scene.stores[2].version("a/")
        assert await scene.stores[2].scan("a/") == {"a/x": b"1", "a/y": b"2"}
        assert await scene.stores[1].save("a/x", None, b"1")
        assert await store.load("a/x") is None
        assert await store.version("a/") != version


async def test_one_of_many_that_set_a_key_gets_it(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        works = [store.save("k/1", b"%d" % own, None) for own, store in scene.stores.items() for _ in range(5)]
        assert sum(await asyncio.gather(*works)) == 1


async def test_saves_that_change_nothing_and_come_at_the_same_time_take_two_records_together(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        assert await scene.stores[1].save("k/1", b"x", None)
        log = scene.brokers[1].metadata_replica
        before = log.end
        works = [store.save("k/1", b"x", b"x") for store in scene.stores.values() for _ in range(20)]
        works += [store.save("k/1", b"y", b"y") for store in scene.stores.values()]
        assert sum(await asyncio.gather(*works)) == 60
        assert 1 <= log.end - before <= 4, "a client may ask for ever more of them"
        assert await scene.stores[2].load("k/1") == b"x"


async def test_another_broker_is_named_and_knows_all(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        for number in range(20):
            assert await scene.stores[2].save(f"k/{number}", b"x", None)
        await scene.copy_metadata()
        await scene.stop(1)
        await scene.appoint_metadata(3)
        assert len(await scene.stores[2].scan("k/")) == 20
        assert await scene.stores[2].save("k/0", b"y", b"x")
        await scene.start(1)
        assert scene.brokers[1].election.leader == 3
        assert await scene.stores[1].load("k/0") == b"y"


async def test_without_most_brokers_nobody_is_named(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        await scene.stop(1)
        await scene.stop(2)
        why = await scene.brokers[3].election.become_leader()
        assert why == "only 1 of 3 brokers answer, and more than half are needed"


async def test_a_leader_without_followers_promises_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        await scene.copy_metadata()  # before that, brokers 2 and 3 are new, and their votes do not count without 1
        scene.isolate(1)
        with monkeypatch.context() as hasty, pytest.raises(StoreError, match="may be made or not"):
            hasty.setattr(metadata_log, "_PATIENCE", 0.2)
            await scene.stores[1].save("k/lost", b"1", None)
        chosen = max((2, 3), key=lambda identity: scene.brokers[identity].election.position)
        await scene.appoint_metadata(chosen)
        assert await scene.stores[3].save("k/kept", b"1", None)
        scene.cut.clear()
        await scene.until(lambda: scene.brokers[1].election.leader == chosen)
        assert await scene.stores[1].scan("k/") == {"k/kept": b"1"}


async def test_a_broker_that_starts_while_nothing_can_be_agreed_on_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    async with ReplicatedScene(tmp_path) as scene:
        await scene.copy_metadata()
        await scene.stop(3)
        caplog.clear()
        monkeypatch.setattr(metadata_log, "_PATIENCE", 0.1)
        scene.mute = {(2, METADATA_LOG), (3, METADATA_LOG)}
        asked: list[KeyRequest] = []
        serve = scene.brokers[1].serve_keys

        async def serve_keys(request: KeyRequest) -> KeyAnswer:
            asked.append(request)
            return await serve(request)

        monkeypatch.setattr(scene.brokers[1], "serve_keys", serve_keys)
        starting = asyncio.create_task(scene.start(3))
        await scene.until(lambda: sum(one.verb == KeyVerb.SAVE for one in asked) > 3)  # it asks again and again
        assert not starting.done()
        monkeypatch.setattr(metadata_log, "_PATIENCE", 60.0)
        scene.mute.clear()
        await starting
        assert await scene.stores[3].save("k/1", b"1", None)
    told = [record.getMessage() for record in caplog.records if "waiting for the other brokers" in record.getMessage()]
    assert sum("most brokers do not answer within 0.1 s" in line for line in told) == 1


async def test_a_leader_that_nobody_copies_gives_up_and_follows_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broker 2 gets the votes; then the links break, and broker 3 is named: nobody tells broker 2."""
    async with ReplicatedScene(tmp_path) as scene:
        await scene.copy_metadata()
        scene.mute = {(1, METADATA_LOG), (3, METADATA_LOG)}
        with monkeypatch.context() as hasty, pytest.raises(OutcomeUnknown, match="most brokers do not copy"):
            hasty.setattr(metadata_log, "_PATIENCE", 0.2)
            await scene.appoint_metadata(2)
        assert scene.brokers[3].election.leader == 2
        scene.isolate(2)
        scene.mute.clear()
        await scene.appoint_metadata(3)
        scene.cut.clear()
        await scene.until(lambda: scene.brokers[2].election.leader == 3)
        assert await scene.stores[2].save("k/kept", b"1", None)
        assert [scene.brokers[identity].election.leader for identity in scene.ids] == [3, 3, 3]


async def test_who_loses_to_another_candidate_of_the_same_epoch_follows_that_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Broker 2 stands for an epoch, but asks nobody for a vote before broker 3 has them."""
    caplog.set_level("INFO")
    async with ReplicatedScene(tmp_path) as scene:
        await scene.copy_metadata()
        loser, elected = scene.brokers[2], asyncio.Event()
        vote, standing = loser._peers.vote, asyncio.Event()

        async def vote_late(broker: int, request: VoteRequest) -> Vote:
            if not request.trial:
                standing.set()
                await elected.wait()
                return await vote(broker, request)
            trial = await vote(broker, request)
            if not standing.is_set():
                scene.isolate(2)  # one other's vote is enough to stand, and nobody may hear of the epoch
            return trial

        monkeypatch.setattr(loser._peers, "vote", vote_late)
        losing = asyncio.create_task(loser.election.become_leader())
        await standing.wait()
        epoch = loser.election.epoch
        assert loser.find_leader(METADATA_LOG) == (-1, -1), "nobody voted for it"
        assert loser.describe_quorum().leader == -1
        (answer,) = await loser.leading.fetch(1, [FetchPosition(METADATA_LOG, epoch - 1, 0)], 0)
        assert (answer.leader, answer.epoch) == (-1, -1)
        assert await scene.brokers[3].election.become_leader() == ""
        scene.cut.clear()
        elected.set()
        assert await losing != ""
        await scene.until(lambda: loser.find_leader(METADATA_LOG) == (3, epoch))
        assert await scene.stores[2].save("k/kept", b"1", None)
        await scene.copy_metadata()
        assert {broker.election.epoch for broker in scene.brokers.values()} == {epoch}
    told = [record.getMessage() for record in caplog.records]
    assert told.count(f"this broker leads @registry, the metadata log, under epoch {epoch}") == 1
    assert told.count(f"broker 3 has this one's vote for @registry, epoch {epoch}") == 1


async def test_records_that_could_not_be_written_speak_for_no_candidate(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        await scene.copy_metadata()
        copy, failed = scene.brokers[3].metadata_replica, asyncio.Event()
        opened = copy.opened

        def append(batches: Sequence[RecordBatch], *more: Any) -> Appending:
            if not batches:
                return opened.append(batches, *more)
            failed.set()
            raise StoreError("no space left")

        copy.opened = OpenedLog(append, opened.read)
        await scene.appoint_metadata(2)
        await failed.wait()
        assert scene.brokers[3].election.position < scene.brokers[2].election.position
        assert scene.brokers[3].election.position.epoch < scene.brokers[2].election.epoch
        copy.opened = opened


async def test_who_promises_a_later_epoch_while_it_begins_to_lead_does_not_lead(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path)
    await store.open()
    background = BackgroundTasks(RateLimitedLog(asyncio.get_running_loop().time))
    log = MetadataLog(1, store, lambda key, value: None, background.start)
    await log.open()
    beginning = asyncio.create_task(log.begin_leading(3, (1, 2, 3)))
    await asyncio.sleep(0)
    assert log.replica.progress is None
    log.stop_leading()
    with pytest.raises(OffsetConflict):
        await beginning
    assert log.replica.progress is None
    await store.close()


async def test_what_was_led_is_not_taken_up_again_after_another_broker_was_named(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        await scene.appoint_metadata(2)
        epoch = scene.brokers[2].election.epoch
        assert await scene.brokers[1].election.resume_leading() == ""
        assert await scene.brokers[3].election.resume_leading() == ""
        assert {scene.brokers[identity].election.epoch for identity in scene.ids} == {epoch}
        assert scene.brokers[2].election.leader == 2


async def test_what_is_out_of_date_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_log, "_GARBAGE", 4096)
    async with ReplicatedScene(tmp_path) as scene:
        assert await scene.stores[1].save("k/other", b"stays", None)
        await scene.stop(3)
        before = None
        for number in range(200):
            value = b"%0100d" % number
            assert await scene.stores[2].save("k/1", value, before)
            before = value
        log = scene.brokers[1]._log.replica
        await scene.until(lambda: log.start > 0)
        await scene.start(3)  # it begins where the log does
        await scene.until(lambda: scene.brokers[3]._log.replica.state.end == log.end)
        await scene.stop(1)
        await scene.appoint_metadata(3)
        assert await scene.stores[2].scan("k/") == {"k/1": before, "k/other": b"stays"}


async def compact(scene: ReplicatedScene) -> None:
    """Make so many changes, without broker 3, that the metadata log begins above what broker 3 has."""
    store, before = scene.stores[2], None
    for number in range(200):
        value = b"%0100d" % number
        assert await store.save("k/1", value, before)
        before = value
    await scene.until(lambda: scene.brokers[1].metadata_replica.start > scene.brokers[3].metadata_replica.end)


async def test_a_copy_that_begins_anew_tells_what_is_gone_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata_log, "_GARBAGE", 4096)
    async with ReplicatedScene(tmp_path) as scene:
        gone, kept = await scene.create("gone"), await scene.create("kept")
        for log in (gone, kept):
            await scene.acquire(log, 1)
            await scene.append(log, 1)
            await scene.until(lambda log=log: scene.replica(log, 3).end == 1)
        await scene.copy_metadata()
        copies, copy = scene.brokers[3].replicas, scene.replica(kept, 3)
        told: list[tuple[str, bytes | None]] = []
        tell = scene.brokers[3]._log._on_change

        def note_change(key: str, value: bytes | None) -> None:
            told.append((key, value))
            tell(key, value)

        monkeypatch.setattr(scene.brokers[3]._log, "_on_change", note_change)
        scene.isolate(3)
        store = scene.stores[1]
        await store.drop(gone)
        assert await store.save("topics/gone", None, await store.load("topics/gone"))
        await compact(scene)
        scene.cut.clear()
        await scene.until(lambda: gone not in copies.logs)
        await scene.until(lambda: dict(told).get("k/1") == b"%0100d" % 199)
        assert sorted(key for key, value in told if value is None) == [f"partitions/{gone}", "topics/gone"]
        assert copies.find_state(gone) is None
        assert scene.replica(kept, 3) is copy
        await scene.append(kept, 1)
        await scene.isr(kept, 3, 1, 2, 3)
        assert await scene.read(kept, 3) == [0, 1]


async def test_the_version_of_keys_that_went_before_a_copy_began_anew_is_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata_log, "_GARBAGE", 4096)
    async with ReplicatedScene(tmp_path) as scene:
        assert await scene.stores[2].save("acls/1", b"x", None)
        await scene.copy_metadata()
        seen = await scene.stores[2].version("acls/")
        scene.isolate(3)
        assert await scene.stores[1].save("acls/1", None, b"x")
        await compact(scene)
        scene.cut.clear()
        await scene.copy_metadata()
        await scene.appoint_metadata(3)
        assert await scene.stores[2].scan("acls/") == {}
        assert await scene.stores[2].version("acls/") != seen, "a broker that asks now and then would never read again"


async def test_a_copy_that_is_cut_off_below_what_it_applied_has_the_values_that_are_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        store = scene.stores[1]
        log = await scene.create()
        assert await store.save("k/changed", b"former", None, CompareAndSet("k/gone", b"x", None))
        assert await store.save("acls/1", b"x", None)
        await scene.copy_metadata()
        scene.mute = {(2, METADATA_LOG)}
        assert await store.save("k/changed", b"later", b"former", CompareAndSet("k/gone", None, b"x"))
        assert await store.save("k/lost", b"x", None, CompareAndSet("acls/2", b"x", None))
        cut, copy = scene.brokers[3]._log, scene.replica(log, 3)
        await scene.until(lambda: "k/lost" in cut.values)
        told: list[tuple[str, bytes | None]] = []
        monkeypatch.setattr(cut, "_on_change", lambda key, value: told.append((key, value)))
        await scene.stop(1)
        scene.mute.clear()
        await scene.appoint_metadata(2, unclean=True)
        led = scene.brokers[2]._log
        await scene.until(lambda: cut.replica.end == led.replica.end and cut.values == led.values and not cut._former)
        assert sorted(row for row in told if row[0] not in ("leader", "unclean")) == sorted(
            [("k/changed", b"former"), ("k/gone", b"x"), ("k/lost", None), ("acls/2", None)], key=lambda row: row[0]
        )
        assert scene.replica(log, 3) is copy
        await scene.appoint_metadata(3)
        assert await scene.stores[2].scan("k/") == {"k/changed": b"former", "k/gone": b"x"}
        assert await scene.stores[2].save("k/lost", b"y", None, CompareAndSet("k/changed", b"y", b"former"))


async def test_an_error_of_compaction_is_logged_and_the_next_one_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(metadata_log, "_GARBAGE", 4096)
    async with ReplicatedScene(tmp_path, count=1) as scene:
        failed = asyncio.Event()

        async def delete_records(log: str, start: int) -> Bounds:
            failed.set()
            raise ZeroDivisionError("unforeseen")

        async def change(rule: Callable[[], bool]) -> None:
            before = await scene.stores[1].load("k/1")
            for number in range(1000):
                if rule():
                    return
                value = b"%0100d" % number
                assert await scene.stores[1].save("k/1", value, before)
                before = value

        with monkeypatch.context() as broken:
            broken.setattr(scene.brokers[1].local, "delete_records", delete_records)
            await change(failed.is_set)
        assert failed.is_set()
        log = scene.brokers[1].metadata_replica
        await change(lambda: log.start > 0)
        assert log.start > 0
    assert "background work failed: unforeseen" in caplog.text


async def test_keys_that_go_while_the_log_is_compacted_take_no_others_with_them(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path, count=1) as scene:
        store = scene.stores[1]
        names = [f"gone/{number}" for number in range(5000)]
        rows = [CompareAndSet(name, b"x", None) for name in names]
        assert await store.save("k/first", b"x", None, *rows, CompareAndSet("k/last", b"x", None))
        compacting = asyncio.create_task(scene.brokers[1]._log._compact())
        await asyncio.sleep(0)
        assert await store.save("k/first", b"y", b"x", *[CompareAndSet(name, None, b"x") for name in names])
        await compacting
        assert scene.brokers[1].metadata_replica.start > 0
        await scene.stop(1)
        await scene.start(1)
        assert await scene.stores[1].scan("k/") == {"k/first": b"y", "k/last": b"x"}


async def test_compaction_writes_no_batch_that_is_too_large_for_a_fetch(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path, count=1) as scene:
        for number in range(20):
            assert await scene.stores[1].save(f"k/{number}", bytes(200_000), None)
        log = scene.brokers[1]._log
        await log._compact()
        page = await log.replica.opened.read(log.replica.start, 64 << 20, log.replica.end, copy=True)
        sizes = [batch.size for records in page.data for batch in batch_headers(records, False)]
        assert sum(sizes) > 4_000_000
        assert max(sizes) < 1_000_000


async def test_a_value_that_this_broker_cannot_read_takes_no_other_with_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with ReplicatedScene(tmp_path, count=1) as scene:
        store = scene.stores[1]
        assert await store.save("partitions/orders:0", b'{"later": 1}', None, CompareAndSet("k/1", b"x", None))
        assert await store.load("k/1") == b"x"
    assert "partitions/orders:0: this broker cannot follow the change" in caplog.text


async def test_a_leader_that_is_none_of_the_peers_is_not_followed(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path, count=1) as scene:
        election = scene.brokers[1].election
        await election.learn_leader(9, election.epoch + 1)
        assert election.leader == 1
        assert await scene.stores[1].save("k/1", b"x", None)


async def test_no_version_comes_again_after_an_unclean_election(tmp_path: Path) -> None:
    """Other records get the offsets of the lost ones: who goes by versions would not read them."""
    async with ReplicatedScene(tmp_path) as scene:
        await scene.copy_metadata()
        scene.mute = {(2, METADATA_LOG)}
        for number in range(10):
            assert await scene.stores[1].save(f"k/{number}", b"x", None)
        assert await scene.stores[1].save("acls/lost", b"x", None)
        lost = scene.brokers[1].metadata_replica.end
        reader = RegistryReader(scene.stores[3], StoreGeneration(), "acls/")
        reading = await reader.read()
        assert reading is not None
        reader.mark_seen(reading)
        await scene.stop(1)
        scene.mute.clear()
        await scene.appoint_metadata(2, unclean=True)
        log = scene.brokers[2].metadata_replica
        while log.end < lost - 1:
            assert await scene.stores[2].save(f"k/{log.end}", b"y", None)
        assert await scene.stores[2].save("acls/other", b"x", None)
        assert log.end == lost
        reading = await reader.read()
        assert reading is not None
        assert reading.documents == {"acls/other": b"x"}
