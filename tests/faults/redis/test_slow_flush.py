"""A Redis whose disk is slow to flush (reliability F04, F14): losses are those that were told, and nobody hangs up."""

import time
from collections.abc import Callable
from functools import partial

import pytest

from broker_process import BrokerProcess
from faults.conftest import Flushes
from faults.redis.conftest import LAYOUTS
from faults.redis.load import Load, create_topic
from faults.redis.log import reported
from faults.redis.replicas import read_lengths, wait_for_appends
from redis_server import PROGRAMS, RedisServer

SLOW = 0.02  # seconds more, of each flush
FEW = 2  # connections that a broker may give up by the way; where calls were late it gives up one after the other
Serve = Callable[..., BrokerProcess]
StartRedis = Callable[..., RedisServer]
# Only its WAITAOF waits for the flush.
truthful = pytest.mark.parametrize("pair", [(PROGRAMS[1], layout) for layout in LAYOUTS], ids="-".join, indirect=True)


def hang(server: RedisServer, flushes: Flushes) -> None:
    """Until a flush hangs: from now on Redis keeps for two seconds what it should write to its file."""
    flushes.hang()
    server.wait_for("persistence", aof_pending_bio_fsync="1")


def test_kill_9_while_a_flush_hangs_is_told(serve: Serve, start_redis: StartRedis, flushes: Flushes) -> None:
    """F04 at D1: acknowledged records are lost, these are reported, and their offsets are not given out again."""
    server = start_redis(appendonly="yes", appendfsync="everysec", before=flushes.before)
    broker = serve(server.url)
    create_topic(broker.bootstrap, "load", 2)
    load = Load(broker.bootstrap)
    with load.running():
        load.wait_for(100)
        for _ in range(20):  # the two seconds may just have been over
            hang(server, flushes)
            load.wait_for(20)
            server.kill()
            flushes.heal()
            server.start()
            load.wait_for(50)
            if reported(broker, "load"):
                break
    assert load.check(broker.port, may_lose=partial(reported, broker, "load"))


def count_ended(server: RedisServer) -> int:
    """How many connections have ended."""
    found = server.info()
    return int(found["total_connections_received"]) - int(found["connected_clients"])


@truthful
def test_kill_9_while_a_flush_hangs_loses_nothing_that_was_waited_for(
    serve: Serve, start_redis: StartRedis, flushes: Flushes
) -> None:
    """F04 at D2: what is not flushed is not acknowledged."""
    server = start_redis(appendonly="yes", appendfsync="everysec", before=flushes.before)
    broker = serve(server.url)
    create_topic(broker.bootstrap, "load", 2, durability="fsync")
    load = Load(broker.bootstrap)
    with load.running():
        for number in range(2):
            load.wait_for(50)
            hang(server, flushes)
            load.add_writer(f"late{number}")
            wait_for_appends(server, read_lengths(server))  # written there, and flushed nowhere
            server.kill()
            flushes.heal()
            server.start()
        load.wait_for(50)
    assert load.check(broker.port) == set()


def measure_quickest(server: RedisServer) -> float:
    """The seconds of the quickest of ten writes, each of which is flushed before it is answered."""
    seconds = []
    for _ in range(10):
        began = time.monotonic()
        server.call("SET", "probe", "")
        seconds.append(time.monotonic() - began)
    return min(seconds)


def test_files_are_written_anew_on_a_slow_disk(serve: Serve, start_redis: StartRedis, flushes: Flushes) -> None:
    """F14: BGREWRITEAOF and BGSAVE under load. Nothing is lost, and no calls are so late that the broker reconnects."""
    server = start_redis(appendonly="yes", before=flushes.before, rdb_key_save_delay=500)
    server.call("DEBUG", "POPULATE", 10_000, "filler", 1000)  # half a millisecond each
    broker = serve(server.url)
    create_topic(broker.bootstrap, "load", 2)
    load = Load(broker.bootstrap)
    with load.running():
        load.wait_for(50)
        flushes.slow_down()
        assert measure_quickest(server) >= SLOW
        before = count_ended(server)
        for command, done in (("BGREWRITEAOF", "aof_rewrite_in_progress"), ("BGSAVE", "rdb_bgsave_in_progress")):
            server.call(command)
            server.wait_for("persistence", **{done: "1"})
            acknowledged = len(load.history.acknowledged)
            server.wait_for("persistence", **{done: "0"})
            assert len(load.history.acknowledged) > acknowledged
        assert count_ended(server) <= before + FEW
        flushes.heal()
        load.wait_for(50)
    assert load.check(broker.port) == set()
    found = server.info("persistence")
    assert (found["aof_last_bgrewrite_status"], found["rdb_last_bgsave_status"]) == ("ok", "ok")
