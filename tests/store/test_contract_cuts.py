"""Taking records away, and what a restart finds, as `store.interface` describes it, on every engine."""

import asyncio
import contextlib

import pytest

from korvet_fast.errors import KorvetError, StoreError
from korvet_fast.store.types import LARGE
from store.engines import Engine
from store.record_batches import LIMIT, make_record_batch, up_to

LOG = "orders:0"


async def test_delete_records(engine: Engine) -> None:
    async with engine.scene() as scene:
        await scene.fill(LOG, 3, 3, 3, sync=True)
        assert (await scene.delete_records(LOG, 4)).start == 4
        assert await scene.read_all(LOG) == list(range(3 if scene.whole else 4, 9))  # whole batches
        assert (await scene.delete_records(LOG, 2)).start == 4  # a start does not go back
        for bad in (10, 1000):
            with pytest.raises(KorvetError) as refused:
                await scene.delete_records(LOG, bad)
            assert refused.value.error == "OFFSET_OUT_OF_RANGE"
        engine.crash()
    async with engine.scene() as scene:
        bounds = (await scene.acquire(LOG)).bounds
        assert (bounds.start, bounds.removed) == (4, 4)
        bounds = await scene.delete_records(LOG, 9)
        assert (bounds.start, bounds.end, bounds.removed) == (9, 9, 9)
        assert await scene.read_all(LOG) == []
        assert (await scene.fill(LOG, 2)).end == 11
    async with engine.scene() as scene:
        await scene.acquire(LOG)
        assert await scene.read_all(LOG) == [9, 10]


async def test_delete_records_not_yet_durable(engine: Engine) -> None:
    async with engine.scene() as scene:
        await scene.acquire(LOG)
        durable = scene.append(LOG, 0, 1, sync=True).durable
        assert (await scene.delete_records(LOG, 1)).start == 1
        await durable


async def test_cut_the_end(engine: Engine) -> None:
    async with engine.scene() as scene:
        await scene.fill(LOG, 3, 3, 3, sync=True)
        if not engine.rewinds:
            with pytest.raises(KorvetError, match="taken away"):
                await scene.truncate(LOG, 7)
            return
        assert (await scene.truncate(LOG, 9)).end == 9
        assert (await scene.truncate(LOG, 7)).end == 6  # its batch goes whole
        scene.append(LOG, 6, 2)
        assert await scene.read_all(LOG) == list(range(8))
        assert (await scene.truncate(LOG, 3)).durable == 3
        for bad in (4, -1):
            with pytest.raises(KorvetError):
                await scene.truncate(LOG, bad)
        engine.crash()
    async with engine.scene() as scene:
        assert await scene.read_all(LOG) == [0, 1, 2]
        await scene.acquire(LOG)
        bounds = await scene.truncate(LOG, 0)
        assert (bounds.start, bounds.end, bounds.size) == (0, 0, 0)


async def test_cut_the_end_above_the_start(rewinding_engine: Engine) -> None:
    """The start stays, even if the batch in which the log starts goes."""
    engine = rewinding_engine
    async with engine.scene() as scene:
        await scene.fill(LOG, 3, 3, sync=True)
        await scene.delete_records(LOG, 4)
        bounds = await scene.truncate(LOG, 5)
        assert (bounds.start, bounds.end, bounds.size) == (4, 4, 0)
        assert await scene.read_all(LOG) == []
        engine.crash()
    async with engine.scene() as scene:
        assert (await scene.fill(LOG, 2)).end == 6
        assert await scene.read_all(LOG) == [4, 5]


async def test_flushes_go_on_after_a_cut(rewinding_engine: Engine) -> None:
    """Waiters for truncated batches are told; later waiters do not wait for ever."""
    async with rewinding_engine.scene() as scene:
        await scene.fill(LOG, 1, sync=True)
        for count in (1, 2, 3):
            waiting = [scene.append(LOG, 1, 1, sync=True).durable]
            await asyncio.sleep(0)
            waiting += [scene.append(LOG, at, 1, sync=True).durable for at in range(2, 2 + count)]
            assert (await scene.truncate(LOG, 1)).end == 1
            for future in waiting:
                with contextlib.suppress(StoreError):
                    await future
            await scene.append(LOG, 1, 2, sync=True).durable
            assert (await scene.bounds(LOG)).durable == 3
            assert (await scene.truncate(LOG, 1)).end == 1


async def test_retention_by_size(engine: Engine) -> None:
    async with engine.scene() as scene:
        piece = await scene.measure_record()
        before = await scene.fill(LOG, *[1] * 12, time=1000, segment_limits=up_to(3 * piece))
        assert (await scene.apply_retention(LOG, larger_than=before.size)).start == 0
        after = await scene.apply_retention(LOG, larger_than=5 * piece)
        assert (after.start, after.end) == (6, 12)
        assert after.size == 6 * piece or (not scene.whole and after.size // piece == 6)  # ids differ in length
        assert await scene.read_all(LOG) == list(range(6, 12))


async def test_retention_by_span_of_time(engine: Engine) -> None:
    """A piece is as long as the append says that begins the next one; an engine retires what is older by pieces."""
    async with engine.scene() as scene:
        for time in range(0, 120, 10):
            await scene.fill(LOG, 1, time=time, segment_limits=LARGE._replace(span=20))
        assert (await scene.apply_retention(LOG, older_than=20)).start == 0
        assert (await scene.apply_retention(LOG, older_than=21)).start == 3
        for time in range(120, 150, 10):
            await scene.fill(LOG, 1, time=time, segment_limits=LARGE._replace(span=5))
        assert (await scene.apply_retention(LOG, older_than=121)).start == 13
        assert await scene.read_all(LOG) == [13, 14]


async def test_pieces_may_change_with_every_append(engine: Engine) -> None:
    async with engine.scene() as scene:
        size = await scene.measure_record()
        for number in (4, 2, 1):
            await scene.fill(LOG, *[1] * 4, time=1000, segment_limits=up_to(number * size))
        for keep, start in ((11, 0), (8, 4), (7, 4), (6, 6), (1, 11)):
            bounds = await scene.apply_retention(LOG, larger_than=keep * size)
            assert bounds.start == start
        await scene.fill(LOG, 3, 3, time=1000, segment_limits=up_to(1))  # an append is never divided
        assert (await scene.apply_retention(LOG, larger_than=1)).start == 15
        assert await scene.read_all(LOG) == [15, 16, 17]


async def test_retention_by_time(engine: Engine) -> None:
    async with engine.scene() as scene:
        piece = await scene.measure_record()
        await scene.fill(LOG, *[1] * 12, time=1000, segment_limits=up_to(3 * piece))
        assert (await scene.apply_retention(LOG, older_than=1002)).start == 0
        assert (await scene.apply_retention(LOG, older_than=1003)).start == 3
        assert (await scene.apply_retention(LOG, older_than=1008)).start == 6
        bounds = await scene.apply_retention(LOG, older_than=5000)
        assert (bounds.start, bounds.end, bounds.size) == (12, 12, 0)
        assert (await scene.fill(LOG, 1)).end == 13
    async with engine.scene() as scene:
        await scene.acquire(LOG)
        assert await scene.read_all(LOG) == [12]


async def test_retention_of_what_another_has_written(engine: Engine) -> None:
    """Pieces may be known to the program only that made them; the rules hold after it, too."""
    async with engine.scene() as scene:
        piece = await scene.measure_record()
        await scene.fill(LOG, *[1] * 100, time=1000, size=2000)
    async with engine.scene() as scene:
        before = (await scene.acquire(LOG)).bounds
        assert before.size > 100 * piece
        assert before.latest == 1099
        assert (await scene.apply_retention(LOG, older_than=1000)).start == 0
        assert (await scene.apply_retention(LOG, larger_than=before.size)).start == 0
        after = await scene.apply_retention(LOG, older_than=1050, larger_than=before.size // 3)
        assert before.size // 3 <= after.size <= before.size
        assert await scene.read_all(LOG) == list(range(after.start, 100))


async def test_retention_spares_what_is_not_durable(engine: Engine) -> None:
    async with engine.scene() as scene:
        await scene.acquire(LOG)
        durable = scene.append(LOG, 0, 2, sync=True).durable
        bounds = await scene.apply_retention(LOG, older_than=1 << 50)
        assert bounds.start in (0, 2)  # two, if the flush was quicker
        assert bounds.start <= bounds.durable
        await durable


async def test_drop(engine: Engine) -> None:
    async with engine.scene() as scene:
        await scene.fill(LOG, 3, sync=True)
        await scene.fill("orders:1", 2, sync=True)
        await scene.drop(LOG)
        assert await scene.bounds(LOG) == (0, 0, 0, 0, -1, 0, 0)
        assert await scene.read_all(LOG) == []
        assert (await scene.fill(LOG, 1)).end == 1
        engine.crash()
    async with engine.scene() as scene:
        await scene.acquire(LOG)
        await scene.acquire("orders:1")
        assert await scene.read_all(LOG) == [0]
        assert await scene.read_all("orders:1") == [0, 1]


async def test_what_was_opened_before_a_drop_takes_and_gives_nothing(engine: Engine) -> None:
    """Not even when there is a log of that name again."""
    async with engine.scene() as scene:
        await scene.fill(LOG, 3, sync=True)
        opened = scene.store.open_log(LOG)
        for made_anew in (0, 1):
            await scene.drop(LOG)
            await scene.fill(LOG, *[1] * made_anew)
            with pytest.raises(StoreError):
                opened.append([scene.make(made_anew)], scene.origin + made_anew, sync=False)
            assert (await opened.read(0, 1000, LIMIT)).data == []
            assert await scene.read_all(LOG) == [0] * made_anew


@pytest.mark.parametrize("crash", [False, True])
async def test_reopen(engine: Engine, crash: bool) -> None:
    piece = len(make_record_batch(0).data)
    logs = ["a:0", "a.b_c-d:12", "a-1:0", "a:1"]
    async with engine.scene(index_interval_bytes=piece) as scene:
        before = [
            await scene.fill(log, *[1] * (10 + number), segment_limits=up_to(4 * piece))
            for number, log in enumerate(logs)
        ]
        if crash:
            engine.crash()
    for _ in range(2):
        async with engine.scene(index_interval_bytes=piece) as scene:
            for number, log in enumerate(logs):
                assert (await scene.acquire(log)).bounds == before[number]
                assert await scene.bounds(log) == before[number]
                assert await scene.read_all(log) == list(range(10 + number))
                assert 7 in await scene.find_time(log, 7)
                assert [await scene.read_offsets(log, start, 1) for start in range(10)] == [
                    [start] for start in range(10)
                ]
