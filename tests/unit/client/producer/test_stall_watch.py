"""Messages that make no progress are seen, wherever they wait: at a partition, before it is known, and for memory."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from korvet_fast.client import AsyncProducer
from korvet_fast.client.producer import BufferFull, Message
from producer_world import Fault, ProducerWorld
from redis_server import free_port

LONG = 600.0
Run = Callable[[Callable[[], Awaitable[Any]]], Any]
SMALL = {"buffer_memory": 3000, "max_request_size": 700}  # room for three messages of 100 bytes


def warm(**settings: Any) -> ProducerWorld:
    """A world whose producer is connected to the leader of partition 0."""
    world = ProducerWorld(**settings)
    world.send(partition=0)
    world.run_until_ended(LONG)
    return world


def test_a_stall_is_reported_once_and_a_request_in_flight_is_counted() -> None:
    world = warm(stall_ms=3000)
    world.cluster.leaders["t", 0] = None
    world.faults.append(Fault.TOO_FEW)
    world.send(partition=0)
    assert world.pipeline.metrics(world.now).requests_in_flight == 1
    world.kill(0)
    world.run(10)
    (line,) = world.pipeline.stalls.take_reports()
    assert line.startswith(
        "partition 0 of topic 't' has made no progress for 3 s (stall.ms); messages waiting: 1; check "
    )
    assert "; the last error was: " in line
    metrics = world.pipeline.metrics(world.now)
    assert metrics.stalled == ("partition 0 of topic 't'",)
    assert 9.9 < metrics.oldest < 10.1
    world.heal()
    world.run_until_ended(LONG)
    assert world.pipeline.metrics(world.now).stalled == (), "it has delivered everything"
    world.send(partition=0)
    world.run_until_ended(LONG)
    assert world.pipeline.metrics(world.now).stalled == ()
    assert world.pipeline.stalls.take_reports() == []


def test_a_topic_whose_partitions_are_not_found_stands_still() -> None:
    """Nothing told of it but the log's line of each attempt: there is no partition yet that could."""
    world = ProducerWorld(stall_ms=3000)
    world.control_fails = 1_000_000
    world.send()
    world.run(10)
    assert world.pipeline.stalls.take_reports() == [
        "topic 't' has had messages for 3 s (stall.ms) whose partition is not known; check the brokers; "
        "the last error was: no answer"
    ]
    assert world.pipeline.metrics(world.now).stalled == ("topic 't'",)
    world.heal()
    world.run_until_ended(LONG)
    assert world.pipeline.metrics(world.now).stalled == ()


def test_messages_that_wait_for_memory_are_seen() -> None:
    """`oldest` was 0 for them, and nobody reported them."""
    world = warm(stall_ms=3000, **SMALL)
    memory, leader = world.pipeline.ledger.memory, world.cluster.addresses[0]
    memory.take(leader, 2000)  # results that nobody takes
    world.send(partition=0, size=100, wait=True)
    world.run(10)
    assert world.pipeline.stalls.take_reports() == [
        "topic 't' has had messages that wait for memory for 3 s (stall.ms): 2,788 of buffer.memory=3,000 are held; "
        "await deliveries, take the results of `input`, or raise it"
    ]
    metrics = world.pipeline.metrics(world.now)
    assert metrics.waiting_for_memory == 1
    assert 9.9 < metrics.oldest < 10.1
    assert metrics.stalled == ("topic 't'",)
    memory.give_back(leader, 2000)
    world.pipeline.ledger.note_room()
    world.run_until_ended(LONG)
    metrics = world.pipeline.metrics(world.now)
    assert (metrics.stalled, metrics.waiting_for_memory, metrics.oldest) == ((), 0, 0)


def test_of_many_partitions_ten_are_reported_each() -> None:
    """A cluster that is gone filled the log with a line for each partition."""
    world = warm(stall_ms=3000)
    world.cluster.leaders.update({("many", index): 0 for index in range(25)})
    for index in range(25):
        world.send("many", partition=index)
    world.run_until_ended(LONG)
    world.pipeline.stalls.take_reports()
    world.kill(0)
    for index in range(25):
        world.send("many", partition=index)
    world.run(10)
    lines = world.pipeline.stalls.take_reports()
    assert len(lines) == 11
    assert lines[10] == "15 more partitions have made no progress"


def test_callers_that_wait_for_memory_are_seen(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        p = AsyncProducer(f"127.0.0.1:{free_port()}", **SMALL, stall_ms=50)
        with suppress(BufferFull):
            while True:
                p.try_send("a", b"x" * 100)
        put = asyncio.ensure_future(p.input.put(Message("b", b"y" * 500)))
        while "topic 'b' has had messages that wait for memory for 0.05 s (stall.ms)" not in caplog.text:
            await asyncio.sleep(0.01)
        metrics = p.metrics()
        assert "topic 'b'" in metrics.stalled
        assert metrics.oldest >= 0.05
        await p.abort()
        await asyncio.gather(put, return_exceptions=True)
        assert p.metrics().waiting_for_memory == 0

    with caplog.at_level(logging.WARNING):
        run(work)
