"""Groups of real clients at several brokers: they come, go and die, and their groups move with all they have."""

import os

import pytest

from compat.group_scene import play
from faults.several import Several
from member_history import check_members

SETTINGS = (
    *("group.initial.rebalance.delay.ms=200", "group.min.session.timeout.ms=1000"),
    *("broker.heartbeat.interval.ms=300", "broker.session.timeout.ms=1500"),
)
SESSION = 6000  # ms, where a member shall be missed; longer than a busy machine lets a living one wait
CLIENTS = ("confluent", "kafka_python", "aiokafka")
ROUNDS = int(os.environ.get("KORVET_TEST_ROLLS", "2"))


@pytest.mark.timeout(240 + 60 * ROUNDS)
@pytest.mark.parametrize(
    ("several", "end"),
    [("entries", "stop"), ("batches", "kill"), ("workers", "stop"), ("workers", "kill")],
    indirect=["several"],
)
def test_brokers_restart_in_turn_and_nobody_rebalances(several: Several, topic: str, end: str) -> None:
    """F01, F02 and F38, with KORVET_TEST_ROLLS=20 as often as it says there."""
    brokers = several(3, *SETTINGS)
    with play(brokers[0], topic) as scene:
        scene.bootstrap = ",".join(one.bootstrap for one in brokers)
        scene.send()
        members = [scene.member(client, session=30_000) for client in CLIENTS]
        scene.wait_shared(*members)
        scene.send()
        scene.wait_read()
        before = [one.changes for one in members]
        for broker in brokers * ROUNDS:
            getattr(broker, end)()
            scene.send()
            scene.wait_read()
            broker.start()
            scene.send()
            scene.wait_read()
        assert [one.changes for one in members] == before, scene.explain()
        check_members(scene)


def test_members_come_leave_and_die_while_coordinators_change(several: Several, topic: str) -> None:
    brokers = several(2, *SETTINGS)
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
