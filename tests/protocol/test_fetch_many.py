"""Fetch of many partitions: read side by side, answered as if one had been read after the other."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from batches import make_batch
from core_world import put, run_broker, run_shared, settle
from kafka_server import FETCH, kafka_server, run
from korvet_fast.core.fair_queue import FairQueue, Pace, Turns
from korvet_fast.core.fetch.service import PartitionFetch, read_all
from korvet_fast.core.partition.partition import Partition
from korvet_fast.wire.kafka.errors import CODES
from shared_store import Server


def ask(partitions: list[Partition], limit: int) -> list[PartitionFetch]:
    return [PartitionFetch(partition.index, partition.log.start, limit, partition) for partition in partitions]


async def read_in_turn(parts: list[PartitionFetch], left: int) -> list[int]:
    """How many bytes each partition gives when one is read after the other (KIP-74)."""
    sizes = []
    first = True  # this one gives a batch however large it is
    for part in parts:
        most = min(part.max_bytes, left)
        size = 0
        if first or (most > 0 and left > 0):
            size = sum(map(len, (await part.partition.read(part.offset, most)).data))
        sizes.append(size if first or size <= most else 0)
        first = first and size == 0
        left -= size  # also what turned out to be too large
    return sizes


@settings(max_examples=60, deadline=None)
@example(stored=[[1], [1], [1]], limits=[0, 0, 2, 0, 0, 0], left=70)
@given(
    stored=st.lists(st.lists(st.integers(1, 400), max_size=5), min_size=1, max_size=6),
    limits=st.lists(st.integers(0, 1500), min_size=6, max_size=6),
    left=st.integers(1, 4000),
)
def test_limits_hold_as_if_one_were_read_after_the_other(stored: list[list[int]], limits: list[int], left: int) -> None:
    async def scenario() -> None:
        async with run_shared(Server()) as world:
            topic = await world.broker.topics.create("t", len(stored), {"storage.layout": "batches"})
            for partition, sizes in zip(topic.partitions, stored, strict=True):
                for size in sizes:
                    await settle(put(partition, make_batch([b"x" * size])))
            parts = [
                PartitionFetch(partition.index, partition.log.start, limit, partition)
                for partition, limit in zip(topic.partitions, limits, strict=False)
            ]
            expected = await read_in_turn(parts, left)
            await read_all(parts, left, Pace(Turns(FairQueue())))
            assert [sum(map(len, part.records)) for part in parts] == expected

    asyncio.run(scenario())


def test_partitions_are_read_side_by_side() -> None:
    async def scenario() -> None:
        async with run_shared(Server()) as world:
            topic = await world.broker.topics.create("t", 20, {})
            for partition in topic.partitions:
                await settle(put(partition, make_batch([b"x"])))
            world.store.most = 0
            await read_all(ask(topic.partitions, 1000), 20_000, Pace(Turns(FairQueue())))
            assert world.store.most == 20
            world.store.most = 0
            parts = ask(topic.partitions, 1000)
            await read_all(parts, 4000, Pace(Turns(FairQueue())))  # not more than can be told of
            assert world.store.most == 4
            assert all(part.records for part in parts)

    asyncio.run(scenario())


def test_files_are_read_without_waiting_for_anything(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with run_broker(tmp_path, "durability=written") as world:
            topic = await world.broker.topics.create("t", 5, {})
            for partition in topic.partitions:
                put(partition, make_batch([b"x"]))
            reading = read_all(ask(topic.partitions, 1000), 5000, Pace(Turns(FairQueue())))
            with pytest.raises(StopIteration):
                reading.send(None)

    asyncio.run(scenario())


def test_a_partition_that_cannot_be_read_leaves_the_others_alone(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            topic = await server.broker.topics.create("t", 3, {})
            for partition in topic.partitions:
                await settle(put(partition, make_batch([b"x"]), -1))
            topic.partitions[1].leader.resign("another broker leads it")
            client = await server.connect()
            rows = [{"partition": index, "fetch_offset": 0, "partition_max_bytes": 1000} for index in range(3)]
            topics = [{"topic": "t", "partitions": [row | {"current_leader_epoch": -1} for row in rows]}]
            answer = await client.ask(FETCH, 12, topics=topics, max_wait_ms=90_000, min_bytes=1, max_bytes=10_000)
            rows = answer["responses"][0]["partitions"]
            assert [row["error_code"] for row in rows] == [0, CODES["NOT_LEADER_OR_FOLLOWER"], 0]
            assert [len(row["records"] or b"") > 0 for row in rows] == [True, False, True]

    run(scenario)
