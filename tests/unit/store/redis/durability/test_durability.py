"""A server's durability, read from its own state: the ladder, the words, the sync to wait for."""

import asyncio
from typing import Any

import pytest

from korvet_fast.errors import StoreError
from korvet_fast.store.redis.connection.clients import CommandError
from korvet_fast.store.redis.durability.durability import (
    LADDER,
    Need,
    Server,
    check,
    durability_error,
    explain,
    level,
    need,
    probe,
    raising,
    read_server,
    summarise,
)

OLD = Server("redis", (7, 0, 15), True, "always", False, "noeviction", 0, 0)
NEW = OLD._replace(version=(8, 2, 3))
INFO = {
    "redis_version": "7.2.4",
    "aof_enabled": "1",
    "maxmemory_policy": "noeviction",
    "used_memory": "1000",
    "maxmemory": "2000",
    "slave0": "ip=10.0.0.1,port=6379,state=online,offset=70,lag=1",
    "slave1": "ip=10.0.0.2,port=6379,state=online,offset=70,lag=11",
    "slave2": "ip=10.0.0.3,port=6379,state=send_bulk,offset=0,lag=0",
    "slave_expires_tracked_keys": "0",
}
CONFIG = {"appendfsync": "everysec", "no-appendfsync-on-rewrite": "yes", "min-replicas-to-write": "2"}


def test_a_server_is_read() -> None:
    server = read_server(INFO, CONFIG)
    assert server == Server("redis", (7, 2, 4), True, "everysec", True, "noeviction", 1, 2, "", 1000, 2000)
    valkey = read_server({**INFO, "server_name": "valkey", "valkey_version": "8.1.0"}, {})
    assert (valkey.name, valkey.version, valkey.flush, valkey.product) == ("valkey", (8, 1, 0), "", "Valkey 8.1.0")


@pytest.mark.parametrize(
    ("info", "words"),
    [
        ({"aof_last_write_status": "err"}, "cannot write its append-only file"),
        ({"aof_enabled": "0", "rdb_last_bgsave_status": "err"}, "its last snapshot failed"),
        ({"rdb_last_bgsave_status": "err"}, ""),
    ],
)
def test_files_that_fail(info: dict[str, str], words: str) -> None:
    assert words in read_server({**INFO, **info}, CONFIG).failing


def test_what_we_may_not_see_is_unknown() -> None:
    async def call(*command: str) -> Any:
        if command[0] == "CONFIG":
            raise CommandError("NOPERM")
        return "\r\n".join(f"{name}:{value}" for name, value in INFO.items()).encode()

    assert asyncio.run(probe(call)).flush == ""


@pytest.mark.parametrize(
    ("server", "sync", "copies", "reached", "wanted"),
    [
        (OLD, False, 1, 2, None),
        (OLD, True, 1, 2, None),
        (NEW, True, 1, 2, None),
        (OLD._replace(flush="everysec"), False, 1, 1, None),
        (NEW._replace(flush="everysec"), False, 1, 1, None),
        (NEW._replace(flush="everysec"), True, 1, 2, Need(flushed=True, here=True, replicas=0)),
        (NEW._replace(flush=""), True, 1, 2, Need(flushed=True, here=True, replicas=0)),
        (OLD._replace(file=False), False, 1, 0, None),
        (OLD._replace(pauses=True), False, 1, 1, None),
        (OLD._replace(replicas=1), True, 2, 3, Need(flushed=False, here=False, replicas=1)),
        (NEW._replace(replicas=2), True, 2, 3, Need(flushed=True, here=False, replicas=1)),
        (NEW._replace(replicas=2), False, 3, 3, Need(flushed=False, here=False, replicas=2)),
        (NEW._replace(flush="everysec", replicas=1), True, 2, 3, Need(flushed=True, here=True, replicas=1)),
        (NEW._replace(flush="everysec", replicas=1), False, 2, 1, Need(flushed=False, here=False, replicas=1)),
    ],
)
def test_the_ladder(server: Server, sync: bool, copies: int, reached: int, wanted: Need | None) -> None:
    assert durability_error(server, sync, copies) == ""
    assert level(server, sync, copies) == reached
    assert need(server, sync, copies) == wanted
    lines = explain(server, sync, copies)
    assert [line for line in lines if line.startswith("> ")] == [f"> D{reached}  {LADDER[reached]}"]
    assert LADDER[reached] in summarise(server, sync, copies)


@pytest.mark.parametrize(
    ("server", "sync", "copies", "words"),
    [
        (OLD._replace(file=False), True, 1, "set appendonly yes and appendfsync always"),
        (OLD._replace(flush="everysec"), True, 1, "Redis 7.0.15 has appendfsync everysec, and no WAITAOF that can be"),
        (OLD._replace(flush="everysec"), True, 1, "set appendfsync always, or use Redis 8.0.2, Valkey 8.1 or newer"),
        (
            OLD._replace(version=(7, 4, 2), flush="no"),
            True,
            1,
            "has appendfsync no, and no WAITAOF that can be relied on",
        ),
        (OLD._replace(name="valkey", version=(8, 0, 1), flush="everysec"), True, 1, "no WAITAOF that can be relied on"),
        (OLD._replace(flush=""), True, 1, "does not let us see appendfsync (CONFIG GET)"),
        (NEW._replace(pauses=True), True, 1, "set no-appendfsync-on-rewrite no"),
        (NEW, False, 2, "min.insync.replicas=2 asks for 1 replica of the Redis server, and there are 0 now"),
        (NEW._replace(wanted=1), False, 1, "min-replicas-to-write is 1, and it has no replicas"),
        (NEW._replace(policy="allkeys-lru"), False, 1, "set maxmemory-policy noeviction"),
        (NEW._replace(version=(6, 2, 7)), False, 1, "7.0 is the oldest that can be used"),
    ],
)
def test_what_cannot_be_kept_is_said_with_the_setting_that_helps(
    server: Server, sync: bool, copies: int, words: str
) -> None:
    assert words in durability_error(server, sync, copies)


@pytest.mark.parametrize(
    ("server", "sync", "copies", "words"),
    [
        (OLD._replace(file=False), False, 1, "To reach D2: Redis 7.0.15 keeps no append-only file: set appendonly yes"),
        (OLD._replace(flush="everysec"), False, 1, "set appendfsync always, or use Redis 8.0.2"),
        (NEW._replace(flush="everysec"), False, 1, "appendfsync always on the server, or durability=fsync here"),
        (NEW, False, 1, "To reach D3: min.insync.replicas=2, with two replicas or more"),
        (NEW._replace(replicas=1), False, 1, "(it has 1 replica now)"),
        (NEW._replace(replicas=1), False, 2, "More copies: a higher min.insync.replicas"),
    ],
)
def test_what_would_raise_it(server: Server, sync: bool, copies: int, words: str) -> None:
    assert words in raising(server, sync, copies)


def test_a_server_that_must_not_be_used() -> None:
    check(NEW, "here")
    with pytest.raises(StoreError, match="here cannot keep records: its maxmemory-policy is allkeys-lfu"):
        check(NEW._replace(policy="allkeys-lfu"), "here")
