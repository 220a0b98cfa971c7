"""Other programs' hands in the stream (layout `entries`): what they add is there at once, what they take is gone."""

import asyncio
from collections.abc import Callable

import pytest

from batches import read_values
from korvet_fast.store.types import LogFormat, OffsetConflict
from redis_server import PROGRAMS, RedisServer
from store.engines import RedisEngine
from store.redis_log.redis_namespace import LOG, RedisNamespace
from store.scene import Scene


@pytest.fixture
def entries(shared_redis: Callable[[str], RedisServer]) -> RedisNamespace:
    """A place where every record is an entry."""
    server = shared_redis(PROGRAMS[1])
    return RedisNamespace(server, RedisEngine(server.url, LogFormat(10, entries_layout=True)))


async def read(scene: Scene, start: int = 0) -> list[bytes]:
    page = await scene.read(LOG, start, 1 << 20)
    return [value for data in page.data for value in read_values(data)]


async def test_seen_at_once(entries: RedisNamespace) -> None:
    async with entries.scene() as scene:
        bounds = (await scene.acquire(LOG)).bounds
        assert bounds[:3] == (0, 0, 0)
        entries.xadd("value", "a", at=entries.id(5))
        bounds = await scene.bounds(LOG)
        assert (bounds.start, bounds.end, bounds.removed) == (5, 6, 0)
        assert await read(scene) == [b"a"]
        assert (await scene.fill(LOG, 2)).end == 8
        entries.xadd("value", "b", at=entries.id(8))
        assert (await scene.bounds(LOG)).end == 9
        assert (await scene.acquire(LOG)).last_record_end == 9
        assert len(await read(scene)) == 4
        assert await scene.read_offsets(LOG, 6, 1) == [6]


async def test_above_what_we_append(entries: RedisNamespace) -> None:
    """The append is refused, and all behind it; nothing of them is there; we go on above."""
    async with entries.scene() as scene:
        await scene.acquire(LOG)
        await scene.fill(LOG, 2)
        entries.xadd("value", "a", at=entries.id(4))  # inside of the batch that comes
        before = entries.snapshot()
        appendings = [scene.append(LOG, at, 5) for at in (2, 7, 12)]
        for appending in appendings:
            for future in (appending.stored, appending.durable):
                with pytest.raises(OffsetConflict) as refused:
                    await future
                assert not refused.value.fenced
                assert scene.relate(refused.value.end) == 5
        after = entries.snapshot()
        assert after[1:] == before[1:]
        assert (await scene.bounds(LOG)).end == 5
        with pytest.raises(OffsetConflict):
            scene.append(LOG, 17, 1)
        epoch = log_epoch(entries)
        assert (await scene.fill(LOG, 3)).end == 8
        assert log_epoch(entries) == epoch
        assert await scene.read_offsets(LOG, 5, 1 << 20) == [5, 6, 7]


def log_epoch(entries: RedisNamespace) -> bytes:
    epoch: bytes = entries.call("HGET", entries.state_key, "epoch")
    return epoch


@pytest.mark.parametrize("seed", range(3))
async def test_both_write(entries: RedisNamespace, seed: int) -> None:
    """Whoever is first has the offset; everything acknowledged is there, whole and in order."""
    async with entries.scene() as scene:
        await scene.acquire(LOG)
        ours: list[int] = []
        theirs = 0

        async def interfere() -> None:
            nonlocal theirs
            for _ in range(60):
                entries.call("XADD", entries.key, "*", "value", f"foreign {theirs:013}")
                theirs += 1
                await asyncio.sleep(0.001 * (seed + 1))

        interfering = asyncio.create_task(interfere())
        while not interfering.done():
            end = (await scene.bounds(LOG)).end
            try:
                appendings = [scene.append(LOG, end + 10 * number, 10) for number in range(3)]
                for number, appending in enumerate(appendings):
                    await appending.stored
                    ours += range(end + 10 * number, end + 10 * number + 10)
            except OffsetConflict as conflict:
                assert not conflict.fenced
        there: list[int] = []
        start = 0
        while (page := await scene.store.open_log(LOG).read(start + scene.origin, 1 << 20, 1 << 62)).data:
            start = page.next - scene.origin
            for data in page.data:
                there += [int(value[-20:]) - scene.origin for value in read_values(data) if value.isdigit()]
        assert there == ours
        assert entries.call("XLEN", entries.key) == len(ours) + theirs


async def test_trimmed(entries: RedisNamespace) -> None:
    async with entries.scene() as scene:
        await scene.acquire(LOG)
        await scene.fill(LOG, 10)
        entries.call("XDEL", entries.key, entries.id(5))
        bounds = await scene.bounds(LOG)
        assert (bounds.start, bounds.removed) == (0, 0)  # nothing is missing from the front
        assert await scene.read_offsets(LOG, 0, 1 << 20) == [0, 1, 2, 3, 4, 6, 7, 8, 9]
        entries.call("XTRIM", entries.key, "MAXLEN", 3)
        bounds = await scene.bounds(LOG)
        assert (bounds.start, bounds.end, bounds.removed) == (7, 10, 7)
        entries.call("XTRIM", entries.key, "MAXLEN", 0)
        bounds = await scene.bounds(LOG)
        assert (bounds.start, bounds.end, bounds.size, bounds.latest, bounds.removed) == (10, 10, 0, -1, 10)
        assert (await scene.fill(LOG, 1)).end == 11
    async with entries.scene() as scene:
        granted = await scene.acquire(LOG)
        assert (granted.bounds.start, granted.bounds.end, granted.bounds.removed, granted.last_record_end) == (
            10,
            11,
            10,
            11,
        )


async def test_deleted(entries: RedisNamespace) -> None:
    """The whole stream goes: all is lost, and no offset is given out again."""
    async with entries.scene() as scene:
        await scene.acquire(LOG)
        await scene.fill(LOG, 10)
        entries.call("DEL", entries.key)
        granted = await scene.acquire(LOG)
        assert (granted.bounds.start, granted.bounds.end, granted.last_record_end) == (10, 10, 0)
        assert (await scene.fill(LOG, 1)).end == 11


async def test_deleted_behind_the_leaders_back(entries: RedisNamespace) -> None:
    """The stream goes while somebody appends to it: what is lost is told, however late, and removed for consumers."""
    async with entries.scene() as scene:
        await scene.acquire(LOG)
        await scene.fill(LOG, 10)
        assert (await scene.bounds(LOG)).lost == 0
        entries.call("XTRIM", entries.key, "MAXLEN", 5)  # what others trim is no loss
        assert (await scene.bounds(LOG)).lost == 0
        entries.call("DEL", entries.key)
        bounds = await scene.bounds(LOG)
        assert (bounds.start, bounds.end, bounds.removed, bounds.lost) == (10, 10, 10, 10)
        assert (await scene.fill(LOG, 3)).lost == 10
        entries.xadd("value", "theirs", at=entries.id(13))
        assert (await scene.bounds(LOG)).lost == 10
        entries.call("DEL", entries.key)
        await scene.append(LOG, 14, 2).stored  # the stream is there again before anybody looks
        bounds = await scene.bounds(LOG)
        assert (bounds.start, bounds.removed, bounds.lost) == (14, 14, 14)
        assert (await scene.acquire(LOG)).bounds.lost == 0
        assert (await scene.bounds(LOG)).lost == 0


async def test_deleted_batches(shared_redis: Callable[[str], RedisServer]) -> None:
    server = shared_redis(PROGRAMS[1])
    place = RedisNamespace(server, RedisEngine(server.url, LogFormat()))
    async with place.scene() as scene:
        await scene.acquire(LOG)
        await scene.fill(LOG, 10)
        place.call("DEL", place.key)
        await scene.append(LOG, 10, 2).stored
        bounds = await scene.bounds(LOG)
        assert (bounds.start, bounds.end, bounds.removed, bounds.lost) == (10, 12, 10, 10)


@pytest.mark.parametrize("log_format", [LogFormat(), LogFormat(10, entries_layout=True)])
@pytest.mark.parametrize("command", ["DEL", "XTRIM"])
async def test_taken_away_before_anybody_has_looked(
    shared_redis: Callable[[str], RedisServer], log_format: LogFormat, command: str
) -> None:
    """Whoever stands below learns that records were there."""
    server = shared_redis(PROGRAMS[1])
    place = RedisNamespace(server, RedisEngine(server.url, log_format))
    async with place.scene() as scene:
        await scene.acquire(LOG)
        await scene.fill(LOG, 10)
        place.call(command, place.key, *["MAXLEN", "0"] * (command == "XTRIM"))
        bounds = await scene.bounds(LOG)
        assert (bounds.start, bounds.end, bounds.removed) == (10, 10, 10)
        assert bounds.lost == (10 if command == "DEL" else 0)


@pytest.mark.parametrize("log_format", [LogFormat(), LogFormat(10, entries_layout=True)])
async def test_deleted_while_nobody_led(shared_redis: Callable[[str], RedisServer], log_format: LogFormat) -> None:
    """Whoever acquires the log next is told, and nobody after that."""
    server = shared_redis(PROGRAMS[1])
    place = RedisNamespace(server, RedisEngine(server.url, log_format))
    for appended in (0, 2):  # after it was deleted, before it is acquired again
        async with place.scene() as scene:
            await scene.acquire(LOG)
            lost = (await scene.fill(LOG, 10)).end
            place.call("DEL", place.key)
            for number in range(appended):
                await scene.append(LOG, lost + number, 1).stored
        async with place.scene() as scene:
            bounds = (await scene.acquire(LOG)).bounds
            assert (bounds.start, bounds.end, bounds.lost) == (lost, lost + appended, lost)
            assert (await scene.acquire(LOG)).bounds.lost == 0
            end = (await scene.fill(LOG, 3)).end
        async with place.scene() as scene:
            bounds = (await scene.acquire(LOG)).bounds
            assert (bounds.start, bounds.end, bounds.removed, bounds.lost) == (lost, end, lost, 0)


async def test_no_offset_of_their_own(entries: RedisNamespace) -> None:
    """A sequence that does not fit the bits: the entry is passed over, and nothing else is lost by it."""
    async with entries.scene() as scene:
        await scene.acquire(LOG)
        await scene.fill(LOG, 2)
        ms = int(entries.id(0).partition("-")[0])
        entries.xadd("value", "a", at=f"{ms}-5000")
        bounds = await scene.bounds(LOG)
        assert bounds.end == 1024
        assert await scene.read_offsets(LOG, 0, 1 << 20) == [0, 1]
        await scene.append(LOG, 1024, 2).stored
        assert await scene.read_offsets(LOG, 0, 1 << 20) == [0, 1, 1024, 1025]
        assert await scene.read_offsets(LOG, 2, 1 << 20) == [1024, 1025]


async def test_find_time_among_theirs(entries: RedisNamespace) -> None:
    async with entries.scene() as scene:
        await scene.acquire(LOG)
        await scene.fill(LOG, 3, time=100)
        assert 2 in await scene.find_time(LOG, 102)
        entries.xadd("value", b"%020d" % (3 + scene.origin), "timestamp", "500", at=entries.id(3))
        assert await scene.find_time(LOG, 600) == []
        await scene.fill(LOG, 2, time=300)
        assert 3 in await scene.find_time(LOG, 400)
        assert (await scene.bounds(LOG)).latest == 500
        await scene.fill(LOG, 2, time=700)
        entries.xadd("value", b"%020d" % (8 + scene.origin), "timestamp", "900", at=entries.id(8))
        assert 8 in await scene.find_time(LOG, 800)
        assert 6 in await scene.find_time(LOG, 600) or 5 in await scene.find_time(LOG, 600)
        assert (await scene.apply_retention(LOG, older_than=600)).start <= 6
        assert (await scene.read_offsets(LOG, 6, 1 << 20)) == [6, 7, 8]


async def test_retention_of_theirs(entries: RedisNamespace) -> None:
    async with entries.scene() as scene:
        await scene.acquire(LOG)
        for number in range(200):
            entries.xadd("value", b"x" * 1000, "timestamp", str(1000 + number), at=entries.id(number))
        before = await scene.bounds(LOG)
        assert before.size > 200_000
        assert (await scene.apply_retention(LOG, larger_than=100_000)).start == 0  # not known to be durable
        await scene.append(LOG, before.end, sync=True).durable
        after = await scene.apply_retention(LOG, larger_than=100_000)
        assert 100_000 <= after.size < 200_000
        assert after.start == after.removed > 50
        assert (await scene.apply_retention(LOG, older_than=5000)).start == 200
