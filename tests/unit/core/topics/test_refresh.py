"""Topics that another broker of the same store made, changed and deleted."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from core_world import SharedWorld, run_shared, send
from korvet_fast.core import fair_queue
from korvet_fast.core.fetch.delayed_fetch import DelayedFetch
from korvet_fast.core.topics.mutation_quota import MutationQuota
from korvet_fast.errors import KorvetError, StoreError
from shared_store import Server


def over(body: Callable[[SharedWorld, SharedWorld], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        server = Server()
        async with run_shared(server, "node.id=1") as one, run_shared(server, "node.id=2") as other:
            await body(one, other)

    asyncio.run(run())


def test_a_topic_another_broker_made_is_found_by_its_name() -> None:
    async def body(one: SharedWorld, other: SharedWorld) -> None:
        made = await one.broker.topics.create("t", 3, {"retention.ms": "5", "storage.layout": "batches"})
        assert other.broker.topics.get("t") is None
        version = other.broker.topics.version
        found = await other.broker.topics.find("t")
        assert found is not None
        assert (found.id, len(found.partitions), found.config.log_format) == (made.id, 3, made.config.log_format)
        assert found.config.overrides == {"retention.ms": "5"}
        assert other.broker.topics.version > version
        assert await other.broker.topics.find("u") is None
        assert await other.broker.topics.auto_create("t") is found

    over(body)


def test_changes_are_followed() -> None:
    async def body(one: SharedWorld, other: SharedWorld) -> None:
        topics = one.broker.topics
        made = await topics.create("t", 1, {})
        found = await other.broker.topics.find("t")
        assert found is not None
        await topics.alter(made, {"retention.ms": "7"})
        await topics.grow(made, 4)
        await other.broker.topics.refresh()
        assert (found.config.retention_ms, len(found.partitions)) == (7, 4)
        assert [partition.config.retention_ms for partition in found.partitions] == [7] * 4
        # And back: a change is made from what is there, not from what was known.
        await other.broker.topics.alter(found, lambda: {**found.config.overrides, "max.message.bytes": "9"})
        await topics.refresh()
        assert made.config.overrides == {"retention.ms": "7", "max.message.bytes": "9"}

    over(body)


def test_others_have_turns_while_the_partitions_of_a_topic_are_made_and_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fair_queue, "SLICE", -1.0)  # as on a slow processor

    async def refresh(world: SharedWorld) -> int:
        """How many turns others have meanwhile."""
        refreshing, turns = asyncio.create_task(world.broker.topics.refresh()), 0
        while not refreshing.done():
            await asyncio.sleep(0)
            turns += 1
        await refreshing
        return turns

    async def body(one: SharedWorld, other: SharedWorld) -> None:
        topics = one.broker.topics
        few = await topics.create("few", 1, {})
        least = await refresh(other)
        many = await topics.create("many", 1000, {})
        assert await refresh(other) > least + 10
        await topics.grow(many, 2000)
        assert await refresh(other) > least + 10
        found = other.broker.topics.get("many")
        assert found is not None
        assert [partition.index for partition in found.partitions] == list(range(2000))
        assert other.broker.topics.partition_count == 2001
        await topics.delete(few)
        least = await refresh(other)
        await topics.delete(many)
        assert await refresh(other) > least + 10
        assert other.broker.topics.partition_count == 0

    over(body)


@pytest.mark.parametrize("document", [b"{torn", b"{}", b'{"id": "00", "partitions": 1, "configs": {"x": "y"}}'])
def test_a_document_that_cannot_be_read_keeps_no_other_topic_away(
    document: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def body(one: SharedWorld, other: SharedWorld) -> None:
        assert await one.store.save("topics/a", document, None)
        await one.broker.topics.create("b", 2, {})
        found = await other.broker.topics.find("b")
        assert found is not None
        assert len(found.partitions) == 2
        assert await other.broker.topics.find("a") is None
        assert "left out until it changes" in caplog.text
        assert "topic 'a'" in caplog.text

    over(body)


def test_a_known_topic_whose_document_is_damaged_stays_as_it_was(caplog: pytest.LogCaptureFixture) -> None:
    async def body(one: SharedWorld, other: SharedWorld) -> None:
        made = await one.broker.topics.create("a", 1, {"retention.ms": "5"})
        found = await other.broker.topics.find("a")
        assert found is not None
        assert await one.store.save("topics/a", b"{torn", made.packed)
        await one.broker.topics.create("b", 2, {})
        assert await other.broker.topics.find("b") is not None
        assert other.broker.topics.get("a") is found
        assert found.config.retention_ms == 5
        assert "left out until it changes" in caplog.text

    over(body)


def test_topics_that_a_refresh_found_before_they_are_opened_are_there_once() -> None:
    async def body(one: SharedWorld, other: SharedWorld) -> None:
        made = await one.broker.topics.create("t", 3, {})
        await other.broker.topics.refresh()
        await one.broker.topics.grow(made, 4)
        await one.broker.topics.create("u", 1, {})
        await other.broker.topics.open()
        assert [topic.name for topic in other.broker.topics] == ["t", "u"]
        assert other.broker.topics.partition_count == 5

    over(body)


def test_topics_that_differ_in_dots_only_can_be_deleted_both() -> None:
    """Two brokers may make them at the same moment, as each has a document of its own."""

    async def body(one: SharedWorld, other: SharedWorld) -> None:
        ours, theirs = one.broker.topics, other.broker.topics
        made = await asyncio.gather(ours.create("a.b", 1, {}), theirs.create("a_b", 1, {}))
        await ours.refresh()
        assert [topic.name for topic in ours] == ["a.b", "a_b"]
        for topic in made:
            found = await ours.find(topic.name)
            assert found is not None
            await ours.delete(found)
        await theirs.refresh()
        assert [*ours, *theirs] == []
        assert (ours.partition_count, theirs.partition_count) == (0, 0)

    over(body)


def test_nothing_is_read_while_nothing_changes() -> None:
    async def body(one: SharedWorld, other: SharedWorld) -> None:
        await one.broker.topics.create("t", 1, {})
        await one.broker.topics.refresh()
        one.store.scans.clear()
        for _ in range(3):
            await one.broker.topics.refresh()
        assert one.store.scans == []

    over(body)


@pytest.mark.parametrize("again", [False, True])
def test_a_topic_another_broker_deleted_is_gone_here_too(again: bool) -> None:
    async def body(one: SharedWorld, other: SharedWorld) -> None:
        made = await one.create()
        await send(made, b"a")
        found = await other.broker.topics.find("t")
        assert found is not None
        partition = found.partitions[0]
        await partition.leader.become_leader()
        with DelayedFetch([(partition.log, partition.log.end)], 1) as watch:
            waiting = asyncio.create_task(watch.wait(60))
            await asyncio.sleep(0)
            topic = one.broker.topics.get("t")
            assert topic is not None
            await one.broker.topics.delete(topic)
            if again:
                await one.create()
            await other.broker.topics.refresh()
            assert await waiting
        with pytest.raises(KorvetError, match="UNKNOWN_TOPIC_OR_PARTITION"):
            await partition.read(0, 100)
        with pytest.raises(KorvetError, match="UNKNOWN_TOPIC_OR_PARTITION"):
            await send(partition, b"late")
        new = other.broker.topics.get("t")
        assert (new is None) != again
        assert other.broker.topics.by_id(found.id) is None
        if new is not None:
            await new.partitions[0].leader.become_leader()
            assert await send(new.partitions[0], b"first") >= 0

    over(body)


def test_two_who_create_a_topic_at_once_get_the_same_one() -> None:
    async def body(one: SharedWorld, other: SharedWorld) -> None:
        first, second = await asyncio.gather(one.broker.topics.auto_create("t"), other.broker.topics.auto_create("t"))
        assert first.id == second.id

    over(body)


def test_an_unreachable_registry_is_no_missing_topic() -> None:
    async def body(one: SharedWorld, other: SharedWorld) -> None:
        one.server.down = True
        with pytest.raises(StoreError, match="the server is down"):
            await one.broker.topics.find("t")
        one.server.down = False

    over(body)


def test_a_change_that_another_broker_was_faster_with_takes_nothing_from_the_quota() -> None:
    async def body(one: SharedWorld, other: SharedWorld) -> None:
        topics = one.broker.topics
        made = await topics.create("t", 5, {})
        topics.quota = MutationQuota(1, 11, one.clock.monotonic)

        async def lose(*changes: object) -> bool:
            return False

        one.store.save = lose
        for change in (topics.delete(made), topics.grow(made, 9), topics.create("u", 5, {})):
            with pytest.raises(KorvetError, match=r"another broker|already exists"):
                await change
        assert topics.quota.throttle_ms == 0

    over(body)
