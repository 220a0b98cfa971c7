"""The nine verbs, as `store.interface` describes them, on every engine. What only files can suffer is elsewhere."""

import asyncio
import contextlib

import pytest

from korvet_fast.errors import KorvetError, StoreError
from korvet_fast.store.interface import ABSENT, LARGE, Bounds, Page, Stale
from store.engines import Engine
from store.entries import LIMIT, fill, make_entry, offsets, read_all, up_to

LOG = "orders:0"


async def test_unknown_log(engine: Engine) -> None:
    async with engine.store() as store:
        assert await store.bounds(LOG) == Bounds(0, 0, 0, 0, -1)
        assert await store.read(LOG, 5, 100, LIMIT) == Page([], 5)
        assert (await store.find_time(LOG, 0)).data == []
        assert await store.cut(LOG, older_than=5, larger_than=5) == Bounds(0, 0, 0, 0, -1)
        await store.drop(LOG)
        with pytest.raises(Stale) as refused:
            store.append(LOG, [make_entry(3)], 3, sync=False)
        assert refused.value.end == 0


async def test_append_and_read(engine: Engine) -> None:
    async with engine.store() as store:
        first, second = make_entry(0, 3), make_entry(3, 2)
        appending = store.append(LOG, [first, second], 0, sync=True)
        await appending.stored
        await appending.durable
        assert await store.bounds(LOG) == Bounds(0, 5, 5, len(first.data) + len(second.data), 2)
        page = await store.read(LOG, 0, 1 << 20, LIMIT)
        assert b"".join(page.data) == bytes(first.data) + bytes(second.data)
        assert page.next == 5


@pytest.mark.parametrize("at", [0, 1, 3, 4])
async def test_stale_append(engine: Engine, at: int) -> None:
    async with engine.store() as store:
        before = await fill(store, LOG, 2)
        with pytest.raises(Stale) as refused:
            store.append(LOG, [make_entry(at)], at, sync=True)
        assert refused.value.end == 2
        assert await store.bounds(LOG) == before


async def test_two_writers(engine: Engine) -> None:
    """Each append is won by one of them, and the loser learns where to go on."""
    async with engine.store() as store:
        won: dict[int, str] = {}

        async def write(name: str) -> None:
            end = 0
            while len(won) < 40:
                try:
                    durable = store.append(LOG, [make_entry(end)], end, sync=True).durable
                except Stale as stale:
                    end = stale.end
                else:
                    assert end not in won
                    won[end] = name
                    end += 1
                    await durable
                await asyncio.sleep(0)

        await asyncio.gather(write("a"), write("b"))
        assert await read_all(store, LOG) == sorted(won)
        assert set(won.values()) == {"a", "b"}


async def test_empty_append(engine: Engine) -> None:
    async with engine.store() as store:
        before = await fill(store, LOG, 2)
        await store.append(LOG, [], 2, sync=True).durable
        assert await store.bounds(LOG) == before
        with pytest.raises(Stale):
            store.append(LOG, [], 1, sync=True)


async def test_append_of_nothing_makes_durable_what_is_there(engine: Engine) -> None:
    async with engine.store() as store:
        store.append(LOG, [make_entry(0, 3)], 0, sync=True)
        store.append(LOG, [make_entry(3, 2)], 3, sync=False)
        await store.append(LOG, (), 5, sync=True).durable
        assert (await store.bounds(LOG)).durable == 5
        assert await read_all(store, LOG) == [0, 1, 2, 3, 4]


async def test_many_entries_at_once(engine: Engine) -> None:
    async with engine.store() as store:
        entries = [make_entry(offset) for offset in range(2500)]
        await store.append(LOG, entries, 0, sync=True).durable
        assert await read_all(store, LOG) == list(range(2500))


async def test_durable_in_order(engine: Engine) -> None:
    async with engine.store() as store:
        ended: list[int] = []
        waiting = []
        for offset in range(20):
            durable = store.append(LOG, [make_entry(offset)], offset, sync=True).durable
            durable.add_done_callback(lambda _, offset=offset: ended.append(offset))
            waiting.append(durable)
            await asyncio.sleep(0)
        await asyncio.wait(waiting)
        await asyncio.sleep(0)
        assert ended == list(range(20))
        assert (await store.bounds(LOG)).durable == 20


async def test_durable_without_sync(engine: Engine) -> None:
    async with engine.store() as store:
        assert (await fill(store, LOG, 1, sync=False)).durable == 1
        durable = store.append(LOG, [make_entry(1)], 1, sync=True).durable
        store.append(LOG, [make_entry(2)], 2, sync=False)  # cannot be durable before what precedes it
        await durable
        while (await store.bounds(LOG)).durable < 3:
            await asyncio.sleep(0)


async def test_cancelled_waiter(engine: Engine) -> None:
    """One who gives up waiting does not disturb the others."""
    async with engine.store() as store:
        durable = store.append(LOG, [make_entry(0)], 0, sync=True).durable

        async def wait() -> None:
            await asyncio.shield(durable)

        tasks = [asyncio.create_task(wait()) for _ in range(2)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        await tasks[1]
        assert (await store.bounds(LOG)).durable == 1


async def test_read_inside_batches(engine: Engine) -> None:
    async with engine.store() as store:
        await fill(store, LOG, 3, 3, 3)
        for start in range(9):
            page = await store.read(LOG, start, 1, LIMIT)
            assert offsets(page) == [start - start % 3 + number for number in range(3)]
        assert await store.read(LOG, 9, 100, LIMIT) == Page([], 9)
        assert await store.read(LOG, 99, 100, LIMIT) == Page([], 99)


async def test_read_limits(engine: Engine) -> None:
    async with engine.store() as store:
        await fill(store, LOG, 3, 3, 3)
        size = (await store.bounds(LOG)).size // 3
        assert offsets(await store.read(LOG, 0, 2 * size, LIMIT)) == list(range(6))
        assert offsets(await store.read(LOG, 0, 2 * size - 1, LIMIT)) == list(range(3))
        assert offsets(await store.read(LOG, 1, 1 << 20, 6)) == list(range(6))
        assert offsets(await store.read(LOG, 1, 1 << 20, 5)) == list(range(3))
        assert await store.read(LOG, 4, 1 << 20, 5) == Page([], 4)
        assert await store.read(LOG, 3, 1 << 20, 3) == Page([], 3)


async def test_read_large_batch(engine: Engine) -> None:
    """A batch larger than what was asked for is handed out whole, wherever it stands."""
    async with engine.store() as store:
        await fill(store, LOG, 1)
        await fill(store, LOG, 1, size=500_000)
        await fill(store, LOG, 1)
        for max_bytes in (1, 1000, 100_000):
            assert offsets(await store.read(LOG, 1, max_bytes, LIMIT)) == [1]
            assert offsets(await store.read(LOG, 0, max_bytes, LIMIT)) == [0]
        assert await read_all(store, LOG, max_bytes=1) == [0, 1, 2]


async def test_find_time(engine: Engine) -> None:
    """The first batch whose largest time is late enough, also where times go back."""
    async with engine.store() as store:
        times = [100, 50, 300, 200, 300, 400]
        for offset, time in enumerate(times):
            store.append(LOG, [make_entry(offset, time=time)], offset, sync=False)
        assert (await store.bounds(LOG)).latest == 400
        for ms in (0, 50, 100, 101, 300, 301, 400, 401):
            expected = next(([offset] for offset, time in enumerate(times) if time >= ms), [])
            assert offsets(await store.find_time(LOG, ms)) == expected
            for start in range(7):
                late = [offset for offset, time in enumerate(times) if time >= ms and offset >= start]
                assert offsets(await store.find_time(LOG, ms, start)) == late[:1]


async def test_find_time_in_batch(engine: Engine) -> None:
    async with engine.store() as store:
        await fill(store, LOG, 10, 10, time=1000)
        page = await store.find_time(LOG, 1015)
        assert offsets(page) == list(range(10, 20))
        assert page.next == 20
        await store.cut(LOG, start=13)
        assert offsets(await store.find_time(LOG, 1000)) == list(range(10, 20))  # what was deleted is not found
        assert (await store.find_time(LOG, 1000, 20)).data == []


async def test_delete_records(engine: Engine) -> None:
    async with engine.store() as store:
        await fill(store, LOG, 3, 3, 3, sync=True)
        assert (await store.cut(LOG, start=4)).start == 4
        assert await read_all(store, LOG) == [3, 4, 5, 6, 7, 8]  # whole batches
        assert (await store.cut(LOG, start=2)).start == 4  # a start does not go back
        for bad in (10, 1000):
            with pytest.raises(KorvetError) as refused:
                await store.cut(LOG, start=bad)
            assert refused.value.fault.name == "OFFSET_OUT_OF_RANGE"
        engine.crash()
    async with engine.store() as store:
        assert (await store.bounds(LOG)).start == 4
        bounds = await store.cut(LOG, start=9)
        assert (bounds.start, bounds.end) == (9, 9)
        assert await read_all(store, LOG) == []
        assert (await fill(store, LOG, 2)).end == 11
    async with engine.store() as store:
        assert await read_all(store, LOG) == [9, 10]


async def test_delete_records_not_yet_durable(engine: Engine) -> None:
    async with engine.store() as store:
        durable = store.append(LOG, [make_entry(0)], 0, sync=True).durable
        assert (await store.cut(LOG, start=1)).start == 1
        await durable


async def test_cut_the_end(engine: Engine) -> None:
    async with engine.store() as store:
        await fill(store, LOG, 3, 3, 3, sync=True)
        assert (await store.cut(LOG, end=9)).end == 9
        assert (await store.cut(LOG, end=7)).end == 6  # its batch goes whole
        store.append(LOG, [make_entry(6, 2)], 6, sync=False)
        assert await read_all(store, LOG) == list(range(8))
        assert (await store.cut(LOG, end=3)).durable == 3
        for bad in (4, -1):
            with pytest.raises(KorvetError):
                await store.cut(LOG, end=bad)
        engine.crash()
    async with engine.store() as store:
        assert await read_all(store, LOG) == [0, 1, 2]
        bounds = await store.cut(LOG, end=0)
        assert (bounds.start, bounds.end, bounds.size) == (0, 0, 0)


async def test_cut_the_end_above_the_start(engine: Engine) -> None:
    """The start stays, even if the batch in which the log starts goes."""
    async with engine.store() as store:
        await fill(store, LOG, 3, 3, sync=True)
        await store.cut(LOG, start=4)
        bounds = await store.cut(LOG, end=5)
        assert (bounds.start, bounds.end, bounds.size) == (4, 4, 0)
        assert await read_all(store, LOG) == []
        engine.crash()
    async with engine.store() as store:
        assert (await fill(store, LOG, 2)).end == 6
        assert await read_all(store, LOG) == [4, 5]


async def test_flushes_go_on_after_a_cut(engine: Engine) -> None:
    """Those who waited for what was cut are told; who comes later does not wait for ever."""
    async with engine.store() as store:
        await fill(store, LOG, 1, sync=True)
        for count in (1, 2, 3):
            waiting = [store.append(LOG, [make_entry(1)], 1, sync=True).durable]
            await asyncio.sleep(0)
            waiting += [store.append(LOG, [make_entry(at)], at, sync=True).durable for at in range(2, 2 + count)]
            assert (await store.cut(LOG, end=1)).end == 1
            for future in waiting:
                with contextlib.suppress(StoreError):
                    await future
            await store.append(LOG, [make_entry(1, 2)], 1, sync=True).durable
            assert (await store.bounds(LOG)).durable == 3
            assert (await store.cut(LOG, end=1)).end == 1


async def test_retention_by_size(engine: Engine) -> None:
    piece = len(make_entry(0).data)
    async with engine.store() as store:
        before = await fill(store, LOG, *[1] * 12, piece=up_to(3 * piece))
        assert (await store.cut(LOG, larger_than=before.size)).start == 0
        after = await store.cut(LOG, larger_than=5 * piece)
        assert (after.start, after.end, after.size) == (6, 12, 6 * piece)
        assert await read_all(store, LOG) == list(range(6, 12))


async def test_retention_by_span_of_time(engine: Engine) -> None:
    """A piece is as long as the append says that begins the next one; an engine retires what is older by pieces."""
    async with engine.store() as store:
        for time in range(0, 120, 10):
            await fill(store, LOG, 1, time=time, piece=LARGE._replace(span=20))
        assert (await store.cut(LOG, older_than=20)).start == 0
        assert (await store.cut(LOG, older_than=21)).start == 3
        for time in range(120, 150, 10):
            await fill(store, LOG, 1, time=time, piece=LARGE._replace(span=5))
        assert (await store.cut(LOG, older_than=121)).start == 13
        assert await read_all(store, LOG) == [13, 14]


async def test_pieces_may_change_with_every_append(engine: Engine) -> None:
    size = len(make_entry(0).data)
    async with engine.store() as store:
        for number in (4, 2, 1):
            await fill(store, LOG, *[1] * 4, piece=up_to(number * size))
        for keep, start in ((11, 0), (8, 4), (7, 4), (6, 6), (1, 11)):
            bounds = await store.cut(LOG, larger_than=keep * size)
            assert bounds.start == start
        await fill(store, LOG, 3, 3, piece=up_to(1))  # an append is never divided
        assert (await store.cut(LOG, larger_than=1)).start == 15
        assert await read_all(store, LOG) == [15, 16, 17]


async def test_retention_by_time(engine: Engine) -> None:
    piece = len(make_entry(0).data)
    async with engine.store() as store:
        await fill(store, LOG, *[1] * 12, time=1000, piece=up_to(3 * piece))
        assert (await store.cut(LOG, older_than=1002)).start == 0
        assert (await store.cut(LOG, older_than=1003)).start == 3
        assert (await store.cut(LOG, older_than=1008)).start == 6
        bounds = await store.cut(LOG, older_than=5000)
        assert (bounds.start, bounds.end, bounds.size) == (12, 12, 0)
        assert (await fill(store, LOG, 1)).end == 13
    async with engine.store() as store:
        assert await read_all(store, LOG) == [12]


async def test_retention_spares_what_is_not_durable(engine: Engine) -> None:
    async with engine.store() as store:
        durable = store.append(LOG, [make_entry(0, 2)], 0, sync=True).durable
        bounds = await store.cut(LOG, older_than=1 << 50)
        assert bounds.start in (0, 2)  # two, if the flush was quicker
        assert bounds.start <= bounds.durable
        await durable


async def test_drop(engine: Engine) -> None:
    async with engine.store() as store:
        await fill(store, LOG, 3, sync=True)
        await fill(store, "orders:1", 2, sync=True)
        await store.drop(LOG)
        assert await store.bounds(LOG) == Bounds(0, 0, 0, 0, -1)
        assert await read_all(store, LOG) == []
        assert (await fill(store, LOG, 1)).end == 1
        engine.crash()
    async with engine.store() as store:
        assert await read_all(store, LOG) == [0]
        assert await read_all(store, "orders:1") == [0, 1]


@pytest.mark.parametrize("crash", [False, True])
async def test_reopen(engine: Engine, crash: bool) -> None:
    piece = len(make_entry(0).data)
    logs = ["a:0", "a.b_c-d:12", "a-1:0", "a:1"]
    async with engine.store(index_interval_bytes=piece) as store:
        before = [
            await fill(store, log, *[1] * (10 + number), piece=up_to(4 * piece)) for number, log in enumerate(logs)
        ]
        if crash:
            engine.crash()
    for _ in range(2):
        async with engine.store(index_interval_bytes=piece) as store:
            for number, log in enumerate(logs):
                assert await store.bounds(log) == before[number]
                assert await read_all(store, log) == list(range(10 + number))
                assert offsets(await store.find_time(log, 7)) == [7]
                assert [offsets(await store.read(log, start, 1, LIMIT)) for start in range(10)] == [
                    [start] for start in range(10)
                ]


async def test_keys(engine: Engine) -> None:
    async with engine.store() as store:
        assert await store.load("a/b") is None
        assert not await store.save("a/b", b"1", b"0")
        assert await store.save("a/b", b"1", ABSENT)
        assert not await store.save("a/b", b"2", ABSENT)
        assert await store.save("a/b", b"2", b"1")
        assert await store.save("a/ä", b"", ABSENT)
        assert await store.save("a/c", bytes(100_000), ABSENT)
        assert await store.save("b", b"3", ABSENT)
        assert await store.save("b", ABSENT, b"3")
        assert await store.save("nothing", ABSENT, ABSENT)
        engine.crash()
    for _ in range(2):
        async with engine.store() as store:
            assert await store.load("a/b") == b"2"
            assert await store.load("a/ä") == b""
            assert await store.load("b") is None
            assert list(await store.scan("a/")) == ["a/b", "a/c", "a/ä"]
            assert list(await store.scan("a/b")) == ["a/b"]
            assert await store.scan("b/") == {}


async def test_key_has_one_winner(engine: Engine) -> None:
    async with engine.store() as store:
        results = await asyncio.gather(*(store.save("key", b"%d" % number, ABSENT) for number in range(20)))
        assert sum(results) == 1
        assert await store.load("key") == b"%d" % results.index(True)


async def test_keys_many_changes(engine: Engine) -> None:
    """Old values are cleared away, and none comes back."""
    async with engine.store() as store:
        for number in range(50):
            await store.save(f"gone/{number}", b"x", ABSENT)
            await store.save(f"gone/{number}", ABSENT, b"x")

        async def count(key: str) -> None:
            value = None
            for number in range(1000):
                assert await store.save(key, b"%d" % number, value)
                value = b"%d" % number

        await asyncio.gather(*(count(f"count/{number}") for number in range(5)))
        engine.crash()
    async with engine.store() as store:
        assert await store.scan("gone/") == {}
        assert await store.scan("count/") == {f"count/{number}": b"999" for number in range(5)}
