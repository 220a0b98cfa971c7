"""Committed offsets where Redis fails over (reliability F15, F16), or has no memory (F10): what was acknowledged stays.

A broker that lives knows what it has acknowledged, and writes again what the new master lacks.
"""

import json
import time
from collections.abc import Callable, Iterable

from broker_process import BrokerProcess
from faults.redis.committer import Committer
from faults.redis.proxy import RedisProxy
from faults.redis.records import GROUPS, create_topic
from faults.redis.replicas import attach
from redis_sentinels import Sentinels
from redis_server import RedisServer

Serve = Callable[..., BrokerProcess]
StartRedis = Callable[..., RedisServer]
QUICK = ("broker.heartbeat.interval.ms=300", "broker.session.timeout.ms=3000")
NEWCOMERS = [f"new-{number}" for number in range(8)]


def read_stored(server: RedisServer) -> dict[str, int]:
    """The offsets of groups that Redis has."""
    found = {}
    for place in server.call("KEYS", "korvet:@registry:groups-*"):
        row = server.call("HGETALL", place)
        for key, document in zip(row[::2], row[1::2], strict=True):
            _, _, what = key.decode().partition("/")
            if what.startswith("offset/"):
                found[what.split("/")[1]] = json.loads(document)["offset"]
    return found


def wait_until_stored(server: RedisServer, committer: Committer, groups: Iterable[str] = GROUPS) -> None:
    """Until Redis has what was acknowledged last, or something newer."""
    deadline = time.monotonic() + 240
    while any(read_stored(server).get(group, -1) < committer.acknowledged[group] for group in groups):
        assert time.monotonic() < deadline, (read_stored(server), dict(committer.acknowledged))
        time.sleep(0.02)


def test_commits_that_were_never_copied(serve: Serve, start_redis: StartRedis) -> None:
    """F15: the link stands still, commits are acknowledged, the master dies."""
    master, replica = (start_redis(appendonly="yes") for _ in range(2))
    with RedisProxy(master.port, frames=False) as link, RedisProxy(master.port) as proxy:
        attach(replica, master, link.port)
        broker = serve(proxy.url)
        create_topic(broker)
        with Committer([broker], GROUPS) as committer:
            committer.wait_for(3)
            link.hold()
            committer.wait_for(3)
            master.kill()
            replica.promote()
        assert all(read_stored(replica).get(group, -1) < committer.acknowledged[group] for group in GROUPS)
        proxy.target = replica.port
        proxy.reset_all()
        committer.check()
        wait_until_stored(replica, committer)
        broker.kill()
        broker.start()
        committer.check()


def test_commits_over_a_sentinel_failover(serve: Serve, redis_sentinels: Sentinels) -> None:
    """F16: and they go on."""
    redis_sentinels.replica.wait_for_stream(redis_sentinels.master)
    broker = serve(redis_sentinels.url)
    create_topic(broker)
    with Committer([broker], GROUPS) as committer:
        committer.wait_for(3)
        old = redis_sentinels.master
        old.kill()
        master = redis_sentinels.wait_for_other(old)
        committer.wait_for(3)
    committer.check()
    wait_until_stored(master, committer)
    broker.kill()
    broker.start()
    committer.check()


def test_commits_at_maxmemory(serve: Serve, redis_server: RedisServer) -> None:
    """F10: groups that are there go on, new ones are refused, and another broker takes over what it finds."""
    brokers = [serve(redis_server.url, *QUICK) for _ in range(2)]
    create_topic(brokers[0])
    with Committer(brokers, GROUPS) as committer:
        committer.wait_for(3)
        redis_server.call("CONFIG", "SET", "maxmemory", 1)
        committer.wait_for(3)
        with Committer(brokers, NEWCOMERS) as newcomers:
            newcomers.wait_for_refusal()
            brokers[0].kill()
            committer.wait_for(3)
            assert newcomers.acknowledged == {}
        committer.check()
        newcomers.check()
        assert not set(NEWCOMERS) & read_stored(redis_server).keys()
        redis_server.call("CONFIG", "SET", "maxmemory", 0)
        with Committer(brokers, NEWCOMERS) as later:
            later.wait_for(3)
        later.check()
    committer.check()
