"""Redis stands still under a group that reads and commits (reliability F11): nobody's place is lost."""

import time
from collections.abc import Callable

import pytest

from broker_process import BrokerProcess
from compat.group_scene import play
from member_history import check_members
from redis_server import RedisServer

SETTINGS = (
    "group.initial.rebalance.delay.ms=200",
    # Shorter than the longer stops: the brokers cannot know who is there, and coordinate nothing meanwhile.
    *("broker.heartbeat.interval.ms=300", "broker.session.timeout.ms=1500"),
)

SESSION = 90_000  # ms; longer than the longest stop, in which nobody's heartbeat is answered well


@pytest.mark.parametrize("seconds", [1, 5, 40])
def test_a_group_waits_for_redis_and_goes_on(
    serve: Callable[..., BrokerProcess], redis_server: RedisServer, topic: str, seconds: int
) -> None:
    brokers = [serve(redis_server.url, *SETTINGS) for _ in range(2)]
    with play(brokers[0], topic) as scene:
        scene.bootstrap = ",".join(one.bootstrap for one in brokers)
        members = scene.gather("confluent", "kafka_python", "aiokafka", session=SESSION)
        scene.wait_shared(*members)
        scene.send()
        scene.wait_read()
        before = [one.changes for one in members]
        scene.send(600)  # which they read and commit, twenty at a time
        seen = len(scene.read)
        scene.wait(lambda: len(scene.read) > seen)
        redis_server.pause()
        time.sleep(seconds)  # the fault itself
        redis_server.resume()
        scene.send()
        scene.wait_read()
        assert [one.changes for one in members] == before, scene.explain()
        assert scene.doubles == 0, scene.explain()
        check_members(scene)
