"""Groups of real clients over Redis: coordinators come, go and die, and their groups move with all they have."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from compat.group_scene import play
from member_history import check_members
from redis_server import PROGRAMS, RedisServer

SETTINGS = (
    *("group.initial.rebalance.delay.ms=200", "group.min.session.timeout.ms=1000"),
    *("broker.heartbeat.interval.ms=300", "broker.session.timeout.ms=1500"),
)
SESSION = 6000  # ms, where a member shall be missed; longer than a busy machine lets a living one wait
CLIENTS = ("confluent", "kafka_python", "aiokafka")
ROUNDS = int(os.environ.get("KORVET_TEST_ROLLS", "2"))


@pytest.fixture
def brokers(request: pytest.FixtureRequest, redis_server: RedisServer, tmp_path: Path) -> Iterator[list[BrokerProcess]]:
    """Two, or as many as a test asks for."""
    many = getattr(request, "param", 2)
    found = [BrokerProcess(tmp_path, *SETTINGS, store=redis_server.url) for _ in range(many)]
    try:
        for one in found:
            one.start()
        yield found
    finally:
        for one in found:
            one.stop()


@pytest.mark.timeout(240 + 60 * ROUNDS)
@pytest.mark.parametrize("brokers", [3], indirect=True)
@pytest.mark.parametrize(
    ("redis_program", "how"), [(PROGRAMS[0], "stopped"), (PROGRAMS[1], "killed")], indirect=["redis_program"]
)
def test_brokers_restart_in_turn_and_nobody_rebalances(brokers: list[BrokerProcess], topic: str, how: str) -> None:
    """F01, F02 and F38, with KORVET_TEST_ROLLS=20 as often as it says there."""
    end: Callable[[BrokerProcess], object] = BrokerProcess.kill if how == "killed" else BrokerProcess.stop
    with play(brokers[0], topic) as scene:
        scene.bootstrap = ",".join(one.bootstrap for one in brokers)
        scene.send()
        members = [scene.member(client, session=30_000) for client in CLIENTS]
        scene.wait_shared(*members)
        scene.send()
        scene.wait_read()
        before = [one.changes for one in members]
        for broker in brokers * ROUNDS:
            end(broker)
            scene.send()
            scene.wait_read()
            broker.start()
            scene.send()
            scene.wait_read()
        assert [one.changes for one in members] == before, scene.explain()
        check_members(scene)


@pytest.mark.parametrize("redis_program", PROGRAMS[:1], indirect=True)
def test_members_come_leave_and_die_while_coordinators_change(brokers: list[BrokerProcess], topic: str) -> None:
    with play(brokers[0], topic) as scene:
        scene.bootstrap = ",".join(one.bootstrap for one in brokers)
        scene.send()
        first, second = (scene.member(client, session=SESSION) for client in CLIENTS[:2])
        scene.wait_shared(first, second)
        brokers[1].kill()
        third = scene.member(CLIENTS[2], session=SESSION)
        scene.wait_shared(first, second, third)
        brokers[1].start()
        scene.send()
        first.kill()
        scene.wait_shared(second, third)
        brokers[0].kill()
        second.leave()
        scene.wait_shared(third)
        brokers[0].start()
        scene.send()
        scene.wait_read()
        check_members(scene)
