"""Committed offsets of topics that other brokers make, delete and make anew while a group changes its coordinator."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from core_world import SharedWorld, run_shared
from korvet_fast.core.groups.documents import OffsetAndMetadata, TopicPartition
from shared_store import Server

T, U, V = (TopicPartition(name, 0) for name in "tuv")
LATER = "COORDINATOR_LOAD_IN_PROGRESS", {}


class Pair:
    """Two brokers over one server, each of which sees the other when told to. `group` falls to the second one."""

    def __init__(self, server: Server, one: SharedWorld, two: SharedWorld) -> None:
        self.server = server
        self.one = one
        self.two = two
        for world in (one, two):
            world.broker.metadata_sync.sync_soon = lambda changed: None  # type: ignore[method-assign]
        find = two.broker.groups.partitions.find
        self.group = next(name for name in map(str, range(200)) if find(name) == 2)

    async def commit(self, offsets: dict[TopicPartition, int]) -> None:
        """At the first broker."""
        wanted = {partition: OffsetAndMetadata(offset) for partition, offset in offsets.items()}
        errors = await self.one.broker.groups.offsets.commit(self.group, "", None, -1, wanted)
        assert set(errors.values()) == {""}

    async def fetch(self, *partitions: TopicPartition) -> tuple[str, dict[TopicPartition, int]]:
        """At the second broker; of all partitions, if none is named."""
        error, found = await self.two.broker.groups.offsets.fetch(self.group, partitions or None)
        return error, {partition: committed.offset for partition, committed in found.items()}

    async def refresh(self, *worlds: SharedWorld) -> None:
        """They see who is there, and take over the groups that fall to them; but no topics."""
        for world in worlds:
            await world.broker.cluster.poll()
            await world.broker.groups.partitions.reconcile()

    async def take_over(self) -> None:
        """The second broker becomes the coordinator."""
        await self.refresh(self.one, self.two)


def of_two(body: Callable[[Pair], Awaitable[None]]) -> None:
    """With a topic `t` that both know."""

    async def run() -> None:
        server = Server()
        async with run_shared(server, "node.id=1") as one:
            await one.create()
            async with run_shared(server, "node.id=2") as two:
                await body(Pair(server, one, two))

    asyncio.run(run())


def test_an_offset_whose_topic_is_not_known_yet_is_told_later_and_not_as_none() -> None:
    async def body(pair: Pair) -> None:
        await pair.one.broker.topics.create("u", 1, {})
        await pair.commit({T: 5, U: 6})
        await pair.take_over()
        assert pair.two.broker.topics.get("u") is None
        pair.server.down = True
        assert await pair.fetch(T) == ("", {T: 5})
        for asked in ([U], [T, U], []):
            assert await pair.fetch(*asked) == LATER
        pair.server.down = False
        assert await pair.fetch() == ("", {T: 5, U: 6})

    of_two(body)


def test_an_offset_of_a_topic_that_another_broker_made_anew_is_told() -> None:
    async def body(pair: Pair) -> None:
        topics = pair.one.broker.topics
        former = topics.get("t")
        assert former is not None
        await pair.commit({T: 5})
        await topics.delete(former)
        anew = await topics.create("t", 1, {})
        await pair.commit({T: 6})
        await pair.take_over()
        known = pair.two.broker.topics.get("t")
        assert known is not None
        assert known.id == former.id != anew.id
        assert await pair.fetch(T) == ("", {T: 6})

    of_two(body)


def test_an_offset_of_a_topic_that_cannot_be_read_here_is_neither_told_as_none_nor_removed() -> None:
    async def body(pair: Pair) -> None:
        made = await pair.one.broker.topics.create("u", 1, {})
        await pair.commit({T: 5, U: 6})
        assert await pair.one.store.save("topics/u", b"{torn", made.packed)
        await pair.take_over()
        await pair.two.broker.groups.offsets.expire()
        assert pair.two.broker.topics.unreadable == {"u"}
        assert await pair.fetch(U) == await pair.fetch() == LATER
        assert await pair.fetch(T) == ("", {T: 5})
        assert await pair.one.store.save("topics/u", made.packed, b"{torn")
        assert await pair.fetch() == ("", {T: 5, U: 6})
        assert pair.two.broker.topics.unreadable == set()

    of_two(body)


def after_topics_are_read(
    world: SharedWorld, monkeypatch: pytest.MonkeyPatch, happens: Callable[[], Awaitable[None]]
) -> None:
    """The next time the broker reads the topics' documents, this happens before it goes on."""
    refresh = world.broker.topics.refresh

    async def slowly() -> None:
        monkeypatch.undo()
        await refresh()
        await happens()

    monkeypatch.setattr(world.broker.topics, "refresh", slowly)


def test_a_group_that_is_taken_over_while_offsets_expire_keeps_those_of_new_topics(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def body(pair: Pair) -> None:
        async def come() -> None:
            await pair.one.broker.topics.create("u", 1, {})
            await pair.commit({U: 6})
            await pair.take_over()

        after_topics_are_read(pair.two, monkeypatch, come)
        await pair.two.broker.groups.offsets.expire()
        assert pair.two.broker.topics.get("u") is None
        assert await pair.fetch(U) == ("", {U: 6})

    of_two(body)


def test_a_group_that_went_and_came_while_topics_were_read_is_told_later(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(pair: Pair) -> None:
        async def go_and_come() -> None:
            del pair.server.keys["brokers/2"]
            await pair.refresh(pair.one)
            await pair.one.broker.topics.create("v", 1, {})
            await pair.commit({V: 7})
            await pair.refresh(pair.two, pair.one, pair.two)

        await pair.one.broker.topics.create("u", 1, {})
        await pair.commit({U: 6})
        await pair.take_over()
        after_topics_are_read(pair.two, monkeypatch, go_and_come)
        assert await pair.fetch() == LATER
        assert await pair.fetch() == ("", {U: 6, V: 7})

    of_two(body)


def test_that_nothing_expires_is_told_once_until_the_store_answers(caplog: pytest.LogCaptureFixture) -> None:
    async def body(pair: Pair) -> None:
        for _ in range(2):
            pair.server.down = True
            for _ in range(3):
                await pair.one.broker.groups.offsets.expire()
            pair.server.down = False
            await pair.one.broker.groups.offsets.expire()

    of_two(body)
    told = [record.getMessage() for record in caplog.records]
    assert told.count("no committed offsets expire until the store answers: the server is down") == 2
