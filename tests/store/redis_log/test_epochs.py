"""Leader epochs of records that do not tell them (layout `entries`): every program that leads knows the same."""

import pytest

from korvet_fast._native import batch_headers
from store.redis_log.redis_namespace import LOG, RedisNamespace
from store.scene import Scene

pytestmark = pytest.mark.parametrize("layout", ["entries"])


async def stamps(scene: Scene, start: int, limit: int = 1000, max_bytes: int = 1 << 20) -> list[tuple[int, int, int]]:
    """(epoch, first, last) of each batch read."""
    page = await scene.read(LOG, start, max_bytes, limit)
    found = [batch for data in page.data for batch in batch_headers(data, True)]
    return [(each.leader_epoch, scene.relate(each.base_offset), scene.relate(each.last_offset)) for each in found]


async def take_over(scene: Scene, epoch: int = 0) -> list[tuple[int, int]]:
    """(epoch, first offset) of all who had the log."""
    granted = await scene.acquire(LOG, epoch=epoch)
    return [(known, scene.relate(first)) for known, first in granted.epochs]


async def test_records_are_read_under_the_epoch_that_wrote_them(place: RedisNamespace) -> None:
    async with place.scene() as one, place.scene() as two:
        assert await take_over(one, 5) == [(5, 0)]
        await one.fill(LOG, 10)
        assert await take_over(two, 7) == [(5, 0), (7, 10)]
        await two.fill(LOG, 10)
        assert await take_over(one) == [(5, 0), (7, 10), (8, 20)]
        await one.fill(LOG, 5)
        assert await stamps(one, 0) == [(5, 0, 9), (7, 10, 19), (8, 20, 24)]
        assert await stamps(one, 12, 18) == [(7, 12, 17)]
        assert await stamps(one, 0, max_bytes=1) == [(5, 0, 0)]
        # One that has not been told that it was replaced sees none of the other's records, which it would misname.
        assert (await two.bounds(LOG)).end == 20
        assert await stamps(two, 0, 20) == [(5, 0, 9), (7, 10, 19)]


async def test_an_epoch_that_wrote_nothing_or_has_nothing_left_is_forgotten(place: RedisNamespace) -> None:
    async with place.scene() as scene:
        await scene.acquire(LOG, epoch=1)
        await scene.fill(LOG, 10)
        await scene.acquire(LOG, epoch=2)
        assert await take_over(scene, 3) == [(1, 0), (3, 10)]
        await scene.fill(LOG, 10)
        await scene.store.delete_records(LOG, place.maker.origin + 10)
        assert await take_over(scene, 4) == [(3, 10), (4, 20)]


async def test_epochs_without_records_between_others_are_passed_over(place: RedisNamespace) -> None:
    """Records that the server lost, or another program deleted, leave a gap."""
    async with place.scene() as scene:
        for epoch in (1, 2, 3):
            await scene.acquire(LOG, epoch=epoch)
            await scene.fill(LOG, 5)
        for offset in range(5, 10):
            place.call("XDEL", place.key, place.id(offset))
        assert await stamps(scene, 0) == [(1, 0, 4), (3, 10, 14)]
        assert await stamps(scene, 6) == [(3, 10, 14)]
        assert await stamps(scene, 6, 10) == []


async def test_what_was_written_before_epochs_were_kept_has_none(place: RedisNamespace) -> None:
    async with place.scene() as scene:
        await scene.fill(LOG, 3)
        place.call("HDEL", place.state_key, "epochs")
        await scene.acquire(LOG)
        await scene.fill(LOG, 2)
        assert [(epoch >= 0, first, last) for epoch, first, last in await stamps(scene, 0)] == [
            (False, 0, 2),
            (True, 3, 4),
        ]
