"""Positions of groups as Redis's own tools show them."""

import asyncio
from typing import Any

import pytest

from korvet_fast.errors import StoreError
from korvet_fast.store.redis.stream.ids import find_end
from store.redis_log.redis_namespace import LOG, RedisNamespace
from store.scene import Scene


def groups(place: RedisNamespace) -> dict[str, tuple[str, int | None]]:
    """Last delivered id and lag of each group, from XINFO GROUPS."""
    found = {}
    for row in place.call("XINFO", "GROUPS", place.key):
        about: dict[bytes, Any] = dict(zip(row[::2], row[1::2], strict=True))
        found[about[b"name"].decode()] = (about[b"last-delivered-id"].decode(), about[b"lag"])
    return found


async def show(scene: Scene, group: str, offset: int | None) -> None:
    """Until the server shows it."""
    scene.store.groups.mirror_offset(LOG, group, None if offset is None else scene.origin + offset)
    await scene.store._mirror._round()


async def test_position_and_lag(place: RedisNamespace) -> None:
    async with place.scene() as scene:
        await scene.fill(LOG, *[1] * 10)
        await show(scene, "g", 4)
        assert groups(place) == {"g": (place.id(3), 6)}
        await show(scene, "g", 10)
        assert groups(place) == {"g": (place.id(9), 0)}
        scene.store.open_log(LOG).append([scene.make(10)], scene.origin + 10, sync=False)
        await show(scene, "g", 7)
        assert groups(place) == {"g": (place.id(6), 4)}
        await show(scene, "behind", 0)
        assert groups(place)["behind"][1] == 11
        await show(scene, "behind", None)
        await show(scene, "never", None)
        assert list(groups(place)) == ["g"]


async def test_a_long_lag_is_counted_in_steps_or_not_at_all(place: RedisNamespace) -> None:
    async with place.scene() as scene:
        await scene.fill(LOG, *[1] * 1200)
        await show(scene, "g", 2)
        assert groups(place) == {"g": (place.id(1), 1198 if place.log_format.entries_layout else None)}
        await show(scene, "g", 1000)
        assert groups(place) == {"g": (place.id(999), 200)}


async def test_a_log_that_is_not_there_is_not_made(place: RedisNamespace) -> None:
    async with place.scene() as scene:
        await scene.acquire(LOG)
        await show(scene, "g", 0)
        scene.store.groups.mirror_offset("unknown:0", "g", 1)
        assert not place.call("EXISTS", place.key)


async def test_positions_are_shown_in_the_background_and_before_the_end(place: RedisNamespace) -> None:
    async with place.scene() as scene:
        await scene.fill(LOG, 1, 1)
        scene.store.groups.mirror_offset(LOG, "g", place.maker.origin + 1)
        while not groups(place):
            await asyncio.sleep(0.01)
        scene.store.groups.mirror_offset(LOG, "g", place.maker.origin + 2)
    assert groups(place) == {"g": (place.id(1), 0)}


async def test_positions_of_a_round_under_way_are_shown_at_the_end(
    place: RedisNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with place.scene() as scene:
        await scene.fill(LOG, 1, 1)
        run, calling = scene.store._calls.run, asyncio.Event()

        async def hang(*_: object, **__: object) -> None:
            monkeypatch.setattr(scene.store._calls, "run", run)
            calling.set()
            await asyncio.Event().wait()

        monkeypatch.setattr(scene.store._calls, "run", hang)
        for group, offset in (("g", 1), ("h", 2)):
            scene.store.groups.mirror_offset(LOG, group, place.maker.origin + offset)
        await calling.wait()
    assert groups(place) == {"g": (place.id(0), 1), "h": (place.id(1), 0)}


async def test_a_server_that_does_not_answer_is_told_later(
    place: RedisNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with place.scene() as scene:
        await scene.fill(LOG, 1, 1)
        run = scene.store._calls.run

        async def fail(*_: object, **__: object) -> None:
            raise StoreError("not now")

        monkeypatch.setattr(scene.store._calls, "run", fail)
        await show(scene, "g", 1)
        monkeypatch.setattr(scene.store._calls, "run", run)
        await scene.store._mirror._round()
        assert groups(place) == {"g": (place.id(0), 1)}


@pytest.mark.parametrize("layout", ["entries"])
async def test_entries_of_other_programs_count(place: RedisNamespace) -> None:
    async with place.scene() as scene:
        await scene.fill(LOG, 1)
        added = place.xadd("value", "v")
        await show(scene, "g", 1)
        assert groups(place) == {"g": (place.id(0), 1)}
        offset = find_end(added, place.log_format.bits)
        await show(scene, "g", offset - place.maker.origin)
        assert groups(place) == {"g": (added.decode(), 0)}
