"""Retention by time, of records that have none: they stay until something else tells that they are old."""

import pytest

from batches import make_batch
from korvet_fast.store.types import RecordBatch
from store.engines import NOW
from store.redis_log.redis_namespace import LOG, RedisNamespace
from store.scene import Scene

FAR = NOW + 86_400_000
UNTIMED = -1


async def put(scene: Scene, at: int, *times: int) -> int:
    """A batch of records with these times behind the end `at`; the end after it."""
    first = at + scene.origin
    data = make_batch([b"%020d" % (first + number) for number in range(len(times))], times=times, base_offset=first)
    entry = RecordBatch(data, first, first + len(times) - 1, max(times))
    bounds = await scene.store.bounds(LOG)
    await scene.store.open_log(LOG).append([entry], bounds.end, sync=False).durable
    return at + len(times)


async def reopened(place: RedisNamespace, older_than: int) -> int:
    """Where the log starts after a program that has not seen its records has retired what is older."""
    async with place.scene() as scene:
        await scene.acquire(LOG)
        return (await scene.apply_retention(LOG, older_than=older_than)).start


@pytest.mark.parametrize("layout", ["entries"])
async def test_finding_1_2_records_without_a_time_are_as_old_as_their_ids(place: RedisNamespace) -> None:
    async with place.scene() as scene:
        await scene.acquire(LOG)
        end = await put(scene, 0, UNTIMED, UNTIMED)
        assert (await scene.apply_retention(LOG, older_than=NOW)).start == 0
        end = await put(scene, 60_000 << 10, 1000, UNTIMED, 2000)  # a minute later, of old records
        assert (await scene.apply_retention(LOG, older_than=NOW)).start == 0
    assert await reopened(place, NOW) == 0
    assert await reopened(place, NOW + 59_999) == 0
    async with place.scene() as scene:
        await scene.acquire(LOG)
        await put(scene, 120_000 << 10, UNTIMED)
        assert (await scene.apply_retention(LOG, older_than=NOW + 60_000)).removed == 0
        assert (await scene.apply_retention(LOG, older_than=NOW + 60_001)).removed == end
        assert (await scene.apply_retention(LOG, older_than=NOW + 120_000)).removed == end
        assert (await scene.apply_retention(LOG, older_than=NOW + 120_001)).start == (120_000 << 10) + 1


@pytest.mark.parametrize("layout", ["batches"])
async def test_finding_1_2_batches_without_a_time_are_as_old_as_what_follows(place: RedisNamespace) -> None:
    async with place.scene() as scene:
        await scene.acquire(LOG)
        end = await put(scene, 0, UNTIMED, UNTIMED)
        end = await put(scene, end, UNTIMED)
        assert (await scene.apply_retention(LOG, older_than=FAR)).start == 0
    assert await reopened(place, FAR) == 0
    async with place.scene() as scene:
        await scene.acquire(LOG)
        end = await put(scene, end, 1000, 1001)
        end = await put(scene, end, UNTIMED)
        assert (await scene.apply_retention(LOG, older_than=FAR)).start == 0  # nothing tells how old the last one is
        end = await put(scene, end, 1500)
        assert (await scene.apply_retention(LOG, older_than=1500)).start == 0
    assert await reopened(place, FAR) == end == 7
    async with place.scene() as scene:
        await scene.acquire(LOG)
        await put(scene, await put(scene, end, UNTIMED), FAR)
        assert (await scene.apply_retention(LOG, older_than=FAR)).start == end
    assert await reopened(place, FAR) == end
    async with place.scene() as scene:
        await scene.acquire(LOG)
        assert (await scene.apply_retention(LOG, larger_than=0)).start == end + 2


async def test_records_without_a_time_are_found_by_none(place: RedisNamespace) -> None:
    async with place.scene() as scene:
        await scene.acquire(LOG)
        end = await put(scene, 0, UNTIMED, UNTIMED)
        await put(scene, end, 1000)
        assert 2 in await scene.find_time(LOG, 0)
        assert await scene.find_time(LOG, 1001) == []
