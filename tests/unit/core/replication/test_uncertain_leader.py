"""A leader that is cut off from the other brokers denies its clients nothing that the next leader may know."""

from pathlib import Path

import pytest

from core_world import send
from korvet_fast.core.replication import metadata_log
from korvet_fast.errors import KorvetError
from replicated_scene import ReplicatedScene, open_brokers


async def test_who_leads_is_asked_also_where_all_records_are_on_all_disks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = ReplicatedScene(tmp_path)
    async with open_brokers(scene, monkeypatch) as brokers:
        topic = await brokers[1].topics.create("t", 1, {"min.insync.replicas": "2"})
        partition = topic.partitions[0]
        await scene.until(lambda: partition.leadership.leads and partition.leadership.refusal is None)
        replica = scene.replica("t:0", 1)
        await send(partition, b"a", producer=(7, 0, 0))
        await scene.copy_metadata()
        await scene.until(lambda: "t:0" in scene.brokers[2].replicas.logs and not scene.replica("t:0", 2).is_new)
        await partition.leader.verify_leadership()
        scene.isolate(1)
        await scene.appoint_metadata(2)
        assert await scene.brokers[2].replicas.appoint("t:0", 2, unclean=False) == ""
        assert replica.end == replica.high_watermark == 1
        with monkeypatch.context() as hasty:
            hasty.setattr(metadata_log, "_PATIENCE", 0.2)
            with pytest.raises(KorvetError, match="NOT_LEADER_OR_FOLLOWER: it is not certain that this broker leads"):
                await partition.leader.verify_leadership()
            with pytest.raises(KorvetError, match="NOT_LEADER_OR_FOLLOWER"):
                await send(partition, b"z", producer=(7, 0, 9))  # out of order, as far as this broker knows
        scene.cut.clear()
        await scene.until(lambda: not partition.leadership.leads)
        (heir,) = [one for topic in brokers[2].topics for one in topic.partitions]
        await scene.until(lambda: heir.leadership.refusal is None)
        await brokers[2].topics.save()  # no broker has anything left to save when it is closed
