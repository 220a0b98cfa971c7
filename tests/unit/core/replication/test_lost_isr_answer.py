"""The answer to a change of the in-sync replicas is lost: whoever may lead has all that was acknowledged (KIP-497)."""

import asyncio
from pathlib import Path

import pytest

from korvet_fast.core.replication.partition_state import PREFIX, unpack_state
from korvet_fast.core.replication.registry import Registry
from korvet_fast.errors import OutcomeUnknown
from korvet_fast.store.types import CompareAndSet
from replicated_scene import ReplicatedScene

LAG = 0.4  # seconds, replica.lag.timeout of the scene


class LostAnswer:
    """The change that makes all three in sync is made, and its answer lost; `again` lets the leader ask once more.

    `short`: members that were in sync in the metadata log without all that was acknowledged.
    """

    def __init__(self, scene: ReplicatedScene, log: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lost, self.again, self.repeated = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.short: list[int] = []
        self._asked_again = False
        self._scene, self._log = scene, log
        self._save, self._load = Registry.save, Registry.load
        monkeypatch.setattr(Registry, "save", lambda *arguments: self.save(*arguments))
        monkeypatch.setattr(Registry, "load", lambda *arguments: self.load(*arguments))

    async def save(
        self, registry: Registry, key: str, value: bytes | None, expected: bytes | None, *others: CompareAndSet
    ) -> bool:
        done = await self._save(registry, key, value, expected, *others)
        if key != PREFIX + self._log or value is None or not done:
            return done
        isr = unpack_state(self._log, value).isr
        safe = self._scene.replica(self._log, 1).high_watermark
        self.short += [member for member in isr if self._scene.replica(self._log, member).end < safe]
        if isr != (1, 2, 3):
            return done
        if self.lost.is_set():
            self.repeated.set()
            return done
        self.lost.set()
        raise OutcomeUnknown("the answer was lost")

    async def load(self, registry: Registry, key: str) -> bytes | None:
        if key == PREFIX + self._log and self.lost.is_set() and not self._asked_again:
            self._asked_again = True
            await self.again.wait()
        return await self._load(registry, key)


async def test_a_change_whose_answer_was_lost_is_not_repeated_over_a_later_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        log = await scene.create(min_insync_replicas=2)
        await scene.acquire(log, 1)
        scene.mute.add((3, log))
        await scene.append(log, 1)
        await scene.isr(log, 1, 1, 2)
        answer = LostAnswer(scene, log, monkeypatch)
        scene.mute.clear()
        await answer.lost.wait()
        await scene.isr(log, 1, 1, 2, 3)
        scene.mute.add((3, log))
        appended = scene.append(log, 1)
        await asyncio.wait([appended], timeout=3 * LAG)  # until broker 3 may be taken out, were that allowed by now
        answer.again.set()
        await answer.repeated.wait()
        await appended
        await scene.isr(log, 1, 1, 2)
        assert not answer.short
        scene.mute.clear()
        await scene.isr(log, 1, 1, 2, 3)
