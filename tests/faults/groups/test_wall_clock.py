"""The broker's wall clock is moved back an hour and forward two (reliability F32): groups do not stand on it."""

import asyncio
import time
from collections.abc import Callable

import pytest

from broker_process import BrokerProcess
from compat.group_scene import play
from faults.clock import HOUR, Clock, read_wall
from kafka_server import OFFSET_COMMIT, OFFSET_FETCH, run
from member_history import check_members
from raw_connection import connect

SETTINGS = (
    *("group.initial.rebalance.delay.ms=100", "group.min.session.timeout.ms=1000"),
    *("broker.heartbeat.interval.ms=300", "broker.session.timeout.ms=10000"),  # far shorter than the steps
    # A commit of an hour ago would go at once, if the group had no members.
    *("offsets.retention.minutes=60", "offsets.retention.check.interval.ms=100"),
)
SESSION = 20_000  # ms; longer than a busy machine lets a member wait
CLIENTS = ("confluent", "kafka_python", "aiokafka")


@pytest.fixture(params=["embedded", "redis"])
def url(request: pytest.FixtureRequest) -> str | None:
    return request.getfixturevalue("redis_server").url if request.param == "redis" else None


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
            assert abs(read_wall(broker) - time.time() * 1000 - shift) < HOUR / 2
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


def test_commits_of_nobody_stay(serve: Callable[..., BrokerProcess], url: str | None, clock: Clock) -> None:
    """A clock two hours ahead does not expire what was committed a moment ago; what is due goes meanwhile."""
    broker = serve(url, *SETTINGS, before=clock.before)

    async def commit(topic: str, keep_ms: int) -> None:
        topics = [{"name": topic, "partitions": [{"partition_index": 0, "committed_offset": 7}]}]
        async with connect(broker.port) as client:
            await client.create(topic)
            answer = await client.ask(OFFSET_COMMIT, 4, group_id="g", retention_time_ms=keep_ms, topics=topics)
            assert answer["topics"][0]["partitions"][0]["error_code"] == 0

    async def find(topic: str) -> int:
        topics = [{"name": topic, "partition_indexes": [0]}]
        async with connect(broker.port) as client:
            answer = await client.ask(OFFSET_FETCH, 4, group_id="g", topics=topics)
            return int(answer["topics"][0]["partitions"][0]["committed_offset"])

    async def prepare() -> None:
        await commit("kept", -1)
        await commit("due", 10_000)  # longer than the machine may stand still before it is looked at
        assert await find("due") == 7

    async def see() -> None:
        while await find("due") != -1:
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.5)  # five more checks, of which none may take anything: nothing is waited for
        assert await find("kept") == 7

    run(prepare)
    clock.shift(2 * HOUR)
    assert abs(read_wall(broker) - time.time() * 1000 - 2 * HOUR) < HOUR / 2
    run(see)
