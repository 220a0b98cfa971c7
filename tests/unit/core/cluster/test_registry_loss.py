"""A server that came back without what brokers had put into its registry, or with an older state of it."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from core_world import SharedWorld, read_all, run_shared, send
from shared_store import Server

DENSE = {"storage_layout": "batches"}


def over(body: Callable[[SharedWorld], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        async with run_shared(Server()) as world:
            await world.create(**DENSE)
            await body(world)

    asyncio.run(run())


async def forget(world: SharedWorld, keys: dict[str, bytes]) -> None:
    """The server lost its streams, and has this registry."""
    world.server.streams.clear()
    world.server.keys = keys
    world.server.change_history("the server came back with another history")
    await world.broker._restore()


async def come_back(world: SharedWorld, keys: dict[str, bytes]) -> None:
    """The same, and the broker, which is the only one, leads again."""
    await forget(world, keys)
    await become_leader(world)


async def become_leader(world: SharedWorld) -> None:
    """Until the broker, which the server does not know either, is back and leads the partition again."""
    while not world.partition.leadership.leads or world.partition.leadership.refusal is not None:
        await world.broker._retry_failed()
        await asyncio.sleep(0.01)


def test_an_empty_server_is_told_again_and_offsets_go_on(caplog: pytest.LogCaptureFixture) -> None:
    async def body(world: SharedWorld) -> None:
        topic, partition = world.broker.topics.get("t"), world.partition
        await send(partition, b"a", b"b")
        known = [await world.broker.new_producer() for _ in range(3)]
        await come_back(world, {})
        assert world.broker.topics.get("t") is topic
        assert await send(partition, b"c") == 2
        assert await read_all(partition, 2) == [b"c"]
        async with run_shared(world.server, "node.id=7") as other:
            assert other.broker.cluster_id == world.broker.cluster_id
            assert (await other.broker.topics.auto_create("t")).packed == (topic and topic.packed)
            new = [await other.broker.new_producer() for _ in range(3)]
            assert not set(new) & set(known)
        assert await world.broker.new_producer() not in known

    over(body)
    assert "topic t: the store had forgotten it" in caplog.text


def test_an_older_registry_does_not_take_changes_back() -> None:
    async def body(world: SharedWorld) -> None:
        topics, topic = world.broker.topics, world.broker.topics.get("t")
        assert topic is not None
        older = dict(world.server.keys)
        await topics.grow(topic, 3)
        await topics.alter(topic, {"retention.ms": "5"})
        await topics.create("later", 1, {})
        await come_back(world, older)
        assert (len(topic.partitions), topic.config.retention_ms) == (3, 5)
        async with run_shared(world.server, "node.id=7") as other:
            found = other.broker.topics.get("t")
            assert found is not None
            assert (len(found.partitions), found.config.retention_ms) == (3, 5)
            assert other.broker.topics.get("later") is not None

    over(body)


def test_changes_that_others_made_after_the_break_are_kept() -> None:
    async def body(world: SharedWorld) -> None:
        async with run_shared(world.server, "node.id=7") as other:
            found = other.broker.topics.get("t")
            assert found is not None
            await other.broker.topics.alter(found, {"retention.ms": "5"})
            await forget(world, world.server.keys)
            topic = world.broker.topics.get("t")
            assert topic is not None
            assert topic.config.retention_ms == 5
            assert topic.packed == found.packed

    over(body)


def test_a_server_that_is_not_there_yet_is_told_later(caplog: pytest.LogCaptureFixture) -> None:
    async def body(world: SharedWorld) -> None:
        world.server.down = True
        world.server.keys = {}
        world.server.change_history("the server came back with another history")
        await world.broker._restore()
        world.server.down = False
        await become_leader(world)
        assert "topics/t" in world.server.keys
        assert await send(world.partition, b"a") == 0

    over(body)
    assert "cannot be told yet" in caplog.text


@pytest.mark.parametrize("turns", range(4))
def test_a_topic_is_deleted_while_the_history_breaks(turns: int) -> None:
    """The deletion has to be over before it is known what is ours, and a log that waits for that is dropped."""

    async def body(world: SharedWorld) -> None:
        await world.broker.topics.create("other", 1, {})
        topic = world.broker.topics.get("t")
        assert topic is not None
        deleting = asyncio.create_task(world.broker.topics.delete(topic))
        for _ in range(turns):
            await asyncio.sleep(0)
        world.server.change_history("the server was restarted")
        await asyncio.wait_for(deleting, 120)
        assert world.broker.recovery_queue.gate is not None
        await asyncio.wait_for(world.broker.recovery_queue.gate, 120)
        assert "t:0" not in world.server.streams

    over(body)
