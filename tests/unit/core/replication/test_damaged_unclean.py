"""The key of the metadata log's last unclean election is damaged: what was known of it stays."""

from pathlib import Path

import pytest

from korvet_fast.core.replication.peers import UNCLEAN
from replicated_scene import ReplicatedScene


@pytest.mark.parametrize("damage", [b"x", b"-1", b"\xff", b"9" * 11, b"9" * 5000])
async def test_versions_and_copies_go_on(tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: bytes) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        await scene.copy_metadata()
        await scene.appoint_metadata(2, unclean=True)
        store = scene.stores[3]
        version, epoch = await store.version("k/"), await store.load(UNCLEAN)
        assert version >> 32 == int(epoch or b"0") > 0
        assert await store.save(UNCLEAN, damage, epoch)
        assert await store.version("k/") == version
        log = await scene.create()
        await scene.acquire(log, 1)
        await scene.append(log, 1)
        await scene.isr(log, 1, 1, 2, 3)
    told = [record.getMessage() for record in caplog.records if "unclean" in record.getMessage()]
    assert len(told) == 3, "once at each broker"
    assert not [record for record in caplog.records if record.exc_info], "a sentence, and no traceback"


async def test_a_broker_starts_with_it(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        assert await scene.stores[1].save(UNCLEAN, b"x", None)
        await scene.stop(3)
        await scene.start(3)
        assert await scene.stores[3].save("k/1", b"x", None)
