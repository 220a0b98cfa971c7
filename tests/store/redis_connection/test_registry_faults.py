"""The registry where answers are lost, servers die and slots move: no save is lost, none is carried out twice."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from faults.redis.proxy import RedisProxy
from korvet_fast.errors import StoreError
from korvet_fast.store.redis.registry import Registry
from redis_cluster import Cluster
from redis_server import RedisServer
from store.redis_connection.scene import Scene, scene


@asynccontextmanager
async def registry_at(url: str) -> AsyncIterator[tuple[Registry, Scene]]:
    """A registry, and the connections below it."""
    async with scene(url) as there:
        yield Registry(there.topology), there


async def test_compare_and_set(redis_server: RedisServer) -> None:
    async with registry_at(redis_server.url) as (registry, _):
        assert await registry.load("a") is None
        assert not await registry.save("a", b"1", b"0")
        assert await registry.save("a", b"1", None)
        assert not await registry.save("a", b"2", None)
        assert await registry.save("a", b"\0\xff\r\n", b"1")
        assert await registry.load("a") == b"\0\xff\r\n"
        assert not await registry.save("a", None, b"1")
        assert await registry.save("a", None, b"\0\xff\r\n")
        assert await registry.load("a") is None
        assert not await registry.save("a", None, b"1")
        assert await registry.save("a", None, None)
        assert await registry.save("a", b"", None)
        assert await registry.load("a") == b""
        assert not await registry.save("a", b"1", None)
        assert await registry.save("a", b"1", b"")


async def test_a_new_history_is_another_number(redis_server: RedisServer) -> None:
    async with registry_at(redis_server.url) as (registry, there):
        await registry.save("n/a", b"1", None)
        before = await registry.version("n/")
        redis_server.restart()
        await there.lose("k")
        assert await registry.version("n/") != before
        assert await registry.load("n/a") == b"1"


@pytest.mark.parametrize("command", [["FLUSHALL"], ["DEL", "korvet:@registry:n"]], ids=lambda words: words[0])
@pytest.mark.parametrize("again", [False, True])
async def test_an_emptied_server_is_noticed_even_where_others_have_filled_it_again(
    redis_server: RedisServer, command: list[str], again: bool
) -> None:
    """Once, and also by those who see the same number of changes as before."""
    async with registry_at(redis_server.url) as (registry, there), registry_at(redis_server.url) as (other, _):
        assert await registry.scan("n/") == {}
        assert await registry.save("n/a", b"1", None)
        before = await registry.version("n/")
        assert await registry.save("n/a", b"2", b"1")
        assert await registry.version("n/") != before
        redis_server.call(*command)
        if again:
            assert await other.save("n/a", b"1", None)
            assert await other.save("n/a", b"2", b"1")
        with pytest.raises(StoreError, match="was emptied while it ran"):
            await registry.version("n/")
        assert there.topology.generation == 1
        assert [line for line in there.told if "FLUSHALL" in line] == there.told
        assert await registry.scan("n/") == ({"n/a": b"2"} if again else {})
        assert there.topology.generation == 1


async def test_a_registry_of_an_earlier_version_has_no_lineage(redis_server: RedisServer) -> None:
    redis_server.call("HSET", "korvet:@registry:n", "n/a", "1", "@version", "7")
    async with registry_at(redis_server.url) as (registry, there):
        assert await registry.scan("n/") == {"n/a": b"1"}
        assert await registry.save("n/a", b"2", b"1")
        assert await registry.version("n/") == 8
        redis_server.call("FLUSHALL")
        with pytest.raises(StoreError, match="was emptied while it ran"):
            await registry.scan("n/")
        assert there.topology.generation == 1


async def test_of_many_who_count_together_each_counts_once(redis_server: RedisServer) -> None:
    async def count(registry: Registry, times: int) -> None:
        while times:
            present = await registry.load("n")
            times -= await registry.save("n", b"%d" % (int(present or 0) + 1), present)

    async with registry_at(redis_server.url) as (registry, _), registry_at(redis_server.url) as (other, _):
        await asyncio.gather(*(count(each, 25) for each in (registry, other, registry, other)))
        assert await registry.load("n") == b"100"


async def test_a_save_whose_answer_was_lost_is_known(redis_server: RedisServer, proxy: RedisProxy) -> None:
    async with registry_at(proxy.url) as (registry, _):
        for expected, value in ((None, b"1"), (b"1", b"1"), (b"1", b"2"), (b"2", None)):
            lost = proxy.lose_reply(b"EVAL")
            assert await registry.save("a", value, expected)
            assert lost.is_set()
            assert await registry.load("a") == value
        lost = proxy.lose_reply(b"EVAL")
        assert not await registry.save("a", b"2", b"1")
        assert lost.is_set()
        # Each of the four was carried out once.
        assert redis_server.call("HGET", "korvet:@registry:", "@version") == b"4"


async def test_a_save_that_never_arrived_is_sent_again(redis_server: RedisServer, proxy: RedisProxy) -> None:
    async with registry_at(proxy.url) as (registry, _):
        cut = proxy.cut_request(b"EVAL", 20)
        assert await registry.save("a", b"1", None)
        assert cut.is_set()


async def test_what_was_saved_survives_kill_9(redis_server: RedisServer) -> None:
    """`redis_server` flushes before it answers."""
    async with registry_at(redis_server.url) as (registry, there):

        async def save(number: int) -> None:
            assert await registry.save(f"key/{number}", b"v", None)

        saves = [asyncio.create_task(save(number)) for number in range(200)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        redis_server.restart()
        await asyncio.gather(*saves)
        assert len(await registry.scan("key/")) == 200
        assert there.topology.generation == 1


async def test_a_namespace_of_its_own(redis_server: RedisServer) -> None:
    async with registry_at(redis_server.url) as (one, _), registry_at(redis_server.url + "?namespace=two") as (two, _):
        assert await one.save("a", b"1", None)
        assert await two.save("a", b"2", None)
        assert await one.scan("") == {"a": b"1"}
    assert sorted(redis_server.call("KEYS", "[kt]*")) == [b"korvet:@registry:", b"two:@registry:"]


async def test_in_a_cluster(redis_cluster: Cluster) -> None:
    slot = redis_cluster.slot("korvet:@registry:")
    target = redis_cluster.nodes[(redis_cluster.nodes.index(redis_cluster.owner(slot)) + 1) % 3]
    async with registry_at(redis_cluster.url) as (registry, _):
        assert await registry.save("a", b"1", None)
        moves = redis_cluster.move(slot, target)
        next(moves)
        assert await registry.save("a", b"2", b"1")
        next(moves)  # one of its two keys
        late = asyncio.create_task(registry.save("a", b"3", b"2"))
        await asyncio.sleep(0.05)
        for _ in moves:
            pass
        assert await late
        assert await registry.load("a") == b"3"
