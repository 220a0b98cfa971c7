"""Logs in a Cluster whose slots move, key by key and while appends go on, and behind Sentinels that fail over."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from korvet_fast.errors import StoreError
from korvet_fast.store.types import LogFormat, NotLeader, OffsetConflict
from redis_cluster import Cluster
from redis_sentinels import Sentinels
from store.conftest import LOG_FORMATS
from store.engines import RedisEngine
from store.redis_log.redis_namespace import LOG
from store.scene import Scene


@asynccontextmanager
async def open_scene(url: str, log_format: LogFormat) -> AsyncIterator[tuple[Scene, str]]:
    """A store of its own over it, and the key of its log."""
    maker = RedisEngine(url, log_format)
    store = maker.make()
    await store.open()
    try:
        yield Scene(store, maker.log_format, maker.origin), f"{maker.namespace}:{LOG}"
    finally:
        await store.close()


async def many_logs(redis_cluster: Cluster, log_format: LogFormat) -> None:
    """Each at its own master; reads and appends of all of them at once."""
    async with open_scene(redis_cluster.url, log_format) as (scene, _):
        logs = [f"many:{number}" for number in range(20)]
        await asyncio.gather(*(scene.acquire(log) for log in logs))
        await asyncio.gather(*(scene.fill(log, 3, 3, sync=True) for log in logs))
        assert await asyncio.gather(*map(scene.read_all, logs)) == [list(range(6))] * 20
        assert all(node.call("DBSIZE") for node in redis_cluster.nodes)
        await asyncio.gather(*map(scene.drop, logs))
        # The version of the schema is all that is left.
        left = [key for node in redis_cluster.nodes for key in node.call("KEYS", "*")]
        assert [key for key in left if b":@registry:schema" not in key] == []


async def slot_moves(redis_cluster: Cluster, log_format: LogFormat) -> None:
    """Between any two keys, appends go on or wait; none is lost, doubled or out of order."""
    async with open_scene(redis_cluster.url, log_format) as (scene, key):
        await scene.acquire(LOG)
        await scene.fill(LOG, 3)
        slot = redis_cluster.slot(key)
        at = 3
        waiting: list[asyncio.Future[None]] = []
        for turn in range(3):
            target = redis_cluster.nodes[(redis_cluster.nodes.index(redis_cluster.owner(slot)) + 1) % 3]
            for moved in redis_cluster.move(slot, target):
                for _ in range(5):
                    waiting.append(scene.append(LOG, at, 2).stored)
                    at += 2
                await asyncio.sleep(0)
                # With both keys on one side, they can be had there; with one on each, they have to wait.
                if moved == b"" or redis_cluster.owner(slot).call("CLUSTER", "COUNTKEYSINSLOT", slot) == 0:
                    await asyncio.gather(*waiting)
                    assert await scene.read_offsets(LOG, at - 2, 1) != []
                    assert (await scene.bounds(LOG)).end == at
            await scene.append(LOG, at, 1).stored
            at += 1
            assert await scene.read_all(LOG) == list(range(at)), turn
        await asyncio.gather(*waiting)
        assert target.call("XLEN", key) == (at if not scene.whole else 1 + len(waiting) + 3)


async def slot_moves_under_load(redis_cluster: Cluster, log_format: LogFormat) -> None:
    """A mover and a writer, each as quick as it can."""
    async with open_scene(redis_cluster.url, log_format) as (scene, key):
        await scene.acquire(LOG)
        slot = redis_cluster.slot(key)
        loop = asyncio.get_running_loop()

        def move() -> None:
            for _ in range(4):
                owner = redis_cluster.nodes.index(redis_cluster.owner(slot))
                for _ in redis_cluster.move(slot, redis_cluster.nodes[(owner + 1) % 3]):
                    pass

        at = 0
        waiting: list[asyncio.Future[None]] = []
        task = loop.run_in_executor(None, move)
        while not task.done() or at < 300:
            waiting.append(scene.append(LOG, at, 1).stored)
            at += 1
            await asyncio.sleep(0.001)
        await task
        await asyncio.gather(*waiting)
        assert await scene.read_all(LOG) == list(range(at))


@pytest.mark.parametrize("check", [many_logs, slot_moves, slot_moves_under_load])
async def test_cluster(redis_cluster: Cluster, check: Callable[[Cluster, LogFormat], Awaitable[None]]) -> None:
    """In one Cluster, both layouts one after the other."""
    for log_format in LOG_FORMATS.values():
        await check(redis_cluster, log_format)


async def test_failover(redis_sentinels: Sentinels, layout: str) -> None:
    """The history breaks: everything under way ends, somebody is told, and no offset is given out again."""
    async with open_scene(redis_sentinels.url, LOG_FORMATS[layout]) as (scene, _):
        told: list[str] = []
        scene.store.shared.on_data_loss(told.append)
        await scene.acquire(LOG)
        acked = (await scene.fill(LOG, *[1] * 50)).end
        old = redis_sentinels.master
        waiting = [scene.append(LOG, acked + number, 1).stored for number in range(3)]
        await asyncio.get_running_loop().run_in_executor(None, redis_sentinels.failover)
        while not told:
            await asyncio.sleep(0.01)
        for future in waiting:
            if future.exception() is None:
                acked += 1
        with pytest.raises(NotLeader):
            scene.append(LOG, acked, 1)
        granted = None
        while granted is None:
            try:
                granted = await scene.acquire(LOG, floor=acked)
            except StoreError:
                await asyncio.sleep(0.01)
        assert granted.bounds.end >= acked
        end = granted.bounds.end
        await scene.append(LOG, end, 1).stored
        assert redis_sentinels.master is not old
        found = await scene.read_all(LOG)
        assert found[-1] == end
        assert found[:-1] == list(range(granted.last_record_end))
        with pytest.raises(OffsetConflict):
            scene.append(LOG, end, 1)
