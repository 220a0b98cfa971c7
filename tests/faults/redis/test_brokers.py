"""Several brokers over one Redis (reliability F11, F12, F18, F38): one leads, and the fence decides."""

import os
import time
from collections.abc import Callable
from typing import Any

import pytest

from broker_process import BrokerProcess
from faults.redis.load import Load, create_topic
from faults.redis.proxy import RedisProxy
from faults.redis.refusals import wait_for_more
from faults.redis.replicas import attach, read_lengths
from kafka_server import make_batch, run
from raw_connection import connect, find_leaders
from redis_server import RedisServer

Serve = Callable[..., BrokerProcess]
StartRedis = Callable[..., RedisServer]
# Dead after a second and a half of silence: the machine that runs this may be slow, and a false alarm is no error.
QUICK = ("broker.heartbeat.interval.ms=300", "broker.session.timeout.ms=1500")
PARTITIONS = 6
APPEND = b"EXEC"  # the end of one
ROUNDS = int(os.environ.get("KORVET_TEST_ROLLS", "2"))
# Seconds: shorter than a broker's session and a call; longer than the session; longer than clients and calls wait.
PAUSES = (1, 5, 40)


def bootstrap(brokers: list[BrokerProcess]) -> str:
    return ",".join(broker.bootstrap for broker in brokers)


def leaders(broker: BrokerProcess) -> set[int]:
    """The ports of those who lead partitions, as this broker tells clients; -1 among them where one is not led."""
    found: set[int] = set()

    async def ask() -> None:
        async with connect(broker.port) as client:
            found.update(await find_leaders(client, "load"))

    run(ask)
    return found


def wait_for_leaders(asked: BrokerProcess, expected: list[BrokerProcess]) -> None:
    """Until the partitions are spread over these brokers, no more and no fewer."""
    deadline = time.monotonic() + 240
    while (found := leaders(asked)) != {broker.port for broker in expected}:
        assert time.monotonic() < deadline, found
        time.sleep(0.02)


def produce_at(broker: BrokerProcess) -> dict[str, Any]:
    """What this broker answers to a record for the first partition."""
    answers: list[dict[str, Any]] = []

    async def ask() -> None:
        async with connect(broker.port) as client:
            answers.append(await client.produce("load", make_batch(b"nobody:0")))

    run(ask)
    return answers[0]


def serve_three(serve: Serve, *urls: str) -> list[BrokerProcess]:
    """Three brokers that share the partitions of the topic `load`."""
    found = [serve(url, *QUICK) for url in urls]
    create_topic(found[0].bootstrap, "load", PARTITIONS)
    for broker in found:
        wait_for_leaders(broker, found)
    return found


@pytest.fixture
def brokers(serve: Serve, redis_server: RedisServer) -> list[BrokerProcess]:
    return serve_three(serve, *[redis_server.url] * 3)


def test_a_broker_that_slept_too_long_leads_no_more(serve: Serve, redis_server: RedisServer) -> None:
    """F12: what it had sent when it fell asleep comes when others lead, and is refused; then it takes its part."""
    with RedisProxy(redis_server.port) as link:
        brokers = serve_three(serve, link.url, redis_server.url, redis_server.url)
        sleeper, others = brokers[0], brokers[1:]
        load = Load(bootstrap(brokers), partitions=PARTITIONS)
        with load.running():
            load.wait_for(100)
            come = link.hold()
            wait_for_more(lambda: link.trace[come:].count(APPEND), 0, "it appends nothing")
            sleeper.pause()
            for other in others:
                wait_for_leaders(other, others)
            load.wait_for(100)
            link.release()
            load.wait_for(100)
            sleeper.resume()
            wait_for_leaders(others[0], brokers)
            load.wait_for(100)
        for broker in brokers:
            wait_for_leaders(broker, brokers)
        assert load.check(brokers[0].port) == set()


def test_redis_stands_still(brokers: list[BrokerProcess], redis_server: RedisServer) -> None:
    """F11: what was on its way is carried out when Redis wakes up, unless another broker leads by then."""
    load = Load(bootstrap(brokers), partitions=PARTITIONS)
    with load.running():
        for seconds in PAUSES:
            load.wait_for(100)
            redis_server.pause()
            time.sleep(seconds)  # the fault itself
            redis_server.resume()
        load.wait_for(100)
        for broker in brokers:
            wait_for_leaders(broker, brokers)
        load.wait_for(100)
    assert load.check(brokers[0].port) == set()


def test_killed_brokers_are_replaced(brokers: list[BrokerProcess]) -> None:
    """kill -9, one after the other until one is left; then all are back."""
    load = Load(bootstrap(brokers), partitions=PARTITIONS)
    with load.running():
        for left in (brokers[1:], brokers[2:]):
            load.wait_for(100)
            brokers[2 - len(left)].kill()
            wait_for_leaders(left[-1], left)
        load.wait_for(100)
        for broker in brokers[:2]:
            broker.start()
        wait_for_leaders(brokers[0], brokers)
        load.wait_for(100)
    assert load.check(brokers[0].port) == set()


@pytest.mark.timeout(240 + 60 * ROUNDS)
def test_a_rolling_restart(brokers: list[BrokerProcess]) -> None:
    """F38, with KORVET_TEST_ROLLS=20 as often as it says there."""
    load = Load(bootstrap(brokers), partitions=PARTITIONS)
    with load.running():
        for _ in range(ROUNDS):
            for broker in brokers:
                others = [other for other in brokers if other is not broker]
                load.wait_for(50)
                assert broker.stop() == 0
                wait_for_leaders(others[0], others)
                broker.start()
                wait_for_leaders(broker, brokers)
        load.wait_for(50)
    assert load.check(brokers[0].port) == set()


def test_two_masters_at_once(serve: Serve, start_redis: StartRedis) -> None:
    """F18 with min.insync.replicas=2: each of two brokers has a master of its own, and believes that it leads alone.

    With one copy nothing could help the records that the old master took: with two, it never acknowledges any.
    """
    old, new, copy = (start_redis(appendonly="yes") for _ in range(3))

    def store_in_vain() -> int:
        """How much the old master has, after a record for the broker that believes in it."""
        assert produce_at(stale)["error_code"] != 0
        return sum(read_lengths(old, PARTITIONS))

    with (
        RedisProxy(old.port, frames=False) as link,
        RedisProxy(old.port) as cut_off,
        RedisProxy(old.port) as moved,
    ):
        attach(new, old, link.port)
        copy.follow(new)
        stale, fresh = serve(cut_off.url, *QUICK), serve(moved.url, *QUICK)
        create_topic(stale.bootstrap, "load", PARTITIONS, min_insync_replicas="2")
        for broker in (stale, fresh):
            wait_for_leaders(broker, [stale, fresh])
        load = Load(bootstrap([stale, fresh]), partitions=PARTITIONS)
        with load.running():
            load.wait_for(100)
            link.hold()
            new.promote()
            moved.target = new.port
            moved.reset_all()
            wait_for_leaders(fresh, [fresh])
            wait_for_leaders(stale, [stale])
            stored = sum(read_lengths(old, PARTITIONS))  # the fresh one writes there no more
            wait_for_more(store_in_vain, stored, "it is refused before it is stored")
            # Who asks the stale one for leaders stays with it, and waits ten seconds each time.
            wait_for_more(load.count_acknowledged, load.count_acknowledged(), "nobody stores anything")
            old.kill()
            cut_off.target = new.port
            cut_off.reset_all()
            for broker in (stale, fresh):
                wait_for_leaders(broker, [stale, fresh])
            load.wait_for(100)
        assert load.check(stale.port) == set()
