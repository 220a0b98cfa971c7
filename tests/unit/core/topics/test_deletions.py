"""Deletions that one broker began, and another one ends."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from core_world import SharedWorld, run_shared, send
from korvet_fast.errors import KorvetError
from shared_store import Server

LAYOUT = {"storage.layout": "batches"}


def over(body: Callable[[SharedWorld, SharedWorld], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        server = Server()
        async with run_shared(server, "node.id=1") as one, run_shared(server, "node.id=2") as other:
            await body(one, other)

    asyncio.run(run())


async def begin_deletion(world: SharedWorld, deleter: str = "") -> None:
    """As a broker does that ends before it has removed anything. Without a `deleter`: one of an earlier version."""
    topic = world.broker.topics.get("t")
    assert topic is not None
    deleting = topic.describe()._replace(deleting=True)
    if deleter:
        deleting = deleting._replace(deleter=deleter)
    assert await world.store.save("topics/t", deleting.pack(), topic.packed)


@pytest.mark.parametrize("known", [True, False])
def test_a_deletion_whose_broker_is_gone_is_ended_by_another_one(known: bool) -> None:
    async def body(one: SharedWorld, other: SharedWorld) -> None:
        topics = other.broker.topics
        await send(await one.create(**{"storage_layout": "batches"}), b"a")
        if known:
            assert await topics.find("t") is not None
        await begin_deletion(one)
        await topics.refresh()
        assert topics.get("t") is None
        with pytest.raises(KorvetError, match="is being deleted"):
            await topics.create("t", 1, LAYOUT)
        await topics.end_deletions()
        assert await other.store.scan("topics/") == {}
        made = await topics.create("t", 1, LAYOUT)
        await other.seize()
        assert await send(made.partitions[0], b"b") == 0

    over(body)


def test_a_deletion_whose_broker_is_there_is_left_to_it() -> None:
    async def body(one: SharedWorld, other: SharedWorld) -> None:
        await send(await one.create(), b"a")
        await begin_deletion(one, deleter=one.broker.cluster.incarnation)
        for world in (other, one):
            await world.broker.topics.refresh()
            assert world.broker.topics.get("t") is None
        await other.broker.topics.end_deletions()
        assert await other.store.scan("topics/") != {}
        await one.broker.topics.end_deletions()
        assert await other.store.scan("topics/") == {}
        await other.broker.topics.end_deletions()
        assert not other.broker.topics._deletions

    over(body)


def test_of_two_brokers_one_ends_a_deletion() -> None:
    async def body(one: SharedWorld, other: SharedWorld) -> None:
        await one.create()
        await begin_deletion(one)
        await one.broker.topics.refresh()
        await other.broker.topics.refresh()
        await asyncio.gather(one.broker.topics.end_deletions(), other.broker.topics.end_deletions())
        for world in (one, other):
            await world.broker.topics.end_deletions()
            assert not world.broker.topics._deletions
        assert await other.store.scan("topics/") == {}

    over(body)
