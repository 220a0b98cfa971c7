"""Reading and finding by time, as `store.interface` describes it, on every engine."""

import pytest

from korvet_fast.store.types import ReadResult
from store.engines import Engine

LOG = "orders:0"


async def test_read_inside_batches(engine: Engine) -> None:
    async with engine.scene() as scene:
        await scene.fill(LOG, 3, 3, 3)
        for start in range(9):
            batch = [start - start % 3 + number for number in range(3)]
            assert await scene.read_offsets(LOG, start, 1) == (batch if scene.whole else [start])
        assert await scene.read(LOG, 9, 100) == ReadResult([], 9)
        assert await scene.read(LOG, 99, 100) == ReadResult([], 99)


async def test_read_limits(engine: Engine) -> None:
    async with engine.scene() as scene:
        await scene.fill(LOG, 3, 3, 3)
        size = len(scene.make(0, 3).data)
        if scene.whole:
            assert await scene.read_offsets(LOG, 0, 2 * size) == list(range(6))
            assert await scene.read_offsets(LOG, 0, 2 * size - 1) == list(range(3))
            assert await scene.read_offsets(LOG, 1, 1 << 20, 6) == list(range(6))
            assert await scene.read_offsets(LOG, 1, 1 << 20, 5) == list(range(3))
            assert await scene.read(LOG, 4, 1 << 20, 5) == ReadResult([], 4)
        else:
            for max_bytes in range(1, 3 * size, 10):
                page = await scene.read(LOG, 0, max_bytes)
                assert scene.offsets(page) == list(range(page.next))
                assert sum(map(len, page.data)) <= max_bytes or page.next == 1
            assert page.next > 3
            assert await scene.read_offsets(LOG, 1, 1 << 20, 6) == list(range(1, 6))
            assert await scene.read_offsets(LOG, 4, 1 << 20, 5) == [4]
        assert await scene.read(LOG, 3, 1 << 20, 3) == ReadResult([], 3)


async def test_read_large_batch(engine: Engine) -> None:
    """A batch larger than what was asked for is handed out whole, wherever it stands."""
    async with engine.scene() as scene:
        await scene.fill(LOG, 1)
        await scene.fill(LOG, 1, size=500_000)
        await scene.fill(LOG, 1)
        for max_bytes in (1, 1000, 100_000):
            assert await scene.read_offsets(LOG, 1, max_bytes) == [1]
            assert await scene.read_offsets(LOG, 0, max_bytes) == [0]
        assert await scene.read_all(LOG, max_bytes=1) == [0, 1, 2]


@pytest.mark.parametrize("max_bytes", [1000, 20_000, 1 << 20])
async def test_read_sizes_that_change(engine: Engine, max_bytes: int) -> None:
    """Whatever was learned of the size of records, the next ones may be much larger or smaller."""
    async with engine.scene() as scene:
        await scene.fill(LOG, 100, *[1] * 200)
        await scene.fill(LOG, 1, 1, 1, size=200_000)
        await scene.fill(LOG, *[1] * 300)
        for start in (0, 50, 299, 301, 303, 602):
            found = await scene.read_all(LOG, start, max_bytes)
            assert found[-1] == 602
            assert found == list(range(found[0], 603))
            assert found[0] == (0 if scene.whole and start < 100 else start)
            page = await scene.read(LOG, start, max_bytes)
            assert sum(map(len, page.data)) <= max_bytes or len(scene.offsets(page)) in (1, 100)


async def test_find_time(engine: Engine) -> None:
    """The first batch whose largest time is late enough, also where times go back."""
    async with engine.scene() as scene:
        times = [100, 50, 300, 200, 300, 400]
        await scene.acquire(LOG)
        for offset, time in enumerate(times):
            durable = scene.append(LOG, offset, 1, time=time).durable
        await durable
        assert (await scene.bounds(LOG)).latest == 400
        for ms in (0, 50, 100, 101, 300, 301, 400, 401):
            for start in range(7):
                late = [offset for offset, time in enumerate(times) if time >= ms and offset >= start]
                found = await scene.find_time(LOG, ms, start)
                # Where batches are taken apart, their neighbours may come along.
                assert found == late[:1] if scene.whole else set(late[:1]) <= set(found)
                assert bool(found) == bool(late)


async def test_find_time_in_batch(engine: Engine) -> None:
    async with engine.scene() as scene:
        await scene.fill(LOG, 10, 10, time=1000)
        found = await scene.find_time(LOG, 1015)
        assert 15 in found
        if scene.whole:
            assert found == list(range(10, 20))
        await scene.delete_records(LOG, 13)
        found = await scene.find_time(LOG, 1000)
        assert found == list(range(10 if scene.whole else 13, 20))  # what was deleted is not found
        assert await scene.find_time(LOG, 1000, 20) == []


async def test_find_time_again(engine: Engine) -> None:
    """Batches read once are remembered; batches added since are not overlooked."""
    async with engine.scene() as scene:
        await scene.fill(LOG, *[1] * 300, time=1000, size=2000)
    async with engine.scene() as scene:
        await scene.acquire(LOG)
        for ms in (1299, 1000, 1150, 1299):
            assert ms - 1000 in await scene.find_time(LOG, ms)
            assert await scene.find_time(LOG, 2000) == []
        await scene.fill(LOG, 1, time=2000)
        assert 300 in await scene.find_time(LOG, 2000)
        assert 200 in await scene.find_time(LOG, 1200)
