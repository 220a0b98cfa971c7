"""A partition that keeps messages of Kafka 0.7: what it gives to clients of 0.7, and to those of today."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from core_world import read_all, run_broker
from korvet_fast._native import up_convert
from korvet_fast.core.fair_queue import Pace
from korvet_fast.core.partition.legacy_partition import TOGETHER, LegacyPartition
from korvet_fast.core.partition.log import PartitionLog
from korvet_reference.legacy_client import encode_message


@asynccontextmanager
async def run_partition(data: Path, **configs: str) -> AsyncIterator[LegacyPartition]:
    own = {name.replace("_", "."): value for name, value in configs.items()}
    async with run_broker(data) as world:
        topic = await world.broker.topics.create("t", 1, {"storage.layout": "legacy", **own})
        partition = topic.partitions[0]
        assert isinstance(partition, LegacyPartition)
        yield partition


async def send(partition: LegacyPartition, messages: bytes, now: int = 0) -> None:
    batches = up_convert(messages, 1 << 20, 1 << 20, 64 << 10)
    await asyncio.gather(*partition.append_messages(batches, now))
    await asyncio.sleep(0)  # callbacks of what had ended already raise the high watermark


@pytest.mark.parametrize("messages", [encode_message(bytes(1 << 20)), encode_message(b"x" * 200) * 2000])
async def test_a_short_answer_does_not_keep_the_page_that_it_was_read_from(tmp_path: Path, messages: bytes) -> None:
    async with run_partition(tmp_path) as partition:
        await send(partition, messages)
        for size in (1, 1000, 100_000, len(messages)):
            parts = [memoryview(part) for part in await partition.read_messages(7, min(7 + size, len(messages)))]
            assert b"".join(parts) == messages[7 : 7 + size]
            kept = sum(memoryview(part.obj).nbytes for part in parts)
            assert kept <= 2 * size + (1 << 17)


async def test_positions_that_no_message_was_put_at_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An import that starts its log far up, and was killed before it took away what fills the log up to there."""
    async with run_partition(tmp_path) as partition:
        with monkeypatch.context() as killed, pytest.raises(RuntimeError):
            killed.setattr(PartitionLog, "delete_records", _die)
            await partition.begin_at(5 << 31, 0)
        assert await read_all(partition) == []
        await send(partition, encode_message(b"hello"))
        assert await read_all(partition) == [b"hello"]
        assert (await partition.read(0, 1)).next == partition.log.end


class Interrupted(Pace):
    """Others always go first, and do this."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work

    def due(self) -> bool:
        return True

    async def turn(self) -> None:
        self._work()


async def test_others_append_between_the_batches_of_a_large_set_and_no_segment_divides_it(tmp_path: Path) -> None:
    small = encode_message(b"of somebody else")
    large = encode_message(b"x" * 1000) * 4000
    batches = up_convert(large, 1 << 20, 1 << 20, 64 << 10)
    others: list[asyncio.Future[None]] = []
    async with run_partition(tmp_path, segment_bytes="2048") as partition:

        def append_small() -> None:
            others.extend(partition.append_messages(up_convert(small, 1 << 20, 1 << 20, 1 << 10), 0))

        await asyncio.gather(*await partition.append_large_set(batches, 0, Interrupted(append_small)), *others)
        assert len(others) == -(-len(batches) // TOGETHER)
        end = partition.log.end
        assert end == len(large) + len(others) * len(small)
        assert partition.segments.find_offsets(-1, 10, 0, end, 1) == [end, 0]
        data = b"".join(await partition.read_messages(0, end))
        assert data.replace(small, b"") == large
        await send(partition, small)
        assert partition.segments.find_edge(0) == end


async def _die(log: PartitionLog, offset: int) -> None:
    raise RuntimeError
