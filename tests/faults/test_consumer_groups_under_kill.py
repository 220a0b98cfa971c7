"""A broker killed over and over under the members of a consumer group (KIP-848), also while partitions move.

KORVET_TEST_KILLS says how often (default 3).
"""

import os
import random
import time
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from compat.group_scene import MemberProcess, Scene, play
from member_history import check_members

KILLS = int(os.environ.get("KORVET_TEST_KILLS", "3"))
SETTINGS = ("group.consumer.heartbeat.interval.ms=300", "durability=fsync")

pytestmark = pytest.mark.timeout(120 + 20 * KILLS)


def member(scene: Scene) -> MemberProcess:
    return scene.member("confluent", protocol="consumer")


def test_a_killed_broker_costs_a_group_nothing(tmp_path: Path) -> None:
    chance = random.Random(7)
    with BrokerProcess(tmp_path / "data", *SETTINGS) as broker, play(broker, "t") as scene:
        members = [member(scene) for _ in range(3)]
        scene.wait_shared(*members)
        before = [one.changes for one in members]
        for _ in range(KILLS):
            scene.send(600)
            time.sleep(chance.uniform(0.0, 0.5))  # somewhere in the middle of reading and committing
            broker.kill()
            broker.start()
        scene.wait_read()
        assert [one.changes for one in members] == before, scene.explain()
        check_members(scene)


def test_a_broker_killed_while_partitions_move(tmp_path: Path) -> None:
    chance = random.Random(8)
    settings = (*SETTINGS, "group.consumer.session.timeout.ms=4000")
    with BrokerProcess(tmp_path / "data", *settings) as broker, play(broker, "t") as scene:
        staying = member(scene)
        for _ in range(KILLS):
            scene.send(120)
            coming = member(scene)
            scene.wait(lambda coming=coming: bool(coming.owned))  # type: ignore[misc]
            other = member(scene)
            time.sleep(chance.uniform(0.2, 1.0))  # it starts, joins, or waits for what others give up
            broker.kill()
            broker.start()
            time.sleep(chance.uniform(0.0, 1.0))
            coming.kill()
            scene.wait(lambda other=other: bool(other.owned))  # type: ignore[misc]
            other.leave()
        scene.send(120)
        scene.wait_shared(staying)
        scene.wait_read()
        check_members(scene)
