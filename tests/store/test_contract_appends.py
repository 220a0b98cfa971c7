"""Appending, as `store.interface` describes it, on every engine."""

import asyncio
from dataclasses import replace

import pytest

from korvet_fast.store.types import Bounds, OffsetConflict, ReadResult
from store.engines import Engine

LOG = "orders:0"


async def test_unknown_log(engine: Engine) -> None:
    async with engine.scene() as scene:
        store = scene.store
        assert await store.bounds(LOG) == Bounds(0, 0, 0, 0, -1)
        assert await store.open_log(LOG).read(5, 100, 1000) == ReadResult([], 5)
        assert (await store.find_time(LOG, 0)).data == []
        assert await store.apply_retention(LOG, older_than=5, larger_than=5) == Bounds(0, 0, 0, 0, -1)
        await store.drop(LOG)
        await scene.acquire(LOG)
        with pytest.raises(OffsetConflict) as refused:
            scene.append(LOG, 3, 1)
        assert refused.value.end == 0


async def test_append_and_read(engine: Engine) -> None:
    async with engine.scene() as scene:
        first, second = scene.make(0, 3), scene.make(3, 2, time=3)
        await scene.acquire(LOG)
        appending = scene.append(LOG, 0, 3, 2, sync=True)
        await appending.stored
        await appending.durable
        bounds = await scene.bounds(LOG)
        assert bounds[:3] == (0, 5, 5)
        assert bounds.latest == 4
        page = await scene.read(LOG, 0, 1 << 20)
        assert scene.offsets(page) == [0, 1, 2, 3, 4]
        assert page.next == 5
        if scene.whole:
            assert bounds.size == len(first.data) + len(second.data)
            assert b"".join(page.data) == bytes(first.data) + bytes(second.data)


@pytest.mark.parametrize("at", [0, 1, 3, 4])
async def test_append_at_another_offset_than_the_end(engine: Engine, at: int) -> None:
    async with engine.scene() as scene:
        before = await scene.fill(LOG, 2)
        with pytest.raises(OffsetConflict) as refused:
            scene.append(LOG, at, 1, sync=True)
        assert refused.value.end == 2
        assert await scene.bounds(LOG) == before


async def test_two_writers(engine: Engine) -> None:
    """Each append is won by one of them, and the loser learns where to go on."""
    async with engine.scene() as scene:
        await scene.acquire(LOG)
        won: dict[int, str] = {}

        async def write(name: str) -> None:
            end = 0
            while len(won) < 40:
                try:
                    durable = scene.append(LOG, end, 1, sync=True).durable
                except OffsetConflict as conflict:
                    end = conflict.end
                else:
                    assert end not in won
                    won[end] = name
                    end += 1
                    await durable
                await asyncio.sleep(0)

        await asyncio.gather(write("a"), write("b"))
        assert await scene.read_all(LOG) == sorted(won)
        assert set(won.values()) == {"a", "b"}


async def test_empty_append(engine: Engine) -> None:
    async with engine.scene() as scene:
        before = await scene.fill(LOG, 2)
        await scene.append(LOG, 2, sync=True).durable
        assert await scene.bounds(LOG) == before
        with pytest.raises(OffsetConflict):
            scene.append(LOG, 1, sync=True)


async def test_append_of_nothing_makes_durable_what_is_there(engine: Engine) -> None:
    async with engine.scene() as scene:
        await scene.acquire(LOG)
        scene.append(LOG, 0, 3, sync=True)
        scene.append(LOG, 3, 2)
        await scene.append(LOG, 5, sync=True).durable
        assert (await scene.bounds(LOG)).durable == 5
        assert await scene.read_all(LOG) == [0, 1, 2, 3, 4]


async def test_many_entries_at_once(engine: Engine) -> None:
    async with engine.scene() as scene:
        await scene.acquire(LOG)
        await scene.append(LOG, 0, *[1] * 2500, sync=True).durable
        assert await scene.read_all(LOG) == list(range(2500))


async def test_durable_in_order(engine: Engine) -> None:
    async with engine.scene() as scene:
        await scene.acquire(LOG)
        ended: list[int] = []
        waiting = []
        for offset in range(20):
            durable = scene.append(LOG, offset, 1, sync=True).durable
            durable.add_done_callback(lambda _, offset=offset: ended.append(offset))
            waiting.append(durable)
            await asyncio.sleep(0)
        await asyncio.wait(waiting)
        await asyncio.sleep(0)
        assert ended == list(range(20))
        assert (await scene.bounds(LOG)).durable == 20


async def test_durable_without_sync(engine: Engine) -> None:
    async with engine.scene() as scene:
        assert (await scene.fill(LOG, 1)).durable == 1
        durable = scene.append(LOG, 1, 1, sync=True).durable
        scene.append(LOG, 2, 1)  # cannot be durable before what precedes it
        await durable
        while (await scene.bounds(LOG)).durable < 3:
            await asyncio.sleep(0)


async def test_cancelled_waiter(engine: Engine) -> None:
    """One who gives up waiting does not disturb the others."""
    async with engine.scene() as scene:
        await scene.acquire(LOG)
        durable = scene.append(LOG, 0, 1, sync=True).durable

        async def wait() -> None:
            await asyncio.shield(durable)

        tasks = [asyncio.create_task(wait()) for _ in range(2)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        await tasks[1]
        assert (await scene.bounds(LOG)).durable == 1


@pytest.mark.parametrize("crash", [False, True])
async def test_taken_over(engine: Engine, crash: bool) -> None:
    """Who takes a log over is told what is there, and has an epoch as high as asked for."""
    async with engine.scene() as scene:
        assert (await scene.acquire(LOG, epoch=5)).epoch == 5
        await scene.fill(LOG, 3, sync=True)
        if crash:
            engine.crash()
    async with engine.scene() as scene:
        granted = await scene.acquire(LOG, epoch=7)
        assert (granted.bounds.start, granted.bounds.end, granted.bounds.durable, granted.last_record_end) == (
            0,
            3,
            3,
            3,
        )
        assert granted.epoch == 7
        assert (await scene.fill(LOG, 2)).end == 5


async def test_what_it_waited_for_is_counted(engine: Engine) -> None:
    async with engine.scene() as scene:
        store = scene.store
        before = [replace(spent) for spent in store.read_times() if spent is not None]
        await scene.acquire(LOG)
        await scene.append(LOG, 0, sync=True).durable
        after = [spent for spent in store.read_times() if spent is not None]
        assert len(after) == len(before) > 0
        assert after[0].count > before[0].count
        assert after[0].seconds > before[0].seconds
    assert store.read_times()  # may still be asked
