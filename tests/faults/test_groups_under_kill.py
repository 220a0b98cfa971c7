"""A broker killed over and over under the consumers of a group: nothing unread, nothing committed that was not read.

By both protocols. KORVET_TEST_KILLS says how often (default 3).
"""

import os
import random
import time
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from compat.group_scene import Scene, play
from member_history import check_members

KILLS = int(os.environ.get("KORVET_TEST_KILLS", "3"))
MIXED, SAME = ("confluent", "kafka_python", "aiokafka"), ("confluent",) * 3
CLASSIC = ("group.min.session.timeout.ms=1000", "durability=fsync")
EXPIRES = 6000  # ms, where a member shall be missed; longer than a busy machine lets a living one wait
CONSUMER = ("group.consumer.heartbeat.interval.ms=300", "durability=fsync")

pytestmark = pytest.mark.timeout(240 + 20 * KILLS)


@pytest.mark.parametrize(
    ("protocol", "clients", "settings"),
    [
        ("classic", MIXED, (*CLASSIC, "group.initial.rebalance.delay.ms=200")),
        ("classic", SAME, (*CLASSIC, "group.initial.rebalance.delay.ms=200")),
        ("consumer", SAME, CONSUMER),
    ],
    ids=["mixed", "same", "consumer"],
)
def test_a_killed_broker_costs_a_group_nothing(
    tmp_path: Path, protocol: str, clients: tuple[str, ...], settings: tuple[str, ...]
) -> None:
    chance = random.Random(5)
    with BrokerProcess(tmp_path / "data", *settings) as broker, play(broker, "t") as scene:
        members = [scene.member(client, protocol=protocol, session=30_000) for client in clients]
        scene.wait_shared(*members)
        before = [one.changes for one in members]
        for _ in range(KILLS):
            scene.send(600)
            time.sleep(chance.uniform(0.0, 0.5))  # somewhere in the middle of reading and committing
            broker.kill()
            broker.start()
        scene.wait_read()
        assert [one.changes for one in members] == before, scene.explain()
        check_commits(scene)
        check_members(scene)


@pytest.mark.parametrize(
    ("protocol", "clients", "settings"),
    [
        ("classic", MIXED, (*CLASSIC, "group.initial.rebalance.delay.ms=100")),
        ("consumer", SAME, (*CONSUMER, f"group.consumer.session.timeout.ms={EXPIRES}")),
    ],
    ids=["classic", "consumer"],
)
def test_a_broker_killed_while_partitions_move(
    tmp_path: Path, protocol: str, clients: tuple[str, ...], settings: tuple[str, ...]
) -> None:
    chance = random.Random(6)
    with BrokerProcess(tmp_path / "data", *settings) as broker, play(broker, "t") as scene:
        staying = scene.member("confluent", protocol=protocol, session=EXPIRES)
        for turn in range(KILLS):
            scene.send(120)
            coming = scene.member(clients[turn % 3], protocol=protocol, session=EXPIRES)
            scene.wait(lambda coming=coming: bool(coming.owned))  # type: ignore[misc]
            other = scene.member(clients[(turn + 1) % 3], protocol=protocol, session=EXPIRES)
            time.sleep(chance.uniform(0.2, 1.0))  # it starts, joins, syncs, or waits for what others give up
            broker.kill()
            broker.start()
            time.sleep(chance.uniform(0.0, 1.0))
            coming.kill()
            scene.wait(lambda other=other: bool(other.owned))  # type: ignore[misc]
            other.leave()
        scene.send(120)
        scene.wait_shared(staying)
        scene.wait_read()
        check_commits(scene)
        check_members(scene)


def check_commits(scene: Scene) -> None:
    """Nobody has committed what nobody has read."""
    read = set(scene.read)
    for partition, offset in scene.committed.items():
        assert {(partition, each) for each in range(offset)} <= read
