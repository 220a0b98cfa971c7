"""Finding records by time, and where leader epochs end, over the embedded store."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from batches import make_batch
from core_world import put, run_broker, settle


@settings(max_examples=25, deadline=None)
@given(
    batches=st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=4), min_size=1, max_size=12),
    deleted=st.integers(0, 20),
    compression=st.sampled_from([0, 1]),
)
def test_times_are_found_exactly(batches: list[list[int]], deleted: int, compression: int) -> None:
    async def run(data: Path) -> None:
        async with run_broker(data, "durability=written") as world:
            partition = (await world.broker.topics.create("t", 1, {})).partitions[0]
            for times in batches:
                put(partition, make_batch([b"v"] * len(times), times=times, compression=compression))
            records = list(enumerate(time for times in batches for time in times))
            start = await partition.delete_records(min(deleted, len(records)))
            held = records[start:]
            for ms in range(-1, 52):
                assert await partition.log.find_time(ms) == next(((o, t) for o, t in held if t >= ms), None)
            latest = max((t for _, t in held), default=None)
            assert await partition.log.find_latest() == next(((o, t) for o, t in held if t == latest), None)

    with TemporaryDirectory() as data:
        asyncio.run(run(Path(data)))


def test_times_far_in_the_future_and_missing_ones_are_found_too(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_broker(tmp_path, f"log.message.timestamp.after.max.ms={2**62}") as world:
            partition = (await world.broker.topics.create("t", 1, {})).partitions[0]
            assert await partition.log.find_latest() is None
            await settle(put(partition, make_batch(times=[-1]), acks=-1))
            assert await partition.log.find_latest() == (0, -1)
            far = 1 << 61
            await settle(put(partition, make_batch([b"a"] * 3, times=[5, far, far]), acks=-1))
            assert await partition.log.find_latest() == (2, far)
            assert await partition.log.find_time(6) == (2, far)
            assert await partition.log.find_time(far + 1) is None

    asyncio.run(run())


def test_records_that_are_not_durable_are_not_found(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_broker(tmp_path) as world:
            partition = (await world.broker.topics.create("t", 1, {})).partitions[0]
            held = world.store.hold = []
            appended = put(partition, make_batch(times=[5]), acks=-1)
            assert await partition.log.find_time(0) is None
            assert await partition.log.find_latest() is None
            held[0].set_result(None)
            await settle(appended)
            assert await partition.log.find_time(0) == (0, 5)

    asyncio.run(run())
