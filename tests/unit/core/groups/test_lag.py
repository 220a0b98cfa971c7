"""How far groups are behind, now and before."""

import asyncio
from pathlib import Path

from batches import make_batch
from core_world import put, run_broker, settle
from korvet_fast.core.fair_queue import BackgroundPace
from korvet_fast.core.groups.documents import OffsetAndMetadata, TopicPartition
from korvet_fast.core.groups.lag import SAMPLES, UNKNOWN, LagHistory, sum_lag


def test_the_lag_of_all_partitions_is_summed_and_kept_for_some_time(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with run_broker(tmp_path) as world:
            broker, history = world.broker, LagHistory()
            runtimes = broker.groups.partitions.runtimes
            await broker.topics.create("t", 2, {})
            for index in (0, 1, 1):
                await settle(put(broker.partition("t", index), make_batch([b"x"]), -1))
            offsets = {TopicPartition("t", index): OffsetAndMetadata(0) for index in (0, 1)}
            await broker.groups.offsets.commit("g", "", None, -1, offsets)
            runtime = runtimes.get("g")
            assert runtime is not None
            assert await sum_lag(runtime, broker.topics, BackgroundPace()) == 3
            await history.sample(runtimes, broker.topics, BackgroundPace())
            broker.partition("t", 0).leader.resign("a test")
            assert await sum_lag(runtime, broker.topics, BackgroundPace()) is None
            for _ in range(SAMPLES):
                await history.sample(runtimes, broker.topics, BackgroundPace())
            assert history.of("g") == [UNKNOWN] * SAMPLES
            topic = broker.topics.get("t")
            assert topic is not None
            await broker.topics.delete(topic)
            await broker.topics.create("t", 2, {})
            assert await sum_lag(runtime, broker.topics, BackgroundPace()) is None  # that of the former topic
            await broker.groups.groups.delete("g")
            await history.sample(runtimes, broker.topics, BackgroundPace())
            assert history.of("g") == []

    asyncio.run(scenario())


def test_too_many_groups_and_offsets_are_not_kept(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with run_broker(tmp_path) as world:
            broker, history = world.broker, LagHistory()
            await broker.topics.create("t", 1, {})
            for number in range(1001):
                at = {TopicPartition("t", 0): OffsetAndMetadata(0)}
                await broker.groups.offsets.commit(f"g{number}", "", None, -1, at)
            await history.sample(broker.groups.partitions.runtimes, broker.topics, BackgroundPace())
            kept = [number for number in range(1001) if history.of(f"g{number}") == [0]]
            assert len(kept) == 1000

    asyncio.run(scenario())
