"""Messages that their callers take back, many at once: at a shutdown all tasks that wait are cancelled."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from korvet_fast.client import AsyncProducer
from korvet_fast.client.producer import Delivery, ProducerClosed
from korvet_fast.client.producer.message import QueuedRecords, RecordState
from producer_world import ProducerWorld
from redis_server import free_port

Run = Callable[[Callable[[], Awaitable[Any]]], Any]
COUNT = 300


def pending() -> ProducerWorld:
    world = ProducerWorld()
    world.control_fails = 1_000_000
    return world


def queued() -> ProducerWorld:
    world = ProducerWorld()
    world.send(partition=0)
    world.run_until_ended(60)
    world.kill(0)
    return world


def in_line() -> ProducerWorld:
    world = ProducerWorld(buffer_memory=10_000_000)
    world.control_fails = 1_000_000
    assert world.pipeline.ledger.memory.take("t", 8_000_000)
    return world


@pytest.mark.parametrize("make", [pending, queued, in_line], ids=["pending", "queued", "in line"])
@pytest.mark.parametrize("order", [1, -1], ids=["the first first", "the last first"])
def test_a_message_is_found_without_a_look_at_the_others(
    monkeypatch: pytest.MonkeyPatch, make: Callable[[], ProducerWorld], order: int
) -> None:
    """Each was looked for among all others of its queue: 80,000 took a minute, in which the event loop stood still."""
    world = make()
    sent = [world.send(partition=0 if make is queued else -1, wait=True) for _ in range(COUNT)]
    assert len(world.pipeline.ledger.waiting) == (COUNT if make is in_line else 0)
    compared = []

    def compare(mine: QueuedRecords, other: object) -> bool:
        compared.append(mine)
        return mine is other

    with monkeypatch.context() as patch:
        patch.setattr(QueuedRecords, "__eq__", compare)
        for records in sent[::order]:
            assert world.pipeline.dispatcher.withdraw(records)
    assert len(compared) < COUNT
    assert {each.state for each in sent} == {RecordState.ENDED}


@pytest.mark.parametrize("act", ["await", "cancel"])
def test_a_delivery_is_for_the_event_loop_of_its_producer(run: Run, act: str) -> None:
    """Whoever awaited it in another loop was not woken; `cancel` changed the stages under their own thread."""

    async def act_in(delivery: Delivery) -> None:
        if act == "cancel":
            delivery.cancel()
        else:
            await asyncio.wait_for(asyncio.ensure_future(delivery), 60)

    async def work() -> None:
        p = AsyncProducer(f"127.0.0.1:{free_port()}")
        delivery = p.send("t", b"x")
        with pytest.raises(RuntimeError, match="for the event loop of its first call"):
            await asyncio.to_thread(asyncio.run, act_in(delivery))
        if act == "cancel":
            with pytest.raises(RuntimeError, match="for the event loop of its first call"):
                await asyncio.to_thread(delivery.cancel)
        await p.abort()
        with pytest.raises(ProducerClosed):
            await delivery
        told = await asyncio.to_thread(delivery.exception)
        assert isinstance(told, ProducerClosed), "once it has ended it is for anybody"

    run(work)
