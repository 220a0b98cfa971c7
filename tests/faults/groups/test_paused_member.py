"""A member that stands still for longer than its session (reliability F36), and does not know it when it goes on."""

import signal
from collections.abc import Callable

import pytest

from broker_process import BrokerProcess
from compat.group_scene import play
from member_history import check_members

SETTINGS = (
    *("group.initial.rebalance.delay.ms=100", "group.min.session.timeout.ms=1000"),
    *("group.consumer.heartbeat.interval.ms=300", "group.consumer.session.timeout.ms=6000"),
)
LONG, SHORT = 60_000, 6000  # ms; the short one is still longer than a busy machine lets a member wait


@pytest.mark.parametrize(
    ("client", "protocol"),
    [("confluent", "classic"), ("kafka_python", "classic"), ("aiokafka", "classic"), ("confluent", "consumer")],
)
def test_what_it_had_is_read_by_others_and_it_comes_back(
    serve: Callable[..., BrokerProcess], topic: str, client: str, protocol: str
) -> None:
    broker = serve(None, *SETTINGS)
    with play(broker, topic) as scene:
        named = ("confluent", "aiokafka" if protocol == "classic" else "confluent")  # aiokafka tells its generation
        others = [scene.member(name, protocol=protocol, session=LONG) for name in named]
        paused = scene.member(client, protocol=protocol, session=SHORT)
        scene.wait_shared(*others, paused)
        scene.send()
        scene.wait_read()
        scene.send(600)
        paused.process.send_signal(signal.SIGSTOP)  # in the middle of reading and committing
        scene.wait_shared(*others)
        scene.send()
        scene.wait_read()
        paused.process.send_signal(signal.SIGCONT)
        scene.wait_shared(*others, paused)
        scene.send()
        scene.wait_read()
        check_members(scene, expired=[paused])
