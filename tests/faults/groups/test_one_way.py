"""One member's network passes one way only (reliability F29): it expires once, and comes back once."""

from collections.abc import Callable

import pytest

from broker_process import BrokerProcess
from compat.group_scene import play
from faults.groups.one_way import Direction, OneWay
from member_history import check_members
from redis_server import free_port

SETTINGS = (
    *("group.initial.rebalance.delay.ms=100", "group.min.session.timeout.ms=1000"),
    *("group.consumer.heartbeat.interval.ms=300", "group.consumer.session.timeout.ms=6000"),
)
LONG, SHORT = 60_000, 6000  # ms; the short one is still longer than a busy machine lets a member wait


@pytest.mark.parametrize("closed", ["requests", "answers"])
@pytest.mark.parametrize(
    ("client", "protocol"),
    [("confluent", "classic"), ("kafka_python", "classic"), ("aiokafka", "classic"), ("confluent", "consumer")],
)
def test_a_member_that_is_heard_or_hears_no_more(
    serve: Callable[..., BrokerProcess], topic: str, client: str, protocol: str, closed: Direction
) -> None:
    behind, inner = free_port(), free_port()
    broker = serve(None, *SETTINGS, behind=(inner, behind))
    with OneWay(behind, inner) as network, play(broker, topic) as scene:
        named = ("confluent", "aiokafka" if protocol == "classic" else "confluent")
        others = [scene.member(name, protocol=protocol, session=LONG) for name in named]
        cut = scene.member(client, protocol=protocol, session=SHORT, bootstrap=f"127.0.0.1:{behind}")
        scene.wait_shared(*others, cut)
        scene.send()
        scene.wait_read()
        before = [one.changes for one in others]
        network.hold(closed)
        scene.send()
        scene.wait_shared(*others)
        scene.wait_read()
        # In the classic protocol all is given up and taken again; in the other one, only what moves is told.
        each = 2 if protocol == "classic" else 1
        assert [one.changes for one in others] == [number + each for number in before], scene.explain()
        network.release()
        scene.wait_shared(*others, cut)
        scene.send()
        scene.wait_read()
        # Once for its coming; once more at most, for what it had asked while nobody heard.
        assert all(one.changes <= number + 3 * each for one, number in zip(others, before, strict=True))
        check_members(scene, expired=[cut])
