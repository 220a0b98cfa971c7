"""A broker has `request.timeout.ms` for every answer, however short the time for making connections is."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from korvet_fast.client import AsyncProducer
from korvet_fast.wire.kafka.shapes.cluster import METADATA
from korvet_fast.wire.kafka.shapes.producers import INIT_PRODUCER_ID
from transaction_broker import ForgetfulCoordinator

Run = Callable[[Callable[[], Awaitable[Any]]], Any]
SETUP = 0.1  # seconds for making a connection


@pytest.mark.parametrize("key", [METADATA.key, INIT_PRODUCER_ID.key], ids=["Metadata", "InitProducerId"])
def test_a_slow_answer_is_waited_for(run: Run, key: int) -> None:
    broker = ForgetfulCoordinator()
    broker.added = {0}
    broker.silent.add(key)

    async def work() -> None:
        settings = {"socket_connection_setup_timeout_ms": 1000 * SETUP, "retry_backoff_ms": 1}
        async with broker.run() as address, AsyncProducer(address, **settings) as p:
            sent = p.send("t", b"x", partition=0)
            while key not in broker.requests:
                await asyncio.sleep(0.001)
            await asyncio.sleep(3 * SETUP)
            assert broker.requests.count(key) == 1, "it is not asked again before the answer came"
            broker.silent.clear()
            assert (await sent).offset == 0

    run(work)
