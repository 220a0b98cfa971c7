"""A topic is deleted and made anew: nobody leads the copy of the deleted one under the new one's name."""

from pathlib import Path

import pytest

from korvet_fast.core.replication import replicas
from korvet_fast.core.replication.partition_state import PREFIX, unpack_state
from korvet_fast.core.replication.peers import METADATA_LOG
from korvet_fast.core.topics.topic import Document
from korvet_fast.store.types import NotLeader
from replicated_scene import ReplicatedScene

KEY = "topics/orders"
ANEW = Document(b"anew".ljust(16, b"\0"), 1, {"min.insync.replicas": "2"}, replicas=[[1, 2, 3]])


async def make_anew(scene: ReplicatedScene) -> None:
    store = scene.stores[1]
    await store.drop("orders:0")
    assert await store.save(KEY, None, await store.load(KEY))
    assert await store.save(KEY, ANEW.pack(), None)


async def copy_anew(scene: ReplicatedScene, log: str, *identities: int) -> None:
    """Wait until these brokers have copies of the new topic's log."""
    for identity in identities:
        logs = scene.brokers[identity].replicas.logs
        await scene.until(lambda logs=logs: log in logs and logs[log].topic == ANEW.id.hex())


async def use(scene: ReplicatedScene, log: str) -> None:
    """The new topic's log is led, and copied."""
    await copy_anew(scene, log, *scene.ids)
    await scene.acquire(log, 1)
    await scene.append(log, 1)
    await scene.until(lambda: all(scene.replica(log, identity).end == 1 for identity in scene.ids))
    for identity in scene.ids:
        assert await scene.read(log, identity) == [0]


async def test_a_copy_that_is_to_be_removed_is_not_led(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        log = await scene.create()
        await scene.acquire(log, 1)
        await scene.append(log, 1, 3)
        scene.brokers[1].replicas.note_change(KEY, ANEW.pack())
        with pytest.raises(NotLeader, match="of the topic that was deleted"):
            await scene.brokers[1].replicas.acquire(log, 1)  # before the copy is looked at
        await make_anew(scene)
        await use(scene, log)


async def test_who_has_not_heard_of_the_new_topic_does_not_lead_the_deleted_one_under_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicas, "_PATIENCE", 0.2)
    async with ReplicatedScene(tmp_path) as scene:
        log = await scene.create(replicas=(3, 1, 2))
        await scene.acquire(log, 3)
        await scene.append(log, 3, 3)
        scene.mute.add((3, METADATA_LOG))
        await make_anew(scene)
        assert not await scene.stores[3].is_leader(log)
        with pytest.raises(NotLeader, match="has not copied the last changes of topics"):
            await scene.acquire(log, 3)
        scene.mute.clear()
        await use(scene, log)


async def test_records_of_the_deleted_topic_are_no_copies_of_those_of_the_new_one(tmp_path: Path) -> None:
    """Broker 3 follows the leader of the deleted topic, as it does not know better; the epochs are the same."""
    async with ReplicatedScene(tmp_path) as scene:
        log = await scene.create(min_insync_replicas=2)
        epoch = await scene.acquire(log, 1)
        await scene.append(log, 1, 3)
        scene.mute |= {(2, log), (3, METADATA_LOG)}
        await make_anew(scene)
        await copy_anew(scene, log, 1)
        assert await scene.acquire(log, 1) == epoch
        appended = scene.append(log, 1, 3)
        isr = scene.brokers[1].replicas.find_in_sync
        await scene.until(lambda: appended.done() or isr(log) == {1})
        assert not appended.done(), "the only copy is the leader's"
        scene.mute.clear()
        await appended
        await copy_anew(scene, log, *scene.ids)
        for identity in scene.ids:
            await scene.until(lambda identity=identity: scene.replica(log, identity).end == 3)


async def test_who_has_not_heard_of_the_new_topic_does_not_write_over_its_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicas, "_PATIENCE", 0.2)
    async with ReplicatedScene(tmp_path) as scene:
        log = await scene.create(replicas=(3, 1, 2))
        await scene.acquire(log, 3)
        scene.mute.add((3, METADATA_LOG))
        await make_anew(scene)
        await copy_anew(scene, log, 1, 2)
        assert await scene.appoint(log, 2) == ""
        epoch = scene.replica(log, 2).epochs.last
        for work in (scene.acquire(log, 3), scene.brokers[3].replicas.appoint(log, 1, unclean=False)):
            with pytest.raises(NotLeader):
                await work
        document = await scene.stores[1].load(PREFIX + log)
        assert document is not None
        state = unpack_state(log, document)
        assert (state.topic, state.leader, state.epoch) == (ANEW.id.hex(), 2, epoch)
        scene.mute.clear()
        await scene.append(log, 2)
        await copy_anew(scene, log, 3)
        await scene.until(lambda: scene.replica(log, 3).end == 1)
