"""Reading ahead: who reads straight on gets everything once, whatever happens in between."""

import asyncio

import pytest

from korvet_fast.store.redis import ahead
from store.redis_log.place import LOG, Place

SOME = 20  # batches of one record


def ranges(place: Place) -> int:
    """How many XRANGE the server has carried out; its count is of all tests' on it."""
    line = place.server.info("commandstats")["cmdstat_xrange"]
    return int(line.removeprefix("calls=").partition(",")[0])


async def test_the_next_reply_is_there_before_it_is_asked_for(place: Place) -> None:
    async with place.scene() as scene:
        await scene.fill(LOG, *[1] * SOME, size=1000)
        found, start = [], 0
        while start < SOME:
            page = await scene.read(LOG, start, 3000)
            found += scene.offsets(page)
            start = page.next
            kept = scene.store._reader._ahead._kept
            if start < SOME and len(found) > len(scene.offsets(page)):
                assert list(kept) == [place.key]
                await asyncio.wait([kept[place.key].reply])
                before = ranges(place)
                again = await scene.read(LOG, start, 3000)
                # It was there; what follows was asked for at most.
                assert ranges(place) - before <= 1
                found += scene.offsets(again)
                start = again.next
        assert found == list(range(SOME))


async def test_what_is_appended_meanwhile_is_not_passed_over(place: Place) -> None:
    async with place.scene() as scene:
        await scene.fill(LOG, *[1] * 8, size=1000)
        found, start = [], 0
        for _ in range(12):
            page = await scene.read(LOG, start, 2000)
            found += scene.offsets(page)
            start = page.next
            await scene.fill(LOG, 1, size=1000)
        while start < 20:
            page = await scene.read(LOG, start, 2000)
            found += scene.offsets(page)
            start = page.next
        assert found == list(range(20))


async def test_a_reader_that_jumps_is_not_read_ahead_for(place: Place) -> None:
    async with place.scene() as scene:
        await scene.fill(LOG, *[1] * SOME, size=1000)
        for start in (10, 2, 15, 5):
            assert (await scene.read_offsets(LOG, start, 2000))[0] == start
            assert not scene.store._reader._ahead._kept


async def test_an_old_reply_is_not_used(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "_FRESH", -1.0)
    async with place.scene() as scene:
        await scene.fill(LOG, *[1] * SOME, size=1000)
        first = await scene.read(LOG, 0, 2000)
        second = await scene.read(LOG, first.next, 2000)
        assert scene.store._reader._ahead._kept
        place.call("XDEL", place.key, place.id(second.next))
        assert (await scene.read_offsets(LOG, second.next, 2000))[0] == second.next + 1


async def test_a_new_history_is_read_anew(place: Place) -> None:
    async with place.scene() as scene:
        await scene.fill(LOG, *[1] * SOME, size=1000)
        first = await scene.read(LOG, 0, 2000)
        await scene.read(LOG, first.next, 2000)
        assert scene.store._reader._ahead._kept
        scene.store._fork("another server")
        assert not scene.store._reader._ahead._kept


async def test_no_more_than_some_logs_are_read_ahead(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "_LOGS", 2)
    async with place.scene() as scene:
        for log in ("a:0", "b:0", "c:0"):
            await scene.fill(log, *[1] * SOME, size=1000)
            first = await scene.read(log, 0, 2000)
            await scene.read(log, first.next, 2000)
        assert [key.rpartition(":")[0][-1] for key in scene.store._reader._ahead._kept] == ["b", "c"]
