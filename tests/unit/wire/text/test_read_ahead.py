"""CONSUME's pages: batches read beyond an answer's end are not read again, and are for who goes on there."""

import asyncio
from pathlib import Path

from core_world import run_broker
from korvet_fast.core.fair_executor import FairExecutor
from korvet_fast.wire.text.dialect import TextDialect
from korvet_fast.wire.text.read_ahead import LONG_READ, ReadAhead, ReadAheadKey, UnusedBatches

VALUES = [f"{number:03}" for number in range(400)]


class Reader:
    """A consumer of topic `t`, which follows its answers. `reads`: of the store so far."""

    def __init__(self, dialect: TextDialect) -> None:
        self._session, self._lines = dialect.session("peer"), dialect.frames()
        self.offset = 0

    async def ask(self, line: str) -> str:
        (frame,) = self._lines.feed(f"V1|1|{line}\n".encode())
        return b"".join(await self._session.handle(frame)).decode().removeprefix("V1|1|OK|").rstrip("\n")

    async def consume(self, most: int) -> list[str]:
        """The next values."""
        answer = await self.ask(f"CONSUME|t 0 {self.offset} max={most}")
        found = [one.split(":") for one in answer.removeprefix("messages=").partition(" ")[0].split(",")]
        assert [int(offset) for offset, _ in found] == list(range(self.offset, self.offset + len(found)))
        self.offset += len(found)
        return [value for _, value in found]

    async def produce(self, values: list[str]) -> None:
        """All in one run, so in one batch."""
        stream = b"".join(f"V1|1|PRODUCE|t k:{value} acks=all\n".encode() for value in values)
        for frame in self._lines.feed(stream):
            assert b"ERR" not in b"".join(await self._session.handle(frame))


def test_a_batch_is_read_once_by_who_goes_on(tmp_path: Path) -> None:
    async def main() -> None:
        async with run_broker(tmp_path, "num.partitions=1") as world:
            dialect = TextDialect(world.broker, 0, FairExecutor(1, "unpack"))
            one, other = Reader(dialect), Reader(dialect)
            await one.produce(VALUES[:300])
            await one.produce(VALUES[300:])
            before = world.store.reads
            seen = [value for _ in range(4) for value in await one.consume(70)]
            assert seen == VALUES[:280]
            assert world.store.reads == before + 1
            other.offset = 280
            assert await other.consume(50) == VALUES[280:330]  # it takes the page that was there for `one`
            assert world.store.reads == before + 1
            assert await one.consume(60) == VALUES[280:340]
            assert world.store.reads > before + 1

    asyncio.run(main())


def test_a_page_is_not_given_after_its_records_were_removed(tmp_path: Path) -> None:
    async def main() -> None:
        async with run_broker(tmp_path, "num.partitions=1") as world:
            reader = Reader(TextDialect(world.broker, 0, FairExecutor(1, "unpack")))
            await reader.produce(VALUES)
            assert await reader.consume(10) == VALUES[:10]
            await world.broker.partition("t", 0).delete_records(50)
            assert (await reader.ask("CONSUME|t 0 10 max=2")).startswith("messages=50:050,51:051 ")
            topic = world.broker.topics.get("t")
            assert topic is not None
            reader.offset = 52
            await world.broker.topics.delete(topic)
            await reader.produce([f"new{number}" for number in range(60)])
            assert await reader.consume(1) == ["new52"]

    asyncio.run(main())


def test_what_is_beyond_the_watermark_is_given_later(tmp_path: Path) -> None:
    async def main() -> None:
        async with run_broker(tmp_path, "num.partitions=1") as world:
            reader = Reader(TextDialect(world.broker, 0, FairExecutor(1, "unpack")))
            await reader.produce(VALUES[:100])
            assert await reader.consume(90) == VALUES[:90]
            await reader.produce(VALUES[100:])
            assert await reader.consume(400) == VALUES[90:]

    asyncio.run(main())


def key(offset: int, epoch: int = 0) -> ReadAheadKey:
    return ReadAheadKey(b"topic", 0, epoch, offset)


def test_a_page_is_taken_once_and_in_its_epoch() -> None:
    ahead = ReadAhead()
    ahead.keep(key(1), UnusedBatches(b"x", 5))
    assert ahead.take(key(1, epoch=1)) is None
    assert ahead.take(key(1)) == UnusedBatches(b"x", 5)
    assert ahead.take(key(1)) is None


def test_pages_are_few_and_small() -> None:
    ahead = ReadAhead()
    ahead.keep(key(0), UnusedBatches(b"x" * (2 * LONG_READ), 5))
    assert ahead.take(key(0)) is None
    for number in range(17):
        ahead.keep(key(number), UnusedBatches(b"x", 100))
    assert ahead.take(key(0)) is None
    assert ahead.take(key(1)) is not None
