"""A defect of the producer's own, made to happen at many places: every message has an outcome, and close ends.

Nothing is sent afterwards: nobody knows which of its records are right.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from broker_process import BrokerProcess
from korvet_fast.client import AsyncProducer
from korvet_fast.client.producer import (
    DeliveryFailed,
    Message,
    Outcome,
    ProducerBroken,
    dialects,
)
from korvet_fast.client.producer.broker_producer import BrokerProducer
from korvet_fast.client.producer.dispatcher import Dispatcher
from korvet_fast.client.producer.memory_budget import MemoryBudget
from korvet_fast.client.producer.message_ledger import MessageLedger
from korvet_fast.client.producer.message_run import MessageRun
from korvet_fast.client.producer.partition_producer import PartitionProducer
from korvet_fast.client.producer.pipeline import Pipeline
from korvet_fast.client.producer.rows import Column

Run = Callable[[Callable[[], Awaitable[Any]]], Any]
BEFORE = 20  # messages that are delivered before the defect

PLACES: list[tuple[Any, str]] = [
    (Pipeline, "poll"),
    (Pipeline, "next_time"),
    (Pipeline, "answered"),
    (dialects, "encode"),
    (PartitionProducer, "take"),
    (PartitionProducer, "answer"),
    (BrokerProducer, "answered"),
    (Dispatcher, "expire"),
    (MessageLedger, "finish"),
    (MemoryBudget, "give_back"),
    (MessageRun, "forget"),
    (Column, "end"),
]


def break_place(patch: pytest.MonkeyPatch, where: Any, name: str) -> None:
    """From now on whatever is called there raises."""

    def fail(*_: Any, **__: Any) -> None:
        raise KeyError("a defect")

    patch.setattr(where, name, fail)


@pytest.mark.parametrize(("where", "name"), PLACES, ids=[f"{where.__name__}.{name}" for where, name in PLACES])
def test_every_message_has_an_outcome(
    run: Run, broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch, where: Any, name: str
) -> None:
    async def work() -> None:
        p = AsyncProducer(broker.bootstrap, linger_ms=1)
        before = [p.send("broken", b"%d" % n, key=b"%d" % n) for n in range(BEFORE)]
        await p.flush()
        with monkeypatch.context() as patch:
            break_place(patch, where, name)
            sent = [p.send("broken", b"%d" % n, key=None if n % 3 else b"%d" % n) for n in range(50)]
            column = asyncio.create_task(p.send_many("broken", None, [b"row"] * 50))
            ended = await asyncio.gather(*sent, return_exceptions=True)
            (rows,) = await asyncio.gather(column, return_exceptions=True)
            assert isinstance(rows, DeliveryFailed) or where is MessageRun
            for each, outcome in zip(sent, ended, strict=True):
                assert each.outcome is not None
                if where not in (MessageRun, Column):  # there they had been delivered
                    assert each.outcome is not Outcome.DELIVERED
                    assert isinstance(outcome, ProducerBroken)
                    assert "the producer is broken, close it and make another: KeyError: 'a defect'" in str(outcome)
                    assert isinstance(outcome.cause, KeyError)
            with pytest.raises(ProducerBroken, match="the producer is broken"):
                p.send("broken", b"late")
            with pytest.raises(ProducerBroken, match="the producer is broken"):
                await p.input.put(Message("broken", b"late"))
            await p.flush()
            await asyncio.gather(p.close(), p.close(), p.abort())
            assert p.metrics().open == 0
        assert {each.outcome for each in before} == {Outcome.DELIVERED}

    run(work)


def test_what_was_in_no_batch_is_not_written(run: Run, broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async with AsyncProducer(broker.bootstrap, linger_ms=60_000) as p:
            sent = [p.send("broken", b"x", partition=0) for _ in range(5)]
            early = p.send("broken", b"x", key=b"k")
            await asyncio.sleep(0)
            break_place(monkeypatch, Dispatcher, "expire")
            waiting = p.send("broken", b"x", partition=0)
            for each in (*sent, early, waiting):
                with pytest.raises(ProducerBroken) as caught:
                    await each
                assert caught.value.outcome is Outcome.NOT_WRITTEN
            assert (p.metrics().failed, p.metrics().accepted) == (7, 7)

    run(work)
