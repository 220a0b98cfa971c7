"""Connections that end are made again after pauses that grow: a connection alone proves nothing, an answer does."""

from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from korvet_fast.client.backoff import Backoff
from korvet_fast.client.producer.broker_producer import Connect
from korvet_fast.client.producer.message import Outcome
from korvet_fast.client.producer.pipeline import Action, FetchMetadata, InitProducerId
from producer_cluster import SimulatedCluster
from producer_invariants import check
from producer_world import Fault, ProducerWorld

FIRST, LONGEST = 0.1, 1.0  # retry.backoff.ms and retry.backoff.max.ms, in seconds
OUTAGE = 60.0


class WatchedWorld(ProducerWorld):
    """`times`: of each kind of attempt. `unanswered`: the kind of request that no broker answers."""

    def __init__(self, **given: Any) -> None:
        self.times: dict[type, list[float]] = {}
        self.unanswered: type | None = None
        super().__init__(**given)

    def _connect(self, address: Any) -> None:
        self.times.setdefault(Connect, []).append(self.now)
        super()._connect(address)

    def _control(self, action: Action) -> None:  # type: ignore[override]
        self.times.setdefault(type(action), []).append(self.now)
        self.control_fails = int(type(action) is self.unanswered)
        super()._control(action)  # type: ignore[arg-type]

    def pauses(self, kind: type) -> list[float]:
        return [after - before for before, after in pairwise(self.times[kind])]


def assert_growing(pauses: list[float], first: float = FIRST) -> None:
    """They double up to the longest, each at most a fifth off, and are not all alike."""
    assert len(pauses) > 20
    for number, pause in enumerate(pauses):
        plain = min(LONGEST, first * 2**number)
        assert 0.8 * plain <= pause <= 1.2 * plain + 0.1, (number, pauses)
    assert len({round(pause, 6) for pause in pauses}) > len(pauses) // 2, "jitter"


def closes_unused(world: WatchedWorld) -> None:
    """The connection is closed before anything is handed to it."""
    world.faults.extend([Fault.NOT_SENT] * 10_000)


def closes_used(world: WatchedWorld) -> None:
    """The connection is closed before a request is answered."""
    world.faults.extend([Fault.LOST] * 10_000)


@pytest.mark.parametrize("acks", ["all", "1", "0"])
@pytest.mark.parametrize("close", [closes_unused, closes_used])
def test_a_broker_that_accepts_and_closes_is_asked_less_and_less_often(
    close: Callable[[WatchedWorld], None], acks: str
) -> None:
    world = WatchedWorld(cluster=SimulatedCluster(nodes=1, partitions=20), acks=acks)
    close(world)
    for _ in range(int(OUTAGE / 0.05)):
        for index in range(20):
            world.send(partition=index)
        world.run(0.05)
    assert_growing(world.pauses(Connect))
    world.heal()
    world.run_until_ended(60)
    if acks == "all":
        check(world)


def test_a_connection_that_ends_unused_is_not_made_again_at_once() -> None:
    """Nothing waits on it when it ends: what comes next waits for the pause."""
    world = WatchedWorld(cluster=SimulatedCluster(nodes=1))
    for number in range(30):
        sent = world.send(partition=0)
        while len(world.times.get(Connect, ())) == number:
            world.run(0.001)
        assert world.pipeline.dispatcher.withdraw(sent)
        world.run(0.01)  # the connection is up by now
        world.cut(0)
    assert_growing(world.pauses(Connect))


def test_a_connection_that_was_of_use_is_made_again_at_once() -> None:
    """A broker closes what is idle (connections.max.idle.ms): the next message does not wait."""
    world = WatchedWorld(cluster=SimulatedCluster(nodes=1))
    for _ in range(3):
        began = world.now
        sent = world.send(partition=0)
        world.run_until_ended(10)
        assert sent.outcome is Outcome.DELIVERED
        assert world.now - began <= 0.25, "no pause"
        world.run(600)
        world.cut(0)
    assert len(world.times[Connect]) == 3


def test_without_acks_a_connection_that_lasts_is_of_use() -> None:
    world = WatchedWorld(cluster=SimulatedCluster(nodes=1), acks="0")
    closes_used(world)
    for _ in range(3):
        world.send(partition=0)
        world.run(3)
    world.heal()
    for _ in range(3):
        world.send(partition=0)
        world.run(3)
    (broker,) = world.pipeline.brokers
    assert broker.backoff.failures == 0
    before = len(world.times[Connect])
    world.cut(0)
    world.send(partition=0)
    assert len(world.times[Connect]) == before + 1


@pytest.mark.parametrize("kind", [FetchMetadata, InitProducerId])
def test_requests_that_no_broker_answers_are_made_less_and_less_often(kind: type) -> None:
    world = WatchedWorld()
    world.unanswered = kind
    world.send(partition=0)
    world.run(OUTAGE)
    assert_growing(world.pauses(kind))


@pytest.mark.parametrize("kind", [Connect, FetchMetadata, InitProducerId])
def test_a_first_pause_of_0_grows_too(kind: type) -> None:
    """Kafka takes 0 for retry.backoff.ms: a broker that refuses at once was asked in a busy loop."""
    world = WatchedWorld(retry_backoff_ms=0)
    if kind is Connect:
        world.kill(0)
    else:
        world.unanswered = kind
    world.send(partition=0)
    world.run(OUTAGE)
    assert_growing(world.pauses(kind), first=0.001)


def test_no_pause_is_0() -> None:
    backoff = Backoff(0.0, 0.0, Random(0))
    for _ in range(20):
        assert backoff.fail(5.0) > 5.0


def test_an_id_that_nobody_waits_for_is_not_asked_for() -> None:
    """It was asked for, once a second, for as long as no broker gave one."""
    world = WatchedWorld()
    world.unanswered = InitProducerId
    world.send(partition=0)
    world.run_until_ended(600)
    world.run(10)
    before = len(world.times[InitProducerId])
    world.run(600)
    assert len(world.times[InitProducerId]) == before
    world.unanswered = None
    assert world.send(partition=0).outcome is None
    world.run_until_ended(60)
    assert world.ended[-1].outcome is Outcome.DELIVERED
