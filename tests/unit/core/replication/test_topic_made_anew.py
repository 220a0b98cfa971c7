"""A topic is deleted and made anew: nobody leads the copy of the deleted one under the new one's name."""

from pathlib import Path

import pytest

from korvet_fast.core.topics.topic import Document
from korvet_fast.store.types import NotLeader
from replicated_scene import ReplicatedScene

KEY = "topics/orders"
ANEW = Document(b"anew".ljust(16, b"\0"), 1, {}, replicas=[[1, 2, 3]])


async def make_anew(scene: ReplicatedScene) -> None:
    store = scene.stores[1]
    assert await store.save(KEY, None, await store.load(KEY))
    assert await store.save(KEY, ANEW.pack(), None)


async def use(scene: ReplicatedScene, log: str) -> None:
    """The new topic's log is led, and copied."""
    for identity in scene.ids:
        await scene.until(lambda identity=identity: log in scene.brokers[identity].replicas.logs)
        await scene.until(lambda identity=identity: scene.replica(log, identity).topic == ANEW.id.hex())
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
