"""The broker's wall clock is moved back an hour and forward two (reliability F32): groups do not stand on it."""

import time
from collections.abc import Callable

import pytest

from broker_process import BrokerProcess
from compat.group_scene import play
from faults.clock import HOUR, Clock
from kafka_server import make_batch, run
from member_history import check_members
from raw_connection import connect

SETTINGS = (
    *("group.initial.rebalance.delay.ms=100", "group.min.session.timeout.ms=1000"),
    *("broker.heartbeat.interval.ms=300", "broker.session.timeout.ms=1500"),
    # A commit of an hour ago would go at once, if the group had no members.
    *("offsets.retention.minutes=60", "offsets.retention.check.interval.ms=100"),
)
SESSION = 20_000  # ms; longer than a busy machine lets a member wait
CLIENTS = ("confluent", "kafka_python", "aiokafka")


@pytest.fixture(params=["embedded", "redis"])
def url(request: pytest.FixtureRequest) -> str | None:
    return request.getfixturevalue("redis_server").url if request.param == "redis" else None


def wall(broker: BrokerProcess) -> int:
    """The broker's time, as it stamps records."""
    told: list[int] = []

    async def ask() -> None:
        async with connect(broker.port) as client:
            await client.create("times", message_timestamp_type="LogAppendTime")
            told.append((await client.produce("times", make_batch(b"now")))["log_append_time_ms"])

    run(ask)
    return told[0]


def test_a_group_does_not_notice(
    serve: Callable[..., BrokerProcess], url: str | None, topic: str, clock: Clock
) -> None:
    broker = serve(url, *SETTINGS, before=clock.before)
    with play(broker, topic) as scene:
        first, second, third = (scene.member(client, session=SESSION) for client in CLIENTS)
        scene.wait_shared(first, second, third)
        for shift in (-HOUR, 2 * HOUR):
            scene.send()
            scene.wait_read()
            before = first.changes, second.changes
            clock.shift(shift)
            assert abs(wall(broker) - time.time() * 1000 - shift) < HOUR / 2
            scene.send()
            scene.wait_read()
            assert (first.changes, second.changes) == before, scene.explain()
            third.kill()  # its session ends when it should, and nobody else's does
            scene.wait_shared(first, second)
            third = scene.member(CLIENTS[2], session=SESSION)
            scene.wait_shared(first, second, third)
            # Given up and taken again, once for each of both.
            assert (first.changes, second.changes) == (before[0] + 4, before[1] + 4), scene.explain()
        clock.shift(0)
        scene.send()
        scene.wait_read()
        check_members(scene)
