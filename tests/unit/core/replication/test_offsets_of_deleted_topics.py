"""Committed offsets of a topic that is deleted while another broker becomes the metadata log's leader."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeAlias

import pytest

from korvet_fast.core.broker import Broker
from korvet_fast.core.groups.documents import OffsetAndMetadata, TopicPartition, offset_key
from korvet_fast.core.groups.offsets import Offsets
from replicated_scene import PATIENCE, ReplicatedScene, open_brokers

T = TopicPartition("t", 0)
GROUPS = [f"group-{number}" for number in range(20)]
Answer: TypeAlias = tuple[str, Mapping[TopicPartition, OffsetAndMetadata]]  # an error, or "", and what is committed
Request: TypeAlias = Callable[[Offsets], Awaitable[Answer]]
RETRIABLE = {"NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS"}


def find_coordinator(brokers: dict[int, Broker], group: str) -> Broker | None:
    found = [each for each in brokers.values() if not each.groups.partitions.error_of(group)]
    return found[0] if len(found) == 1 else None


async def ask(brokers: dict[int, Broker], group: str, request: Request) -> Mapping[TopicPartition, OffsetAndMetadata]:
    """What its coordinator answers, which is asked for again as clients do while it moves."""
    async with asyncio.timeout(PATIENCE):
        while True:
            if (coordinator := find_coordinator(brokers, group)) is not None:
                error, answer = await request(coordinator.groups.offsets)
                if error == "":
                    return answer
                assert error in RETRIABLE
            await asyncio.sleep(0.01)


async def commit(brokers: dict[int, Broker], offset: int) -> None:
    """For each group."""
    for group in GROUPS:

        async def request(offsets: Offsets, group: str = group) -> Answer:
            answer = await offsets.commit(group, "", None, -1, {T: OffsetAndMetadata(offset)})
            assert answer.keys() == {T}
            return answer[T], {}

        await ask(brokers, group, request)


async def fetch(brokers: dict[int, Broker]) -> set[int]:
    """What is committed."""
    found: set[int] = set()
    for group in GROUPS:
        committed = await ask(brokers, group, lambda offsets, group=group: offsets.fetch(group, [T]))
        found.update(each.offset for each in committed.values())
    return found


async def test_a_topic_made_anew_has_none_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = ReplicatedScene(tmp_path)
    async with open_brokers(scene, monkeypatch) as brokers:
        for broker in brokers.values():
            await scene.until(lambda broker=broker: len(broker.cluster.members) == 3)
        topic = await brokers[2].topics.create("t", 1, {})
        for broker in brokers.values():
            await broker.topics.refresh()
        await commit(brokers, 7)
        assert await fetch(brokers) == {7}
        await scene.copy_metadata()
        dropping, moved = asyncio.Event(), asyncio.Event()
        drop = scene.stores[2].drop

        async def drop_late(log: str) -> None:
            dropping.set()
            await moved.wait()
            await drop(log)

        monkeypatch.setattr(scene.stores[2], "drop", drop_late)
        deleting = asyncio.create_task(brokers[2].topics.delete(topic))
        await dropping.wait()
        await scene.copy_metadata()
        await scene.appoint_metadata(3)
        moved.set()
        await deleting
        anew = await brokers[1].topics.create("t", 1, {})
        assert anew.id != topic.id
        for broker in brokers.values():
            await broker.topics.refresh()
        assert await fetch(brokers) == set()
        async with asyncio.timeout(PATIENCE):
            while [key for group in GROUPS if await scene.stores[1].load(key := offset_key(group, T))]:
                for broker in brokers.values():  # a group may be nobody's for a moment
                    await broker.groups.expire()
        await commit(brokers, 1)
        assert await fetch(brokers) == {1}
