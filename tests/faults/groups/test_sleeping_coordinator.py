"""Real clients whose coordinator sleeps for longer than it is believed to be alive (reliability F12)."""

import time
from contextlib import ExitStack

from broker_process import BrokerProcess
from compat.group_scene import play
from faults.groups.lives import QUICK, find
from faults.one_worker import OneWorker
from faults.several import Several
from kafka_server import run
from member_history import check_members

GROUPS = {"classic": ("confluent", "kafka_python", "aiokafka"), "consumer": ("confluent",) * 2}
TOPICS = [f"topic-{number}" for number in range(20)]


def coordinators(asked: BrokerProcess) -> dict[str, int]:
    """By topic, the port of the coordinator of its scene's group."""
    found: dict[str, int] = {}

    async def ask() -> None:
        found.update(await find(asked.port, [f"group-of-{topic}" for topic in TOPICS]))

    run(ask)
    return {topic: found[f"group-of-{topic}"] for topic in TOPICS}


def wait_for_coordinators(brokers: list[BrokerProcess], *expected: BrokerProcess) -> dict[str, int]:
    """Until all of these say that the groups are shared out among those."""
    deadline = time.monotonic() + 240
    while True:
        first, *others = [coordinators(broker) for broker in brokers]
        if set(first.values()) == {broker.port for broker in expected} and all(other == first for other in others):
            return first
        assert time.monotonic() < deadline, (first, others)
        time.sleep(0.02)


def wait_until_missed(sleeper: BrokerProcess, other: BrokerProcess) -> None:
    """Until the other one has all groups: those of a worker only after its kill, and for a blink."""
    if isinstance(sleeper, OneWorker):
        sleeper.wait_until_replaced()
    else:
        wait_for_coordinators([other], other)


def test_groups_go_on_without_it_and_with_it(several: Several) -> None:
    """Sessions are longer than that: nobody loses a partition, and nothing is read twice."""
    settings = (*QUICK, "group.consumer.heartbeat.interval.ms=500")
    brokers = sleeper, other = several(2, *settings)
    shares = wait_for_coordinators(brokers, *brokers)
    topics = [topic for topic in TOPICS if shares[topic] == sleeper.port]
    with ExitStack() as ending:
        scenes = [ending.enter_context(play(other, topic)) for topic in topics[: len(GROUPS)]]
        for scene, (protocol, clients) in zip(scenes, GROUPS.items(), strict=True):
            scene.bootstrap = ",".join(broker.bootstrap for broker in brokers)
            scene.gather(*clients, protocol=protocol, session=30_000)
        for scene in scenes:
            scene.wait_shared(*scene.members)
            scene.send()
            scene.wait_read()
        before = [[one.changes for one in scene.members] for scene in scenes]
        for scene in scenes:
            scene.send(300)
        sleeper.pause()  # in the middle of reading and committing
        wait_until_missed(sleeper, other)
        sleeper.resume()
        wait_for_coordinators(brokers, *brokers)
        for scene in scenes:
            scene.send()
            scene.wait_read()
            check_members(scene)
            assert scene.doubles == 0, scene.explain()
        for scene, changes in zip(scenes, before, strict=True):
            assert [one.changes for one in scene.members] == changes, scene.explain()
