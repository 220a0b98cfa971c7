"""Being told of other programs' records in a Cluster, where each stream may be in a slot of its own."""

import asyncio
from collections.abc import Callable

import pytest

from korvet_fast.store.redis.log import stream_listener
from korvet_fast.store.redis.store import RedisStore
from redis_cluster import Cluster
from store.conftest import LOG_FORMATS
from store.engines import RedisEngine

MANY = 600  # more than are asked for at once


def count_connections(cluster: Cluster) -> int:
    """The connections that brokers hold."""
    return sum(node.call("CLIENT", "LIST").count(b"name=korvet-fast") for node in cluster.nodes)


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(120):
        while not true():
            await asyncio.sleep(0.01)


async def test_finding_2_13_however_many_logs_are_followed_there_are_no_more_connections(
    redis_cluster: Cluster,
) -> None:
    maker = RedisEngine(redis_cluster.url, LOG_FORMATS["entries"])
    store = maker.make()
    await store.open()
    try:
        before = count_connections(redis_cluster)
        logs = [f"many:{number}" for number in range(MANY)]
        told: list[str] = []
        for log in logs:
            store.shared.declare(log, maker.log_format)
            store.shared.notify(log, 0, lambda log=log: told.append(log))
        await asyncio.sleep(1)
        assert count_connections(redis_cluster) == before
        for log in logs[::100]:
            key = f"{maker.namespace}:{log}"
            redis_cluster.owner(redis_cluster.slot(key)).call("XADD", key, "*", "value", "a")
        await until(lambda: len(told) == len(logs[::100]))
        assert sorted(told) == sorted(logs[::100])
        assert count_connections(redis_cluster) == before
    finally:
        await store.close()


async def test_a_slot_that_moves_is_still_followed(redis_cluster: Cluster) -> None:
    maker = RedisEngine(redis_cluster.url, LOG_FORMATS["entries"])
    store = maker.make()
    await store.open()
    try:
        told: list[int] = []
        key = f"{maker.namespace}:orders:0"
        slot = redis_cluster.slot(key)
        store.shared.declare("orders:0", maker.log_format)
        for number in range(20):
            store.shared.declare(f"else:{number}", maker.log_format)
            store.shared.notify(f"else:{number}", 0, lambda: None)
        store.shared.notify("orders:0", 1, lambda: told.append(1))
        owner = redis_cluster.owner(slot)
        owner.call("XADD", key, "0-1", "value", "a")
        await until(lambda: len(told) == 1)
        store.shared.notify("orders:0", 2, lambda: told.append(2))
        for _ in redis_cluster.move(slot, redis_cluster.nodes[(redis_cluster.nodes.index(owner) + 1) % 3]):
            await asyncio.sleep(0.1)
        assert told == [1]
        redis_cluster.owner(slot).call("XADD", key, "*", "value", "b")
        await until(lambda: told == [1, 2])
    finally:
        await store.close()


async def test_logs_that_nobody_reads_are_not_asked_for(
    redis_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_listener, "_BLOCK", 0.2)
    maker = RedisEngine(redis_cluster.url, LOG_FORMATS["entries"])
    store = maker.make()
    await store.open()
    assert isinstance(store, RedisStore)
    try:
        told: list[str] = []
        wanted = {"a:0", "b:0"}
        for log in sorted(wanted):
            store.shared.declare(log, maker.log_format)
            store.shared.notify(log, 0, lambda log=log: told.append(log), lambda log=log: log in wanted)
        await asyncio.sleep(0.5)
        assert told == []
        wanted.clear()
        await until(lambda: sorted(told) == ["a:0", "b:0"])
        listeners = store._stream_listener._listeners.values()
        await until(lambda: all(listener._working is None or listener._working.done() for listener in listeners))
    finally:
        await store.close()
