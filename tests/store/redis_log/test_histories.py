"""Histories that break, and one that comes back: no offset is used in two of them."""

import asyncio
import contextlib
from collections.abc import Callable

import pytest

from faults.redis.proxy import RedisProxy
from faults.redis.replicas import attach
from korvet_fast.errors import OutcomeUnknown, StoreError
from korvet_fast.store.types import LeadershipGrant
from redis_server import RedisServer
from store.redis_log.redis_namespace import LOG, RedisNamespace
from store.scene import Scene


async def acquire_again(scene: Scene, told: list[str], floor: int) -> LeadershipGrant:
    """After another history was told of."""
    while not told:
        await asyncio.sleep(0.01)
    told.clear()
    while True:
        with contextlib.suppress(StoreError):
            return await scene.acquire(LOG, floor=floor)
        await asyncio.sleep(0.01)


async def test_a_master_that_comes_back_has_what_nobody_was_answered(
    own_place: RedisNamespace, proxy: RedisProxy, start_redis: Callable[..., RedisServer]
) -> None:
    """Its replica went on meanwhile: above the offset at which the last append was sent, though it was not stored."""
    old, new = own_place.server, start_redis(appendonly="yes")
    with RedisProxy(old.port, frames=False) as link:
        attach(new, old, link.port)
        async with own_place.scene(proxy.url) as scene:
            told: list[str] = []
            scene.store.shared.on_data_loss(told.append)
            await scene.acquire(LOG)
            await scene.fill(LOG, 1, 1)
            while new.call("XLEN", own_place.key) < 2:
                await asyncio.sleep(0.01)
            link.hold()
            new.promote()
            proxy.target = new.port
            lost = proxy.lose_reply(b"EXEC")
            with pytest.raises(OutcomeUnknown):
                await scene.append(LOG, 2, 3).stored
            assert lost.is_set()
            there = await acquire_again(scene, told, 2)
            assert (there.last_record_end, there.bounds.end) == (2, 5)
            end = (await scene.fill(LOG, 1)).end
            assert (end, await scene.read_all(LOG)) == (6, [0, 1, 5])
            proxy.target = old.port
            proxy.reset_all()
            back = await acquire_again(scene, told, end)
            assert (back.last_record_end, back.bounds.end) == (5, 6)
            await scene.fill(LOG, 1)
            assert await scene.read_all(LOG) == [0, 1, 2, 3, 4, 6]


async def test_a_log_is_taken_over_once_though_the_answer_is_lost(own_place: RedisNamespace, proxy: RedisProxy) -> None:
    async with own_place.scene(proxy.url) as scene:
        first = await scene.acquire(LOG)
        lost = proxy.lose_reply(b"EVAL")
        assert (await scene.acquire(LOG)).epoch == first.epoch + 1
        assert lost.is_set()
        await scene.fill(LOG, 1)
        assert await scene.read_all(LOG) == [0]
