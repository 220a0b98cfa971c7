"""The document of a topic in the metadata log is damaged: brokers start, and keep their copies of the topic."""

from pathlib import Path

from replicated_scene import ReplicatedScene


async def test_the_copies_stay_and_are_copied_again_when_the_document_is_back(tmp_path: Path) -> None:
    async with ReplicatedScene(tmp_path, count=1) as scene:
        damaged, other = await scene.create("damaged", [1]), await scene.create("other", [1])
        for log in (damaged, other):
            await scene.acquire(log, 1)
            await scene.append(log, 1, 3)
        packed = await scene.stores[1].load("topics/damaged")
        assert await scene.stores[1].save("topics/damaged", b"{torn", packed)
        await scene.brokers[1]._log._compact()  # the good document is nowhere
        await scene.stop(1)
        await scene.start(1)
        replicas = scene.brokers[1].replicas
        await scene.until(lambda: other in replicas.logs)
        assert replicas._leftovers == {}
        assert damaged not in replicas.logs
        assert await scene.read(damaged, 1) == await scene.read(other, 1) == [0, 1, 2]
        assert await scene.stores[1].save("topics/damaged", packed, b"{torn")
        await scene.until(lambda: damaged in replicas.logs)
        await scene.acquire(damaged, 1)
        await scene.append(damaged, 1)
        assert await scene.read(damaged, 1) == [0, 1, 2, 3]
