"""Another server takes a dead master's place (reliability F15, F16): losses are told, offsets never reused."""

from collections.abc import Callable
from functools import partial

from broker_process import BrokerProcess
from faults.redis.load import Load, create_topic
from faults.redis.log import reported
from faults.redis.proxy import RedisProxy
from faults.redis.records import ROOM
from faults.redis.replicas import attach, read_lengths, wait_for_appends
from kafka_server import METADATA, run
from raw_connection import connect
from redis_sentinels import Sentinels
from redis_server import RedisServer

Serve = Callable[..., BrokerProcess]
StartRedis = Callable[..., RedisServer]


def test_two_copies_survive_a_stalled_link(serve: Serve, start_redis: StartRedis) -> None:
    """F15 with min.insync.replicas=2: what the replica does not have is not acknowledged."""
    master, replica, spare = (start_redis(appendonly="yes") for _ in range(3))
    with RedisProxy(master.port, frames=False) as link, RedisProxy(master.port) as proxy:
        attach(replica, master, link.port)
        broker = serve(proxy.url)
        create_topic(broker.bootstrap, "load", 2, min_insync_replicas="2")
        load = Load(broker.bootstrap)
        with load.running():
            load.wait_for(100)
            link.hold()
            load.add_writer("late")
            wait_for_appends(master, read_lengths(replica))  # written there, and to nobody else
            master.kill()
            replica.promote()
            spare.follow(replica)
            copied = read_lengths(replica)
            proxy.target = replica.port
            proxy.reset_all()
            wait_for_appends(replica, copied)
            load.wait_for(100)
        assert load.check(broker.port) == set()


def test_one_copy_is_lost_and_told(serve: Serve, start_redis: StartRedis) -> None:
    """F15 without it: what was acknowledged and never copied is gone, and the broker says exactly what."""
    master, replica = (start_redis(appendonly="yes") for _ in range(2))
    with RedisProxy(master.port, frames=False) as link, RedisProxy(master.port) as proxy:
        attach(replica, master, link.port)
        broker = serve(proxy.url)
        create_topic(broker.bootstrap, "load", 2)
        load = Load(broker.bootstrap)
        with load.running():
            load.wait_for(100)
            link.hold()
            sent = {writer.name: writer.sent for writer in load.writers}
            load.wait_for(200)
            acknowledged = list(load.history.acknowledged)
            master.kill()
            replica.promote()
            copied = read_lengths(replica)
            proxy.target = replica.port
            proxy.reset_all()
            wait_for_appends(replica, copied)
            load.wait_for(100)
        lost = load.check(broker.port, may_lose=partial(reported, broker, "load"))
        never_copied = {value for value in acknowledged if value.number >= sent[value.producer]}
        assert never_copied
        assert never_copied <= lost


def test_a_sentinel_failover_under_load(serve: Serve, redis_sentinels: Sentinels) -> None:
    """F16: the new master is found, epochs rise once for it, and what the replica did not have is told.

    On a busy machine Sentinels may take a master for dead that lives, and that is another failover.
    """
    redis_sentinels.replica.wait_for_stream(redis_sentinels.master)
    broker = serve(redis_sentinels.url)
    create_topic(broker.bootstrap, "load", 2)
    load = Load(broker.bootstrap)
    with load.running():
        load.wait_for(100)
        old = redis_sentinels.master
        old.kill()
        master = redis_sentinels.wait_for_other(old)
        wait_for_appends(master, read_lengths(master))
        load.wait_for(200)
    load.check(broker.port, may_lose=partial(reported, broker, "load"))
    check_epochs(broker)


def test_an_operators_failover_under_load(serve: Serve, redis_sentinels: Sentinels) -> None:
    """F16 with the old master alive: the broker leaves it, though its connection is whole.

    Until then the old one takes writes, which are acknowledged, lost and told.
    """
    redis_sentinels.replica.wait_for_stream(redis_sentinels.master)
    broker = serve(redis_sentinels.url)
    create_topic(broker.bootstrap, "load", 2)
    load = Load(broker.bootstrap)
    with load.running():
        load.wait_for(100)
        master = redis_sentinels.failover()
        wait_for_appends(master, read_lengths(master))
        load.wait_for(200)
    load.check(broker.port, may_lose=partial(reported, broker, "load"))
    check_epochs(broker)


def check_epochs(broker: BrokerProcess) -> None:
    """Those of both partitions rose once for each time that the history of Redis broke, which it did."""
    breaks = count_breaks(broker)
    assert breaks
    assert epochs(broker) == [ROOM * breaks] * 2


def count_breaks(broker: BrokerProcess) -> int:
    """How often it has told that the history of Redis broke: Sentinels that are slow may turn back and try again."""
    return sum('"error", "logger": "korvet_fast.core.broker"' in line for line in broker.log)


def epochs(broker: BrokerProcess) -> list[int]:
    """The leader epochs of the topic's two partitions, which were led for the first time under epoch 0."""
    found: list[int] = []

    async def ask() -> None:
        async with connect(broker.port) as client:
            answer = await client.ask(METADATA, 9, topics=[{"name": "load"}])
            rows = sorted(answer["topics"][0]["partitions"], key=lambda row: row["partition_index"])
            found.extend(row["leader_epoch"] for row in rows)

    run(ask)
    return found
