"""The document in which a broker names the partitions that it leads."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

from korvet_fast.core.cluster.leader_directory import PREFIX, LeaderDirectory
from korvet_fast.core.fair_queue import BackgroundPace
from korvet_fast.core.generation import MetadataVersion
from shared_store import Server, SharedStore

MANY = 20_000


def make_topic(number: int, *epochs: int) -> Any:
    """A topic with an epoch for each partition; below 0: this broker has never led the partition."""
    partitions = [
        SimpleNamespace(index=index, leadership=SimpleNamespace(leads=epoch >= 0, epoch=epoch))
        for index, epoch in enumerate(epochs)
    ]
    return SimpleNamespace(id=bytes([number]) * 16, partitions=partitions)


async def read(store: SharedStore) -> Any:
    document = await store.load(f"{PREFIX}1")
    assert document is not None
    return json.loads(document)


def test_the_partitions_of_all_topics_are_named_with_their_epochs() -> None:
    async def body() -> None:
        store = SharedStore(Server())
        await LeaderDirectory(store, MetadataVersion()).tell(
            1, [make_topic(1, 3, -1, 4), make_topic(2, -1), make_topic(3, *[7] * 1_200)]
        )
        assert await read(store) == {"01" * 16: {"0": 3, "2": 4}, "03" * 16: {str(index): 7 for index in range(1_200)}}

    asyncio.run(body())


def test_others_have_their_turn_while_many_partitions_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BackgroundPace, "due", lambda _: True)

    async def body() -> None:
        store, metadata = SharedStore(Server()), MetadataVersion()
        directory, topic = LeaderDirectory(store, metadata), make_topic(1, *[7] * MANY)
        turns = 0
        telling = asyncio.ensure_future(directory.tell(1, [topic]))
        while not telling.done():
            await asyncio.sleep(0)
            turns += 1
            if turns == MANY // 1_000:  # some partitions were named already, and others not
                topic.partitions[0].leadership.epoch = 8
                metadata.advance()
        assert turns > MANY // 500
        assert len((await read(store))["01" * 16]) == MANY
        await directory.tell(1, [topic])
        assert (await read(store))["01" * 16]["0"] == 8

    asyncio.run(body())
