"""Logs that another program dropped are forgotten, once nothing of them is under way; their names may be used again."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from faults.redis.proxy import RedisProxy
from korvet_fast.errors import OutcomeUnknown, StoreError
from korvet_fast.store.redis.log.log import Log
from korvet_fast.store.redis.stream.scripts import REPLACE_FENCE
from korvet_fast.store.types import NotLeader, OffsetConflict
from store.record_batches import LIMIT
from store.redis_log.redis_namespace import LOG, RedisNamespace, log_of
from store.scene import Scene

KEPT = "kept:0"


def names(scene: Scene) -> list[str]:
    """The logs that the store has in memory."""
    return list(scene.store._logs)  # type: ignore[attr-defined]


async def close_idle(scene: Scene, *wanted: str) -> list[str]:
    """Twice, so that idle logs are packed; what the store has in memory then."""
    for _ in range(2):
        await scene.store.close_idle(lambda log: log in wanted)
    return names(scene)


@pytest.mark.parametrize("packed", [False, True])
async def test_a_log_that_another_program_dropped_is_forgotten(place: RedisNamespace, packed: bool) -> None:
    async with place.scene() as scene, place.scene() as other:
        for log in (LOG, KEPT):
            await scene.fill(log, 3)
        opened, state = scene.store.open_log(LOG), log_of(scene)
        if packed:
            assert await close_idle(scene, LOG, KEPT) == [LOG, KEPT]
            assert state.packed
        await other.drop(LOG)
        assert await close_idle(scene, KEPT) == [KEPT]
        with pytest.raises(NotLeader):
            opened.append([scene.make(3)], 3 + scene.origin, sync=False)
        assert (await opened.read(0, 1 << 20, LIMIT + scene.origin)).data == []
        assert await scene.read_all(KEPT) == [0, 1, 2]


async def test_a_name_is_used_again_at_once(place: RedisNamespace) -> None:
    """By the program that forgot it, in either order with the other one, and forgotten before and after."""
    async with place.scene() as scene, place.scene() as other:
        for _ in range(2):
            await scene.acquire(LOG)
            await scene.fill(LOG, 3)
            opened = scene.store.open_log(LOG)
            await other.drop(LOG)
            assert (await other.acquire(LOG)).last_record_end == 0
            await other.append(LOG, 0, 2).durable
            assert await close_idle(scene) == []
            assert (await opened.read(0, 1 << 20, LIMIT + scene.origin)).data == []
            granted = await scene.acquire(LOG)
            assert granted.last_record_end == 2
            assert granted.epoch == 1
            with pytest.raises(OffsetConflict):
                await other.append(LOG, 2, 1).stored
            assert (await scene.fill(LOG, 1)).end == 3
            assert await scene.read_all(LOG) == [0, 1, 2]
            await other.drop(LOG)


async def append(scene: Scene) -> None:
    await scene.append(LOG, 3, 1).durable


async def ask_for_bounds(scene: Scene) -> None:
    await scene.bounds(LOG)


async def acquire(scene: Scene) -> None:
    await scene.acquire(LOG)


@pytest.mark.parametrize("call", [append, ask_for_bounds, acquire])
async def test_a_log_is_kept_while_something_of_it_is_under_way(
    own_place: RedisNamespace, proxy: RedisProxy, call: Callable[[Scene], Coroutine[Any, Any, None]]
) -> None:
    async with own_place.scene(proxy.url) as scene:
        await scene.fill(LOG, 3)
        proxy.hold()
        under_way = asyncio.create_task(call(scene))
        await asyncio.sleep(0)
        assert await close_idle(scene) == [LOG]
        proxy.release()
        await under_way
        assert await close_idle(scene) == []


async def test_a_log_is_kept_while_the_outcome_of_an_append_is_found_out(
    own_place: RedisNamespace, proxy: RedisProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connection ended, and another program drops the log: who appended is told, and then it is forgotten."""
    async with own_place.scene(proxy.url) as scene, own_place.scene() as other:
        await scene.fill(LOG, 3)
        calls, kept = scene.store._calls, []  # type: ignore[attr-defined]
        ask = calls.run

        async def run(script: str, *given: object, **options: object) -> object:
            if script == REPLACE_FENCE:
                await other.drop(LOG)
                kept.append(await close_idle(scene))
            return await ask(script, *given, **options)

        monkeypatch.setattr(calls, "run", run)
        proxy.cut_request(b"EXEC", 0)
        with pytest.raises(OutcomeUnknown):
            await scene.append(LOG, 3, 1).stored
        assert kept == [[LOG]]
        assert await close_idle(scene) == []


async def test_lost_appends_of_a_forgotten_log_do_not_come_back(place: RedisNamespace) -> None:
    async with place.scene() as scene, place.scene() as other:
        await scene.fill(LOG, 3)
        log: Log = log_of(scene)
        appending = scene.append(LOG, 3, 1)
        scene.store._on_data_loss("it broke")  # type: ignore[attr-defined]
        with pytest.raises(StoreError):
            await appending.stored
        assert log.reach == scene.origin + 4
        await other.drop(LOG)
        assert await close_idle(scene) == []
        assert (await scene.acquire(LOG)).last_record_end == 0
        assert (await scene.fill(LOG, 2)).end == 2
        assert await scene.read_all(LOG) == [0, 1]
