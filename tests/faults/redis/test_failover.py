"""Another server takes a dead master's place (reliability F15, F16): losses are told, offsets never reused."""

import re
import time
from collections.abc import Callable

from broker_process import BrokerProcess
from faults.redis.load import Load, create_topic
from faults.redis.proxy import RedisProxy
from history import Place
from kafka_server import METADATA, run
from raw_connection import connect
from redis_sentinels import Sentinels
from redis_server import RedisServer

Serve = Callable[..., BrokerProcess]
StartRedis = Callable[..., RedisServer]
LOST = re.compile(r":(\d+): records were lost: offsets (\d+) to (\d+)")


def reported(broker: BrokerProcess) -> set[Place]:
    """Every place that the broker's log tells to be lost."""
    places: set[Place] = set()
    for line in broker.log:
        for partition, first, last in LOST.findall(line):
            places |= {(int(partition), offset) for offset in range(int(first), int(last) + 1)}
    return places


def replicate(master: RedisServer, replica: RedisServer, link: RedisProxy) -> None:
    """`replica` follows `master` through `link`."""
    replica.call("REPLICAOF", "127.0.0.1", link.port)
    replica.wait_for("replication", role="slave", master_link_status="up")


def test_two_copies_survive_a_stalled_link(serve: Serve, start_redis: StartRedis) -> None:
    """F15 with min.insync.replicas=2: what the replica does not have is not acknowledged."""
    master, replica, spare = (start_redis(appendonly="yes") for _ in range(3))
    with RedisProxy(master.port, frames=False) as link, RedisProxy(master.port) as door:
        replicate(master, replica, link)
        broker = serve(door.url)
        create_topic(broker.bootstrap, "load", 2, min_insync_replicas="2")
        load = Load(broker.bootstrap)
        with load.running():
            load.wait_for(100)
            link.hold()
            while master.call("XLEN", "korvet:load:0") == replica.call("XLEN", "korvet:load:0"):
                time.sleep(0.005)  # until more is written to the master, and to nobody else
            master.kill()
            replica.promote()
            spare.follow(replica)
            door.target = replica.port
            door.reset_all()
            load.wait_for(100)
        assert load.check(broker.port) == set()


def test_one_copy_is_lost_and_told(serve: Serve, start_redis: StartRedis) -> None:
    """F15 without it: what was acknowledged and never copied is gone, and the broker says exactly what."""
    master, replica = (start_redis(appendonly="yes") for _ in range(2))
    with RedisProxy(master.port, frames=False) as link, RedisProxy(master.port) as door:
        replicate(master, replica, link)
        broker = serve(door.url)
        create_topic(broker.bootstrap, "load", 2)
        load = Load(broker.bootstrap)
        with load.running():
            load.wait_for(100)
            link.hold()
            load.wait_for(100)
            master.kill()
            replica.promote()
            door.target = replica.port
            door.reset_all()
            load.wait_for(100)
        told = reported(broker)
        lost = load.check(broker.port, may_lose=told)
        assert len(lost) >= 300
        assert {load.history.acknowledged[value] for value in lost} <= told


def test_a_sentinel_failover_under_load(serve: Serve, redis_sentinels: Sentinels) -> None:
    """F16: the new master is found, epochs rise, and what the replica did not have is told."""
    broker = serve(redis_sentinels.url)
    create_topic(broker.bootstrap, "load", 2)
    load = Load(broker.bootstrap)
    with load.running():
        load.wait_for(100)
        before = epochs(broker)
        old = redis_sentinels.master
        old.kill()
        redis_sentinels.wait_for_other(old)
        load.wait_for(200)
    load.check(broker.port, may_lose=reported(broker))
    assert [b < a for b, a in zip(before, epochs(broker), strict=True)] == [True, True]


def test_an_operators_failover_under_load(serve: Serve, redis_sentinels: Sentinels) -> None:
    """F16 with the old master alive: the broker leaves it, though its connection is whole."""
    broker = serve(redis_sentinels.url)
    create_topic(broker.bootstrap, "load", 2)
    load = Load(broker.bootstrap)
    with load.running():
        load.wait_for(100)
        master = redis_sentinels.failover()
        deadline = time.monotonic() + 30
        while not master.call("XLEN", "korvet:load:0"):  # the old one takes writes until it hears of it
            assert time.monotonic() < deadline, "nothing is written to the new master"
            load.wait_for(20)
        load.wait_for(200)
    load.check(broker.port, may_lose=reported(broker))


def epochs(broker: BrokerProcess) -> list[int]:
    """The leader epochs of the topic's two partitions."""
    found: list[int] = []

    async def ask() -> None:
        async with connect(broker.port) as client:
            answer = await client.ask(METADATA, 9, topics=[{"name": "load"}])
            rows = sorted(answer["topics"][0]["partitions"], key=lambda row: row["partition_index"])
            found.extend(row["leader_epoch"] for row in rows)

    run(ask)
    return found
