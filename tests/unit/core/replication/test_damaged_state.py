"""The state of a partition in the metadata log is damaged: brokers start, and nobody leads it until it is mended."""

from pathlib import Path

import pytest

from korvet_fast.errors import StoreError
from replicated_scene import ReplicatedScene, open_brokers

KEY = "partitions/damaged:0"


@pytest.mark.parametrize("torn", [b"{torn", b"\xff", b"[]", b"{}", b'{"isr": 1}'])
async def test_the_other_partitions_are_led(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, torn: bytes
) -> None:
    scene = ReplicatedScene(tmp_path, count=1)
    async with open_brokers(scene, monkeypatch) as brokers:
        for topic in ("damaged", "other"):
            await brokers[1].topics.create(topic, 1, {})
        await scene.until(lambda: is_led(scene, "damaged:0"))
        packed = await scene.stores[1].load(KEY)
        assert packed is not None
        assert await scene.stores[1].save(KEY, torn, packed)
        await scene.brokers[1]._log._compact()  # the good document is nowhere
    async with open_brokers(scene, monkeypatch):
        await scene.until(lambda: is_led(scene, "other:0"))
        assert await scene.stores[1].load(KEY) == torn
        assert not is_led(scene, "damaged:0")
        with pytest.raises(StoreError, match=f"damaged:0: its state, {KEY} in @registry, is damaged"):
            await scene.brokers[1].replicas.appoint("damaged:0", 1, unclean=False)
        assert await scene.stores[1].save(KEY, packed, torn)
        await scene.until(lambda: is_led(scene, "damaged:0"))
    assert "or the topic is deleted" in caplog.text
    assert not [record for record in caplog.records if record.exc_info], "a sentence, and no traceback"


def is_led(scene: ReplicatedScene, log: str) -> bool:
    """Whether the one broker leads a partition."""
    replica = scene.brokers[1].replicas.logs.get(log)
    return replica is not None and replica.progress is not None
