"""What waits for memory does not wait for `linger.ms`: batches that hold the memory are sent at once, as Java's."""

from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

import pytest

from broker_process import BrokerProcess
from korvet_fast.client import AsyncProducer
from korvet_fast.client.producer import Message

_numbers = count()
Run = Callable[[Callable[[], Awaitable[Any]]], Any]
SMALL = {"buffer_memory": 3000, "max_request_size": 700}  # room for three messages of 100 bytes


@pytest.fixture
def topic() -> str:
    return f"pressure-{next(_numbers)}"


async def by_put(p: AsyncProducer, topic: str) -> None:
    for _ in range(20):
        await p.input.put(Message(topic, b"x" * 100))


async def by_rows(p: AsyncProducer, topic: str) -> None:
    await p.send_many(topic, None, [b"x" * 400] * 20)


async def by_send(p: AsyncProducer, topic: str) -> None:
    for _ in range(20):
        await p.send_when_room(Message(topic, b"x" * 100))


@pytest.mark.parametrize("enqueue", [by_put, by_rows, by_send])
def test_memory_that_lingering_messages_hold_is_given_back(
    run: Run, broker: BrokerProcess, topic: str, enqueue: Callable[[AsyncProducer, str], Awaitable[None]]
) -> None:
    async def work() -> None:
        async with AsyncProducer(broker.bootstrap, linger_ms=60_000, max_block_ms=5_000, **SMALL) as p:
            await enqueue(p, topic)
            await p.flush()
            assert p.metrics().delivered == 20

    run(work)
