"""Configs that a topic's creation fixes: its layout, and how its offsets are made."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from core_world import SharedWorld, run_broker, run_shared
from korvet_fast.config import Source, read_settings
from korvet_fast.core.broker import Broker
from korvet_fast.core.topics.topic import Document, Topic
from korvet_fast.errors import KorvetError, StoreError
from korvet_fast.store.embedded.store import EmbeddedStore
from korvet_fast.store.types import BATCHES, ENTRIES, WHOLE
from shared_store import Server, SharedStore


def over(body: Callable[[SharedWorld], Coroutine[Any, Any, None]], *flags: str) -> None:
    async def run() -> None:
        async with run_shared(Server(), *flags) as world:
            await body(world)

    asyncio.run(run())


async def create(world: SharedWorld, **configs: str) -> Topic:
    own = {name.replace("_", "."): value for name, value in configs.items()}
    return await world.broker.topics.create("t", 1, own)


async def refuse(asked: Coroutine[Any, Any, object], said: str) -> None:
    with pytest.raises(KorvetError, match=said) as caught:
        await asked
    assert caught.value.error == "INVALID_CONFIG"


def test_a_topic_has_the_stores_first_layout_unless_it_or_the_broker_says_otherwise() -> None:
    async def plain(world: SharedWorld) -> None:
        assert (await create(world)).config.log_format == (10, True, 0)

    async def own(world: SharedWorld) -> None:
        topic = await create(world, storage_layout="batches", offset_sequence_bits="3")
        assert topic.config.log_format == (3, False, 0)
        assert topic.config.overrides == {}

    async def of_the_broker(world: SharedWorld) -> None:
        assert (await create(world)).config.log_format == (5, False, 0)

    over(plain)
    over(own)
    over(of_the_broker, "storage.layout=batches", "offset.sequence.bits=5")


def test_what_a_topic_was_given_stays_though_the_broker_has_other_values() -> None:
    async def run() -> None:
        server = Server()
        async with run_shared(server) as world:
            await create(world)
        async with run_shared(server, "storage.layout=batches", "offset.sequence.bits=5") as world:
            topic = world.broker.topics.get("t")
            assert topic is not None
            assert topic.config.log_format == (10, True, 0)
            rows = {row.name: row for row in topic.config.describe()}
            assert (rows["storage.layout"].value, rows["storage.layout"].source) == (ENTRIES, Source.TOPIC)
            assert rows["offset.sequence.bits"].synonyms == (
                ("offset.sequence.bits", "10", Source.TOPIC),
                ("offset.sequence.bits", "5", Source.FLAG),
                ("offset.sequence.bits", "10", Source.DEFAULT),
            )

    asyncio.run(run())


def test_what_is_fixed_cannot_be_altered() -> None:
    async def body(world: SharedWorld) -> None:
        topics, topic = world.broker.topics, await create(world)
        for name, other in (("storage.layout", "batches"), ("offset.sequence.bits", "11"), ("storage.layout", "store")):
            await refuse(topics.alter(topic, {name: other}), "is fixed when a topic is created")
        await topics.alter(topic, {"storage.layout": "entries", "retention.ms": "5"})
        assert topic.config.overrides == {"retention.ms": "5"}
        await topics.alter(topic, {})
        assert topic.config.log_format == (10, True, 0)
        await topics.grow(topic, 2)
        assert topic.partitions[1].log.entries_layout

    over(body)


def test_values_that_are_not_legal_are_refused() -> None:
    async def body(world: SharedWorld) -> None:
        await refuse(create(world, storage_layout="records"), "one of store, entries, batches")
        await refuse(create(world, offset_sequence_bits="0"), "from 1 to 16")
        await refuse(create(world, offset_sequence_bits="17"), "from 1 to 16")
        await refuse(create(world, durability="maybe"), "one of server, fsync, written")

    over(body)


def test_large_sequence_numbers_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    async def body(world: SharedWorld) -> None:
        await create(world, offset_sequence_bits="13")
        await world.broker.topics.create("small", 1, {"offset.sequence.bits": "12"})

    over(body)
    assert caplog.text.count("53 bits") == 1
    assert "topic t:" in caplog.text


def test_files_keep_batches_and_nothing_else(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_broker(tmp_path) as world:
            topics = world.broker.topics
            topic = await topics.create("t", 1, {"storage.layout": "batches"})
            assert topic.config.log_format == WHOLE
            assert not {"storage.layout", "offset.sequence.bits"} & {row.name for row in topic.config.describe()}
            said = "storage.layout is entries, but this store keeps records as batches only"
            await refuse(topics.create("u", 1, {"storage.layout": "entries"}), said)
            await refuse(topics.create("u", 1, {"offset.sequence.bits": "10"}), "have no sequence numbers")
            await refuse(topics.alter(topic, {"offset.sequence.bits": "10"}), "is fixed")

    asyncio.run(run())


@pytest.mark.parametrize("flag", ["storage.layout=entries", "offset.sequence.bits=10"])
def test_a_broker_does_not_start_with_settings_that_mean_nothing_to_its_store(tmp_path: Path, flag: str) -> None:
    with pytest.raises(StoreError, match=flag.partition("=")[0]):
        asyncio.run(Broker(EmbeddedStore(tmp_path), read_settings([flag])).open())
    assert not any(tmp_path.iterdir())


def test_a_store_may_have_one_layout_only() -> None:
    async def run() -> None:
        broker = Broker(SharedStore(Server(), (ENTRIES,)), read_settings())
        await broker.open()
        await refuse(broker.topics.create("t", 1, {"storage.layout": "batches"}), "as entries only")
        await broker.close()

    asyncio.run(run())


def test_documents_of_before_there_was_a_choice_are_read() -> None:
    document = Document.unpack(b'{"id": "00ff", "partitions": 3, "configs": {"retention.ms": "1"}, "deleting": false}')
    assert document == (b"\x00\xff", 3, {"retention.ms": "1"}, {"storage.layout": BATCHES}, False, 0, (), "")
    assert Document.unpack(document.pack()) == document


@pytest.mark.parametrize(
    ("durability", "copies", "sync", "strict"),
    [
        ("server", "1", False, False),
        ("written", "1", False, False),
        ("fsync", "1", True, True),
        ("server", "2", False, True),
    ],
)
def test_durability_as_a_server_hears_it(durability: str, copies: str, sync: bool, strict: bool) -> None:
    async def body(world: SharedWorld) -> None:
        config = (await create(world, durability=durability, min_insync_replicas=copies)).config
        assert (config.sync, config.strict, config.copies) == (sync, strict, int(copies))

    over(body)
