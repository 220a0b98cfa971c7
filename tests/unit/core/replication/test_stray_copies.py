"""Copies of topics that the metadata log has lost by an unclean election: they are kept under another name."""

import asyncio
from pathlib import Path

import pytest

from korvet_fast.core.replication.peers import METADATA_LOG
from korvet_fast.core.topics.topic import Document
from replicated_scene import ReplicatedScene

LOG, KEY = "orders:0", "topics/orders"
ANEW = Document(b"anew".ljust(16, b"\0"), 1, {}, replicas=[[3, 1]])


async def lose_topic(scene: ReplicatedScene) -> None:
    """A topic with 3 records that broker 2 does not hear of, and that 1 and 3 have copies of; then 1 is away."""
    await scene.copy_metadata()
    scene.mute.add((2, METADATA_LOG))
    await scene.create("orders", (1, 3))
    await fill(scene, LOG, 3)
    await scene.stop(1)
    scene.mute.clear()


async def fill(scene: ReplicatedScene, log: str, count: int) -> None:
    """Broker 1 leads the log, and broker 3 copies it."""
    await scene.acquire(log, 1)
    await scene.append(log, 1, count)
    await scene.until(lambda: scene.replica(log, 3).end == count)


def find_strays(place: Path, identity: int, topic: str = "orders") -> list[Path]:
    return list((place / str(identity)).glob(f"{topic}-0.*-stray"))


async def await_removal(scene: ReplicatedScene, identity: int, log: str = LOG) -> None:
    """Until the broker serves no copy of the log, and knows of none."""
    broker = scene.brokers[identity]
    await scene.until(lambda: log not in broker.replicas.logs)
    while await broker.local.load(f"replica/{log}") is not None:
        await asyncio.sleep(0.01)


async def await_copy(scene: ReplicatedScene, identity: int) -> None:
    """Until the broker has a copy of the new topic's log."""
    logs = scene.brokers[identity].replicas.logs
    await scene.until(lambda: LOG in logs and logs[LOG].topic == ANEW.id.hex())


async def make_anew(scene: ReplicatedScene) -> None:
    """Another topic of the same name, with 1 record."""
    assert await scene.stores[3].save(KEY, ANEW.pack(), None)
    await await_copy(scene, 3)
    await scene.acquire(LOG, 3)
    await scene.append(LOG, 3)


async def test_they_are_set_aside_and_stay_there(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        await lose_topic(scene)
        await scene.appoint_metadata(2, unclean=True)
        await await_removal(scene, 3)
        (stray,) = find_strays(tmp_path, 3)
        assert not (tmp_path / "3" / "orders-0").exists()
        told = (
            "orders:0: its topic is gone from the metadata log, which an unclean election has cut. This broker's copy, "
            f"offsets 0 to 2, is not served any more, and lies in {stray}."
        )
        assert told in caplog.text
        await scene.stop(3)
        await scene.start(3)
        assert await scene.stores[3].scan("topics/") == {}
        await make_anew(scene)
        assert await scene.read(LOG, 3) == [0]
        assert find_strays(tmp_path, 3) == [stray]


async def test_also_by_a_broker_that_was_away(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        await lose_topic(scene)
        await scene.appoint_metadata(2, unclean=True)
        await scene.start(1)
        await await_removal(scene, 1)
        assert len(find_strays(tmp_path, 1)) == 1


async def test_also_where_a_topic_of_the_same_name_is_made_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        await lose_topic(scene)
        copies, heard = scene.brokers[3].replicas, asyncio.Event()
        copy_topic = copies._copy_topic

        async def copy_late(topic: str) -> None:
            await heard.wait()
            await copy_topic(topic)

        monkeypatch.setattr(copies, "_copy_topic", copy_late)
        await scene.appoint_metadata(2, unclean=True)
        assert await scene.stores[2].save(KEY, ANEW.pack(), None)

        def knows() -> bool:
            state = copies.find_state(LOG)
            return state is not None and state.topic == ANEW.id.hex()

        await scene.until(knows)
        heard.set()
        await scene.start(1)  # to this one the new topic is the only one that there ever was
        for identity in (1, 3):
            await await_copy(scene, identity)
            assert await scene.read(LOG, identity) == []
            assert len(find_strays(tmp_path, identity)) == 1


async def test_the_copy_of_a_topic_that_is_deleted_later_is_removed(tmp_path: Path) -> None:
    """Also of one that was there before the election: there is a record of its deletion."""
    async with ReplicatedScene(tmp_path) as scene:
        known = await scene.create("known", (1, 3))
        await fill(scene, known, 1)
        await lose_topic(scene)
        await scene.appoint_metadata(2, unclean=True)
        await await_removal(scene, 3)
        await make_anew(scene)
        for topic in ("known", "orders"):
            packed = await scene.stores[3].load(f"topics/{topic}")
            assert packed is not None
            deleting = Document.unpack(packed)._replace(deleting=True).pack()
            assert await scene.stores[3].save(f"topics/{topic}", deleting, packed)
            assert await scene.stores[3].save(f"topics/{topic}", None, deleting)
            await await_removal(scene, 3, f"{topic}:0")
        assert find_strays(tmp_path, 3, "known") == []
        assert len(find_strays(tmp_path, 3)) == 1


async def test_so_is_one_made_after_the_election_whose_topic_is_deleted_while_its_broker_is_away(
    tmp_path: Path,
) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        await lose_topic(scene)
        await scene.appoint_metadata(2, unclean=True)
        await scene.start(1)
        await await_removal(scene, 3)
        await make_anew(scene)
        await scene.copy_metadata()
        await scene.stop(3)
        assert await scene.stores[2].save(KEY, None, await scene.stores[2].load(KEY))
        await scene.start(3)
        await await_removal(scene, 3)
        assert not (tmp_path / "3" / "orders-0").exists()
        assert len(find_strays(tmp_path, 3)) == 1
