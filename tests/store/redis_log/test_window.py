"""Large appends wait while much is on its way to a server; small ones pass them, each log keeps its order."""

import asyncio

from faults.redis.proxy import RedisProxy
from korvet_fast.store.redis.connection import answer_window
from korvet_fast.store.redis.log import window
from store.redis_log.redis_namespace import LOG, RedisNamespace

LARGE = 1_000_000
MANY = [f"large:{number}" for number in range(24)]


async def count_before(one: "asyncio.Future[None]", others: "list[asyncio.Future[None]]") -> int:
    """How many of the others had ended when this one did: until a test goes on, those behind it may end too."""
    before = list[int]()
    one.add_done_callback(lambda _: before.append(sum(other.done() for other in others)))
    await one
    return before[0]


async def test_a_small_append_is_answered_before_most_large_ones(own_place: RedisNamespace) -> None:
    async with own_place.scene() as scene:
        for name in (LOG, *MANY):
            await scene.acquire(name)
        large = [scene.append(name, at, 1, size=LARGE).stored for name in MANY for at in range(2)]
        await asyncio.sleep(0)
        assert await count_before(scene.append(LOG, 0, 1).stored, large) <= 2 * (window.FULL // LARGE + 1)
        for future in large:
            await future
        for name in MANY:
            assert await scene.read_all(name, max_bytes=4 * LARGE) == [0, 1]


async def test_logs_take_turns(own_place: RedisNamespace) -> None:
    """Who sends much to one log does not keep the large appends of another waiting until all is written."""
    async with own_place.scene() as scene:
        await scene.acquire(LOG)
        await scene.acquire(MANY[0])
        greedy = [scene.append(MANY[0], at, 1, size=LARGE).stored for at in range(40)]
        await asyncio.sleep(0)
        assert await count_before(scene.append(LOG, 0, 1, size=LARGE).stored, greedy) <= 2 * (window.FULL // LARGE + 1)
        for future in greedy:
            await future


async def test_logs_that_send_without_end_leave_a_turn_to_one_that_waits(own_place: RedisNamespace) -> None:
    """An answer makes room: a log that has the next append ready does not take it before those that wait."""
    async with own_place.scene() as scene:
        for name in (LOG, *MANY[:12]):
            await scene.acquire(name)
        greedy = [scene.append(name, at, 1, size=LARGE).stored for name in MANY[:12] for at in range(10)]
        await asyncio.sleep(0)
        await scene.append(LOG, 0, 1, size=LARGE).stored
        assert sum(future.done() for future in greedy) <= 2 * (12 + window.FULL // LARGE + 1)
        for future in greedy:
            await future


async def test_a_small_append_stays_behind_a_large_one_of_its_log(own_place: RedisNamespace) -> None:
    async with own_place.scene() as scene:
        for name in MANY:
            await scene.acquire(name)
        for name in MANY:
            scene.append(name, 0, 1, size=LARGE)
        await asyncio.sleep(0)
        last = [scene.append(name, 1, 1).stored for name in MANY]
        for future in last:
            await future
        for name in MANY:
            assert await scene.read_all(name, max_bytes=4 * LARGE) == [0, 1]


async def test_what_waits_is_sent_on_the_next_connection(own_place: RedisNamespace, proxy: RedisProxy) -> None:
    """The connection is lost while appends wait: each of them comes into its log once, in order."""
    async with own_place.scene(proxy.url) as scene:
        for name in MANY:
            await scene.acquire(name)
        proxy.hold()
        appendings = [scene.append(name, at, 1, size=LARGE).stored for name in MANY for at in range(2)]
        await asyncio.sleep(0.05)
        proxy.reset_all()
        proxy.release()
        for future in appendings:
            await future
        for name in MANY:
            assert await scene.read_all(name, max_bytes=4 * LARGE) == [0, 1]


async def test_a_small_append_passes_reads_of_much(own_place: RedisNamespace) -> None:
    """Redis carries out all that a connection has asked for before it turns to another one."""
    async with own_place.scene() as scene:
        for name in (LOG, *MANY):
            await scene.acquire(name)
        for name in MANY:
            await scene.append(name, 0, 1, size=LARGE).stored
        reads = [asyncio.ensure_future(scene.read(name, 0, 2 * LARGE)) for name in MANY]
        await asyncio.sleep(0)
        await scene.append(LOG, 0, 1).stored
        assert sum(read.done() for read in reads) <= 2 * (answer_window.FULL // LARGE + 1)
        assert [scene.offsets(await read) for read in reads] == [[0]] * len(MANY)


async def test_a_consumer_at_the_end_passes_reads_of_much(own_place: RedisNamespace) -> None:
    async with own_place.scene() as scene:
        for name in (LOG, *MANY):
            await scene.acquire(name)
        for name in MANY:
            await scene.append(name, 0, 1, size=LARGE).stored
        await scene.append(LOG, 0, 1).stored
        assert scene.offsets(await scene.read(LOG, 0, 2 * LARGE)) == [0]
        await scene.append(LOG, 1, 1).stored
        reads = [asyncio.ensure_future(scene.read(name, 0, 2 * LARGE)) for name in MANY]
        await asyncio.sleep(0)
        assert scene.offsets(await scene.read(LOG, 1, 2 * LARGE)) == [1]
        assert sum(read.done() for read in reads) <= 2 * (answer_window.FULL // LARGE + 1)
        await asyncio.gather(*reads)
