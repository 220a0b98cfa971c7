"""Masters found, lost, replaced, redirected to: against real servers, Sentinels and a Cluster."""

import asyncio
from collections.abc import Callable

import pytest

from faults.redis.proxy import RedisProxy
from korvet_fast._native import ReplyError
from korvet_fast.errors import StoreError
from korvet_fast.store.redis.connection.clients import CommandError
from korvet_fast.store.redis.connection.pipeline import PipelineDown, PipelineLost
from korvet_fast.store.redis.connection.topology import is_retriable
from redis_cluster import Cluster
from redis_sentinels import Sentinels
from redis_server import RedisServer
from store.redis_connection.scene import scene


async def test_a_server_is_used(redis_server: RedisServer) -> None:
    async with scene(redis_server.url) as there:
        assert await there.ask("k", "INCR", "n") == 1
        assert await there.call("GET", "n") == b"1"
        with pytest.raises(CommandError, match="refuses INCR"):
            await there.call("INCR", "k", "k")
        assert [str(master) for master in there.topology.masters()] == [f"127.0.0.1:{redis_server.port}"]
        assert there.told == []
    with pytest.raises(PipelineDown, match="is not connected"):
        there.topology.pipeline("k")


async def test_a_server_that_is_not_there(redis_server: RedisServer) -> None:
    redis_server.stop()
    with pytest.raises(StoreError, match="Connection refused"):
        async with scene(redis_server.url):
            raise AssertionError("it opened")


async def test_a_restart_is_a_new_history(redis_server: RedisServer) -> None:
    async with scene(redis_server.url) as there:
        old = there.topology.pipeline("k")
        redis_server.restart()
        await there.lose("k")
        assert there.topology.generation == 1
        assert there.told == [f"127.0.0.1:{redis_server.port} was restarted"]
        assert there.topology.pipeline("k") is not old
        assert await there.ask("k", "INCR", "n") == 1


async def test_a_connection_cut_is_no_new_history(redis_server: RedisServer, proxy: RedisProxy) -> None:
    async with scene(proxy.url) as there:
        lost = proxy.lose_reply(b"INCR")
        with pytest.raises(PipelineLost):
            await there.ask("k", "INCR", "n")
        assert lost.is_set()
        await asyncio.gather(*(there.topology.repair("k", "lost") for _ in range(50)))
        assert await there.ask("k", "INCR", "n") == 2
        assert there.topology.generation == 0
        assert proxy.accepted == 2


async def test_the_watch_connects_again_by_itself(redis_server: RedisServer) -> None:
    async with scene(redis_server.url) as there:
        redis_server.restart()
        await there.until(lambda: there.topology.generation == 1)
        assert await there.ask("k", "PING") == "PONG"


async def test_a_server_that_stays_away_is_given_up(redis_server: RedisServer) -> None:
    async with scene(redis_server.url) as there:
        redis_server.kill()
        with pytest.raises(StoreError, match=r"Connection refused \(is it running there\?\); waited 2 s for it"):
            there.within = 2.0
            await there.lose("k")
        redis_server.start()
        await there.topology.repair("k", "lost")


async def test_closing_ends_repairs(redis_server: RedisServer) -> None:
    async with scene(redis_server.url) as there:
        redis_server.kill()
        repairs = [asyncio.create_task(there.lose("k")) for _ in range(3)]
        await asyncio.sleep(0.1)
        await there.topology.close()
        for repair in repairs:
            with pytest.raises(StoreError, match="the store is closed"):
                await repair


async def test_a_server_that_is_stopped_is_given_up(redis_server: RedisServer) -> None:
    async with scene(f"{redis_server.url}?socket_timeout=5") as there:
        redis_server.pause()
        with pytest.raises(PipelineLost, match="did not answer"):
            await there.ask("k", "PING")
        with pytest.raises(StoreError, match=r"waited 0\.1 s for it"):
            await there.topology.repair("k", "lost", within=0.1)
        redis_server.resume()
        await there.topology.repair("k", "lost")
        assert there.topology.generation == 0


async def test_a_server_that_loads_is_waited_for(redis_server: RedisServer) -> None:
    """F13: it answers INFO, and nothing else."""
    redis_server.call("CONFIG", "SET", "appendfsync", "no")
    redis_server.call("CONFIG", "SET", "rdbcompression", "no")
    redis_server.call("DEBUG", "POPULATE", 6000, "key", 250)  # of them it loads four, then looks who is there
    redis_server.call("BGREWRITEAOF")
    redis_server.wait_for("persistence", aof_rewrite_in_progress="0", aof_rewrite_scheduled="0")
    # Ten milliseconds for each key: it loads for a minute, unless it is told that it shall be quick.
    redis_server.options |= {"key-load-delay": 10_000, "loading-process-events-interval-bytes": 1024}
    async with scene(redis_server.url) as there:
        redis_server.stop()
        redis_server.start(loaded=False)
        there.within = 5.0
        with pytest.raises(StoreError, match="is loading its data"):
            await there.lose("k")
        redis_server.call("CONFIG", "SET", "key-load-delay", 0)
        there.within = 120.0
        await there.lose("k")
        assert await there.ask("k", "DBSIZE") == 6000
        assert there.topology.generation == 1


async def test_the_first_replica_is_no_new_history(start_redis: Callable[..., RedisServer]) -> None:
    """The first replica gives the master a new replid all the same."""
    master, replica = start_redis(), start_redis()
    async with scene(master.url) as there:
        before = there.topology.replication_history(there.topology.masters()[0])
        replica.follow(master)
        await there.until(lambda: there.topology.replication_history(there.topology.masters()[0]) != before)
        assert there.topology.generation == 0


async def test_a_master_that_was_a_replica_meanwhile_is_a_new_history(start_redis: Callable[..., RedisServer]) -> None:
    master, other = start_redis(), start_redis()
    other.call("SET", "k", "other")
    async with scene(master.url) as there:
        master.follow(other)
        error = await there.ask("k", "SET", "k", "v")
        assert isinstance(error, ReplyError)
        assert is_retriable(error.message)
        with pytest.raises(StoreError, match="is a replica; name its master, or let Sentinels find it"):
            await there.topology.repair("k", error.message, within=2.0)
        master.promote()
        await there.topology.repair("k", error.message)
        assert there.topology.generation == 1
        assert "was made a master anew" in there.told[0]
        assert await there.ask("k", "GET", "k") == b"other"


async def test_a_failover_by_sentinels(redis_sentinels: Sentinels) -> None:
    """F16: the new master is found, the connection to the old one dropped, one new history."""
    async with scene(redis_sentinels.url) as there:
        old = there.topology.pipeline("k")
        assert await there.ask("k", "SET", "k", "v") == "OK"
        was = redis_sentinels.master
        while redis_sentinels.replica.call("GET", "k") != b"v":
            await asyncio.sleep(0.01)
        now = redis_sentinels.failover()
        await there.topology.repair("k", "READONLY You can't write against a read only replica.")
        assert not old.up
        assert [str(master) for master in there.topology.masters()] == [f"127.0.0.1:{now.port}"]
        assert await there.ask("k", "GET", "k") == b"v"
        assert there.topology.generation == 1
        assert f"127.0.0.1:{now.port} took over from 127.0.0.1:{was.port}: what was written from" in there.told[0]


async def test_the_watch_sees_a_failover(redis_sentinels: Sentinels) -> None:
    async with scene(redis_sentinels.url) as there:
        redis_sentinels.failover()
        await there.until(lambda: there.topology.generation == 1)
        assert await there.ask("k", "SET", "k", "v") == "OK"


async def test_a_dead_sentinel_is_no_matter_and_a_wrong_name_is(redis_sentinels: Sentinels) -> None:
    redis_sentinels.watchers[0].kill()
    async with scene(redis_sentinels.url) as there:
        assert await there.ask("k", "PING") == "PONG"
    with pytest.raises(StoreError, match="no Sentinel tells a master named 'other'"):
        async with scene(redis_sentinels.url.replace("/korvet", "/other")):
            raise AssertionError("it opened")


async def test_a_cluster_has_a_pipeline_for_every_node(redis_cluster: Cluster) -> None:
    first = redis_cluster.nodes[0]
    async with scene(f"redis+cluster://127.0.0.1:{first.port}") as there:
        assert sorted(master.port for master in there.topology.masters()) == sorted(n.port for n in redis_cluster.nodes)
        for number in range(30):
            key = f"korvet:orders:{number}"
            assert await there.ask(f"{{{key}}}:@state", "SET", key, number) == "OK"
            assert await there.call("GET", key, key=key) == b"%d" % number


async def test_a_slot_that_moves_is_followed(redis_cluster: Cluster) -> None:
    """F19: ASK while it moves, MOVED when it has; both for one key at a time."""
    key, other = "{tag}:one", "{tag}:two"
    slot = redis_cluster.slot(key)
    target = redis_cluster.nodes[(redis_cluster.nodes.index(redis_cluster.owner(slot)) + 1) % 3]
    async with scene(redis_cluster.url) as there:
        for each in (key, other):
            assert await there.ask(each, "SET", each, each) == "OK"
        for moved in redis_cluster.move(slot, target):
            if not moved:
                continue
            error = await there.ask(moved.decode(), "GET", moved)
            assert isinstance(error, ReplyError)
            assert error.message.startswith("ASK ")
            await there.topology.repair(moved.decode(), error.message)
            assert there.topology.pipeline(moved.decode()).asking
            assert await there.ask(moved.decode(), "GET", moved) == moved
            (rest,) = {key, other} - {moved.decode()}
            if there.topology.pipeline(rest).asking:
                continue
            assert await there.ask(rest, "GET", rest) == rest.encode()
        for each in (key, other, "{tag}:three"):
            await there.insist(each, "SETNX", each, each)
            assert await there.ask(each, "GET", each) == each.encode()
        await there.until(lambda: there.topology.master(key).port == target.port)
        assert not there.topology.pipeline(key).asking
        assert there.topology.generation == 0


async def test_two_keys_of_which_one_has_moved(redis_cluster: Cluster) -> None:
    key, other = "{tag}:one", "{tag}:two"
    slot = redis_cluster.slot(key)
    target = redis_cluster.nodes[(redis_cluster.nodes.index(redis_cluster.owner(slot)) + 1) % 3]
    async with scene(redis_cluster.url) as there:
        await there.ask(key, "MSET", key, 1, other, 2)
        steps = redis_cluster.move(slot, target)
        next(steps)
        next(steps)
        error = await there.ask(key, "MGET", key, other)
        assert isinstance(error, ReplyError)
        assert error.message.startswith("TRYAGAIN ")
        await there.topology.repair(key, error.message)  # nothing better to do than to try again
        for _ in steps:
            pass
        assert await there.insist(key, "MGET", key, other) == [b"1", b"2"]


async def test_a_cluster_whose_other_node_is_lost_serves_what_it_may(redis_cluster: Cluster) -> None:
    key = "korvet:orders:0"
    owner = redis_cluster.owner(redis_cluster.slot(key))
    lost = redis_cluster.nodes[(redis_cluster.nodes.index(owner) + 1) % 3]
    for node in redis_cluster.nodes:
        node.call("CONFIG", "SET", "cluster-require-full-coverage", "no")
    async with scene(redis_cluster.url) as there:
        lost.kill()
        await there.ask(key, "SET", key, 1)
        await there.topology.repair(key, "READONLY You can't write against a read only replica.")
        assert await there.ask(key, "GET", key) == b"1"


async def test_a_cluster_without_one_of_its_nodes(redis_cluster: Cluster) -> None:
    key = "korvet:orders:0"
    lost = redis_cluster.owner(redis_cluster.slot(key))
    async with scene(redis_cluster.url) as there:
        lost.kill()
        with pytest.raises(StoreError, match=r"waited 0\.5 s for it"):
            there.within = 0.5
            await there.lose(key)
        lost.start()
        await there.topology.repair(key, "lost")
        assert await there.insist(key, "SET", key, 1) == "OK"
        assert there.topology.generation == 1
