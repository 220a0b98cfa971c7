"""The registry on real servers: two programs, a full memory, lost answers, areas."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from faults.redis.proxy import RedisProxy
from korvet_fast.errors import StoreError
from korvet_fast.store.redis.connection.topology import Topology
from korvet_fast.store.redis.connection.url import parse_url
from korvet_fast.store.redis.registry import Registry
from korvet_fast.store.types import ABSENT
from redis_cluster import Cluster
from redis_server import RedisServer


@asynccontextmanager
async def open_registry(url: str) -> AsyncIterator[Registry]:
    topology = Topology(parse_url(url))
    await topology.open()
    try:
        yield Registry(topology)
    finally:
        await topology.close()


async def test_of_two_programs_one_wins(redis_server: RedisServer) -> None:
    async with open_registry(redis_server.url) as one, open_registry(redis_server.url) as two:
        for number in range(20):
            key = f"race/{number}"
            won = await asyncio.gather(one.save(key, b"1", ABSENT), two.save(key, b"2", ABSENT))
            assert sum(won) == 1
            assert await one.load(key) == await two.load(key) == (b"1" if won[0] else b"2")


async def test_each_area_has_its_own_changes(redis_server: RedisServer) -> None:
    async with open_registry(redis_server.url) as one, open_registry(redis_server.url) as two:
        assert await one.save("alone", b"x", ABSENT)
        assert await one.save("topics/a", b"1", ABSENT)
        before = await two.version("topics/"), await two.version("brokers/")
        assert await one.save("brokers/1", b"2", ABSENT)
        assert await two.version("topics/") == before[0]
        assert await two.version("brokers/") != before[1]
        assert await two.scan("topics/") == {"topics/a": b"1"}
        assert await two.scan("brokers/") == {"brokers/1": b"2"}
        assert await two.load("alone") == b"x"
        assert await two.load("topics/b") is None


async def test_a_full_memory_refuses_new_keys_and_lets_old_ones_live(start_redis: Callable[..., RedisServer]) -> None:
    server = start_redis()
    async with open_registry(server.url) as registry:
        assert await registry.save("brokers/1", b"beat 9", ABSENT)
        assert await registry.save("topics/old", b"one", ABSENT)
        server.call("CONFIG", "SET", "maxmemory", 1)
        with pytest.raises(StoreError, match="OOM"):
            await registry.save("topics/t", b"new", ABSENT)
        with pytest.raises(StoreError, match="OOM"):
            await registry.save("topics/old", bytes(1000), b"one")
        assert await registry.save("brokers/2", b"beat 1", ABSENT)  # a broker may start
        assert await registry.save("brokers/1", b"beat 10", b"beat 9")
        assert await registry.scan("brokers/") == {"brokers/1": b"beat 10", "brokers/2": b"beat 1"}
        assert await registry.save("brokers/1", ABSENT, b"beat 10")
        assert await registry.scan("brokers/") == {"brokers/2": b"beat 1"}


async def test_a_save_of_which_the_answer_was_lost_is_carried_out_once(
    redis_server: RedisServer, proxy: RedisProxy
) -> None:
    async with open_registry(f"redis://127.0.0.1:{proxy.port}") as registry:
        assert await registry.save("a/b", b"1", ABSENT)
        for value, expected in ((b"2", b"1"), (ABSENT, b"2")):
            cut = proxy.cut_reply(b"EVAL", 0)
            assert await registry.save("a/b", value, expected)
            assert cut.is_set()
        assert await registry.load("a/b") is None


async def test_areas_live_on_their_own_masters(redis_cluster: Cluster) -> None:
    async with open_registry(redis_cluster.url) as registry:
        for area in ("topics", "brokers", "state"):
            assert await registry.save(f"{area}/1", area.encode(), ABSENT)
        for area in ("topics", "brokers", "state"):
            assert await registry.scan(f"{area}/") == {f"{area}/1": area.encode()}
