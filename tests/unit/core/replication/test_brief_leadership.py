"""A leadership that goes away and comes back before the broker has acted on it."""

from pathlib import Path

import pytest

from korvet_fast.core.replication.partition_state import PREFIX
from replicated_scene import ReplicatedScene, open_brokers


async def test_who_leads_again_at_once_leads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two changes of the leader are one look of the reconciler: appends were refused until somebody tried one."""
    scene = ReplicatedScene(tmp_path)
    async with open_brokers(scene, monkeypatch) as brokers:
        await brokers[1].topics.create("orders", 1, {})
        leader = await find_leader(scene)
        replicas, topic = scene.brokers[leader].replicas, brokers[leader].topics.get("orders")
        assert topic is not None
        state = replicas.find_state("orders:0")
        assert state is not None
        replicas.note_change(f"{PREFIX}orders:0", state._replace(leader=leader % 3 + 1).pack())
        replicas.note_change(f"{PREFIX}orders:0", state.pack())
        assert not replicas.leads("orders:0")
        await scene.until(lambda: replicas.leads("orders:0") and topic.partitions[0].leadership.leads)


async def find_leader(scene: ReplicatedScene) -> int:
    """The broker that leads `orders`, as soon as it does and the others have copies."""
    leading: list[int] = []

    def settled() -> bool:
        copies = {identity: one.replicas.logs.get("orders:0") for identity, one in scene.brokers.items()}
        leading[:] = [identity for identity, copy in copies.items() if copy is not None and copy.progress is not None]
        return bool(leading) and not any(copy is None or copy.is_new for copy in copies.values())

    await scene.until(settled)
    return leading[0]
