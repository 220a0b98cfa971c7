"""A save that no follower could copy is refused before anything of it is stored."""

from pathlib import Path

import pytest

from korvet_fast.config import read_settings
from korvet_fast.core.broker import Broker
from korvet_fast.core.replication import peers
from korvet_fast.core.replication.peers import KeyRequest, KeyVerb
from korvet_fast.errors import KorvetError
from korvet_fast.store.types import CompareAndSet
from replicated_scene import ReplicatedScene

LARGE = CompareAndSet("k/large", bytes(33 << 20), None)
TOLD = (
    r"POLICY_VIOLATION: a change of 34,603,071 bytes in @registry, 34,603,039 of them under the key k/large, is too "
    r"large to be copied: 33,554,432 bytes are the limit$"
)


@pytest.mark.parametrize("asked", [1, 2])
async def test_what_is_too_large_is_told_with_its_size_and_the_limit(tmp_path: Path, asked: int) -> None:
    """Broker 1 leads the metadata log; broker 2 asks broker 1."""
    async with ReplicatedScene(tmp_path) as scene:
        store = scene.stores[asked]
        with pytest.raises(KorvetError, match=TOLD):
            await store.save("k/small", b"x", None, LARGE)
        assert await store.scan("k/") == {}
        assert await store.save("k/small", b"y", None)
        await scene.copy_metadata()


async def test_the_leader_believes_no_broker_that_it_has_looked_at_the_size(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path, count=1) as scene:
        request = KeyRequest(KeyVerb.SAVE, changes=(CompareAndSet("k/small", b"x", None), LARGE))
        with pytest.raises(KorvetError, match=TOLD):
            await scene.brokers[1].serve_keys(request)
        assert await scene.stores[1].scan("k/") == {}


async def test_a_topic_that_is_too_large_is_not_created(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = ReplicatedScene(tmp_path, count=1)
    replication = scene.make(1)
    broker = Broker(scene.stores[1], read_settings(["node.id=1"]), replication=replication)
    await broker.open()
    try:
        monkeypatch.setattr(peers, "LARGEST_SAVE", 3_000)
        with pytest.raises(KorvetError, match=r"POLICY_VIOLATION: .* under the key topics/large, is too large"):
            await broker.topics.create("large", 1_000, {})
        assert broker.topics.get("large") is None
        assert len((await broker.topics.create("small", 1, {})).partitions) == 1
    finally:
        await broker.close()
