"""A partition that keeps messages of Kafka 0.7: what it gives to clients of 0.7, and to those of today."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from core_world import read_all, run_broker
from korvet_fast._native import up_convert
from korvet_fast.core.partition.legacy_partition import LegacyPartition
from korvet_fast.core.partition.log import PartitionLog
from korvet_reference.legacy_client import encode_message


@asynccontextmanager
async def run_partition(data: Path) -> AsyncIterator[LegacyPartition]:
    async with run_broker(data) as world:
        topic = await world.broker.topics.create("t", 1, {"storage.layout": "legacy"})
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


async def _die(log: PartitionLog, offset: int) -> None:
    raise RuntimeError
