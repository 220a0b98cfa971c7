"""A server that came back without what brokers had put into its registry, or with an older state of it."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from core_world import SharedWorld, read_all, run_shared, send
from group_broker import until
from korvet_fast.store.types import LeadershipGrant
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


@pytest.mark.parametrize("read", ["version", "scan"])
def test_topics_that_are_read_while_the_history_breaks_are_not_taken_for_deleted(
    read: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read that was under way is answered by the server that has nothing."""

    async def body(world: SharedWorld) -> None:
        topic, topics = world.broker.topics.get("t"), world.broker.topics
        assert topic is not None
        await send(world.partition, b"a")
        await topics.alter(topic, {"retention.ms": "5"})  # there is something to be read
        original = getattr(world.store, read)

        async def break_first(prefix: str) -> object:
            monkeypatch.setattr(world.store, read, original)
            world.server.streams.clear()
            world.server.keys = {}
            world.server.changes["topics/"] += 1
            world.server.change_history("the server came back with another history")
            return await original(prefix)

        monkeypatch.setattr(world.store, read, break_first)
        world.server.changes["topics/"] += 1
        await topics.refresh()
        await become_leader(world)
        assert topics.get("t") is topic
        assert await send(world.partition, b"b") == 1

    over(body)


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
    assert "forgot documents that cannot be written again yet" in caplog.text


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


def test_brokers_that_tell_an_empty_server_of_a_topic_at_once_all_keep_it() -> None:
    """Each of them finds it empty, and one is faster: for the other one the topic is not deleted."""

    async def body(world: SharedWorld) -> None:
        async with run_shared(world.server, "node.id=7") as other:
            both = [each.broker.topics for each in (world, other)]
            before = [topics.get("t") for topics in both]
            assert None not in before
            world.server.keys = {}
            world.server.change_history("the server came back with another history")
            await asyncio.gather(*(topics.refresh() for topics in both))
            assert [topics.get("t") for topics in both] == before

    over(body)


def test_producer_ids_that_are_taken_while_the_history_breaks_are_not_given_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def body(world: SharedWorld) -> None:
        async with run_shared(world.server, "node.id=7") as other:
            known = [await other.broker.new_producer() for _ in range(3)]
            original = world.store.load

            async def break_first(key: str) -> bytes | None:
                found = await original(key)
                if key == "producers":
                    monkeypatch.setattr(world.store, "load", original)
                    world.server.keys = {}
                    world.server.change_history("the server came back with another history")
                return found

            monkeypatch.setattr(world.store, "load", break_first)
            assert await world.broker.new_producer() not in known

    over(body)


@pytest.mark.parametrize("turns", range(24))
def test_a_loss_is_told_once_wherever_a_look_at_the_brokers_meets_the_break(turns: int) -> None:
    """The look may find the broker's record gone before, while, or after it tells the server again what is lost."""

    async def body(world: SharedWorld) -> None:
        await send(world.partition, b"a", b"b")
        epoch = world.partition.leadership.epoch
        looking = asyncio.create_task(world.broker.cluster.poll())
        await asyncio.sleep(0)
        world.server.streams.clear()
        world.server.keys = {}
        world.server.change_history("the server came back with another history")
        for _ in range(turns):
            await asyncio.sleep(0)
        await world.broker.cluster.poll()
        await looking
        await become_leader(world)
        assert await send(world.partition, b"c") == 2
        assert [(loss.first, loss.end) for loss in world.broker.losses] == [(0, 2)]
        assert world.partition.leadership.epoch == epoch + 1000

    over(body)


def test_a_log_that_is_acquired_while_the_history_breaks_is_acquired_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The old server granted it: nobody has to append before the loss is told."""

    async def body(world: SharedWorld) -> None:
        await send(world.partition, b"a", b"b")
        await world.broker.topics.save()  # so that nothing has to be read
        world.partition.leader.resign("for a moment")
        original = world.store.acquire

        async def break_after(*args: Any, **options: Any) -> LeadershipGrant:
            granted = await original(*args, **options)
            monkeypatch.setattr(world.store, "acquire", original)
            world.server.streams.clear()
            world.server.change_history("an older replica took over")
            return granted

        monkeypatch.setattr(world.store, "acquire", break_after)
        await world.partition.leader.become_leader()
        await until(lambda: world.partition.leadership.refusal is None)
        assert [(loss.first, loss.end) for loss in world.broker.losses] == [(0, 2)]
        assert await send(world.partition, b"c") == 2

    over(body)
