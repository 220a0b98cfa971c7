"""CONSUME's blocks: what was written once is not read again, and is never given when it is not the log any more."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from core_world import World, run_broker
from korvet_fast.core.fair_executor import FairExecutor
from korvet_fast.wire.text.blocks import ENOUGH, BlockKey, Blocks
from korvet_fast.wire.text.dialect import TextDialect

Ask = Callable[[str], Awaitable[str]]


def run(directory: Path, scenario: Callable[[World, Ask], Awaitable[None]]) -> None:
    """`scenario` gets a broker with one partition a topic, and what answers a line without its end."""

    async def main() -> None:
        async with run_broker(directory, "num.partitions=1") as world:
            dialect = TextDialect(world.broker, 0, FairExecutor(1, "unpack"))
            session, lines = dialect.session("peer"), dialect.frames()

            async def ask(line: str) -> str:
                (frame,) = lines.feed(f"V1|1|{line}\n".encode())
                return b"".join(await session.handle(frame)).decode().removeprefix("V1|1|OK|").rstrip("\n")

            await scenario(world, ask)

    asyncio.run(main())


async def produce(ask: Ask, *values: str, topic: str = "t") -> None:
    for value in values:
        assert (await ask(f"PRODUCE|{topic} k:{value} acks=all")).startswith("partition=0 offset=")


def test_a_block_is_read_once(tmp_path: Path) -> None:
    async def scenario(world: World, ask: Ask) -> None:
        await produce(ask, "a", "b", "c")
        assert await ask("CONSUME|t 0 0") == "messages=0:a,1:b,2:c hw=3"
        before = world.store.reads
        assert await ask("CONSUME|t 0 0") == "messages=0:a,1:b,2:c hw=3"
        assert world.store.reads == before
        for other, wanted in (("1", "1:b,2:c"), ("0 max=2", "0:a,1:b"), ("0 encoding=base64", "0:YQ==,1:Yg==,2:Yw==")):
            assert await ask(f"CONSUME|t 0 {other}") == f"messages={wanted} hw=3"
        assert world.store.reads == before + 3

    run(tmp_path, scenario)


def test_a_block_that_the_watermark_ended_ends_with_it(tmp_path: Path) -> None:
    async def scenario(world: World, ask: Ask) -> None:
        await produce(ask, "a", "b")
        assert await ask("CONSUME|t 0 0") == "messages=0:a,1:b hw=2"
        assert await ask("CONSUME|t 0 0 max=2") == "messages=0:a,1:b hw=2"
        await produce(ask, "c")
        before = world.store.reads
        assert await ask("CONSUME|t 0 0 max=2") == "messages=0:a,1:b hw=3"
        assert world.store.reads == before
        assert await ask("CONSUME|t 0 0") == "messages=0:a,1:b,2:c hw=3"
        assert world.store.reads > before

    run(tmp_path, scenario)


def test_removed_messages_are_not_given(tmp_path: Path) -> None:
    async def scenario(world: World, ask: Ask) -> None:
        await produce(ask, "a", "b", "c")
        assert await ask("CONSUME|t 0 0") == "messages=0:a,1:b,2:c hw=3"
        await world.broker.partition("t", 0).delete_records(2)
        assert await ask("CONSUME|t 0 0") == "messages=2:c hw=3"

    run(tmp_path, scenario)


def test_a_topic_of_the_same_name_is_another_one(tmp_path: Path) -> None:
    async def scenario(world: World, ask: Ask) -> None:
        await produce(ask, "old")
        assert await ask("CONSUME|t 0 0") == "messages=0:old hw=1"
        topic = world.broker.topics.get("t")
        assert topic is not None
        await world.broker.topics.delete(topic)
        await produce(ask, "new")
        assert await ask("CONSUME|t 0 0") == "messages=0:new hw=1"

    run(tmp_path, scenario)


def key(offset: int, epoch: int = 0) -> BlockKey:
    return BlockKey(b"topic", 0, epoch, offset, 0, 500)


def test_a_later_epoch_has_blocks_of_its_own() -> None:
    blocks = Blocks()
    blocks.keep(key(0), [b"0:a"], ENOUGH)
    assert blocks.find(key(0), 1) == [b"0:a"]
    assert blocks.find(key(0, epoch=1), 1) is None


def test_blocks_are_few_and_small() -> None:
    blocks = Blocks()
    blocks.keep(key(0), [b"x" * (64 << 10)], ENOUGH)
    blocks.keep(key(1), [b"x" * (64 << 10), b"x"], ENOUGH)
    assert blocks.find(key(0), 5) is not None
    assert blocks.find(key(1), 5) is None
    for number in range(2, 2 + 63):
        blocks.keep(key(number), [b"x"], ENOUGH)
    assert blocks.find(key(0), 5) is not None  # used last, so the next one pushes out another
    blocks.keep(key(100), [b"x"], ENOUGH)
    assert blocks.find(key(0), 5) is not None
    assert blocks.find(key(2), 5) is None
