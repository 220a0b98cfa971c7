"""A topic whose document cannot be read is left out; the broker starts, and serves all others."""

import asyncio
from pathlib import Path

import pytest

from core_world import put_values, read_all, run_broker, run_shared
from korvet_fast.errors import KorvetError
from shared_store import Server

DAMAGED = (
    b"{torn",
    b"\xff",
    b"[]",
    b"{}",
    b'{"id": "00", "partitions": "many", "configs": {}}',
    b'{"id": "00", "partitions": Infinity, "configs": {}}',
    b'{"id": "00", "partitions": 1, "configs": 7}',
    b'{"id": "00", "partitions": 1, "configs": {}, "fixed": {}}',
    b'{"id": "00", "partitions": 1, "configs": {"of.a.later.version": "1"}}',
)


@pytest.mark.parametrize("document", DAMAGED)
def test_the_broker_starts_and_the_topic_is_back_when_its_document_is(
    tmp_path: Path, document: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with run_broker(tmp_path) as world:
            topics = world.broker.topics
            damaged, other = await topics.create("a", 1, {}), await topics.create("b", 1, {})
            for topic in (damaged, other):
                put_values(topic.partitions[0], b"kept")
            assert await world.store.save("topics/a", document, damaged.packed)
        async with run_broker(tmp_path) as world:
            topics = world.broker.topics
            assert [topic.name for topic in topics] == ["b"]
            assert await read_all(world.broker.partition("b", 0)) == [b"kept"]
            with pytest.raises(KorvetError, match="UNKNOWN_TOPIC_OR_PARTITION"):
                world.broker.partition("a", 0)
            for create in (topics.create("a", 1, {}), topics.auto_create("a")):
                with pytest.raises(KorvetError, match=r"KAFKA_STORAGE_ERROR: .*topics/a in @registry"):
                    await create
            assert (await topics.create("c", 1, {})).name == "c"
            assert await world.store.save("topics/a", damaged.packed, document)
        async with run_broker(tmp_path) as world:
            assert await read_all(world.broker.partition("a", 0)) == [b"kept"]

    asyncio.run(run())
    (line,) = [one.getMessage() for one in caplog.records if "left out until it changes" in one.getMessage()]
    assert line.startswith("the document of topic 'a' is left out until it changes (topics/a in @registry: restore")


def test_a_broker_of_a_shared_store_starts_too() -> None:
    async def run() -> None:
        server = Server()
        async with run_shared(server, "node.id=1") as one:
            made = await one.broker.topics.create("a", 1, {})
            await one.broker.topics.create("b", 1, {})
            assert await one.store.save("topics/a", b"{torn", made.packed)
            async with run_shared(server, "node.id=2") as other:
                assert [topic.name for topic in other.broker.topics] == ["b"]
                assert other.broker.topics.unreadable == {"a"}
                with pytest.raises(KorvetError, match=r"KAFKA_STORAGE_ERROR: .*topics/a in @registry"):
                    await other.broker.topics.create("a", 1, {})
                assert await one.store.save("topics/a", made.packed, b"{torn")
                found = await other.broker.topics.find("a")
                assert found is not None
                assert found.id == made.id

    asyncio.run(run())
