"""A transaction that ends while others are at work: what is late is refused, and a closed producer leaves nothing."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from korvet_fast.client import AsyncProducer
from korvet_fast.client.producer import DeliveryFailed, Message, ProducerClosed, TransactionError
from korvet_fast.client.protocol.transactions import ADD_PARTITIONS_TO_TXN, END_TXN
from korvet_fast.wire.kafka.shapes.coordinators import FIND_COORDINATOR
from korvet_fast.wire.kafka.shapes.produce import PRODUCE
from korvet_fast.wire.kafka.shapes.producers import INIT_PRODUCER_ID
from transaction_broker import ForgetfulCoordinator

Run = Callable[[Callable[[], Awaitable[Any]]], Any]
SETTINGS: dict[str, Any] = {"transactional_id": "billing", "retry_backoff_ms": 1, "retry_backoff_max_ms": 1}
SMALL = {"buffer_memory": 3000, "max_request_size": 700}  # room for three messages of 100 bytes
PATIENCE = 30  # seconds; whoever has not come back by then hangs


async def until(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not reached():
            await asyncio.sleep(0.001)


def by_put(p: AsyncProducer) -> Awaitable[Any]:
    return p.input.put(Message("t", b"x" * 100, partition=0))


def by_rows(p: AsyncProducer) -> Awaitable[Any]:
    return p.send_many("t", None, [b"x" * 600] * 4, partition=0)


@pytest.mark.parametrize("enqueue", [by_put, by_rows])
@pytest.mark.parametrize("end", ["commit", "abort", "begin another"])
def test_what_waits_for_memory_when_its_transaction_ends_is_not_in_another_one(
    run: Run, enqueue: Callable[[AsyncProducer], Awaitable[Any]], end: str
) -> None:
    broker = ForgetfulCoordinator()
    broker.silent.add(PRODUCE.key)

    async def work() -> None:
        async with broker.run() as address, AsyncProducer(address, **SETTINGS, **SMALL) as p:
            await p.init_transactions()
            p.begin_transaction()
            full = [p.send("t", b"x" * 100, partition=0) for _ in range(3)]
            waits = asyncio.ensure_future(enqueue(p))
            await until(lambda: PRODUCE.key in broker.requests)
            ends = asyncio.ensure_future(p.commit_transaction() if end == "commit" else p.abort_transaction())
            await asyncio.sleep(0.01)
            broker.silent.clear()
            await ends
            if end == "begin another":
                p.begin_transaction()
            with pytest.raises(DeliveryFailed) as caught:
                await asyncio.wait_for(waits, PATIENCE)
            assert isinstance(caught.value.cause or caught.value, TransactionError)
            assert all(each.done() for each in full)
            if end == "begin another":
                await p.commit_transaction()
        after = broker.requests[broker.requests.index(END_TXN.key) :]
        assert PRODUCE.key not in after, "nothing of it is sent later"
        assert broker.outside == []

    run(work)


def test_what_waited_in_one_transaction_is_not_sent_in_the_next(run: Run) -> None:
    """No memory is given back between the two: results hold it until they are taken."""
    broker = ForgetfulCoordinator()

    async def work() -> None:
        settings = {"return_successes": True, "max_block_ms": 60_000, **SETTINGS, **SMALL}
        async with broker.run() as address, AsyncProducer(address, **settings) as p:
            await p.init_transactions()
            p.begin_transaction()
            for _ in range(3):
                await by_put(p)
            await p.flush()
            waits = asyncio.ensure_future(by_put(p))
            await asyncio.sleep(0.01)
            await p.commit_transaction()
            p.begin_transaction()
            for _ in range(3):
                await anext(p.successes)
            with pytest.raises(TransactionError, match="the transaction in which the message was sent ended"):
                await asyncio.wait_for(waits, PATIENCE)
            await p.commit_transaction()

    run(work)


def test_a_closed_producer_begins_nothing_with_a_broker(run: Run) -> None:
    broker = ForgetfulCoordinator()

    async def work() -> None:
        async with broker.run() as address:
            p = AsyncProducer(address, **SETTINGS)
            await p.close()
            with pytest.raises(ProducerClosed):
                await p.init_transactions()
            assert broker.requests == []

    run(work)


@pytest.mark.parametrize("key", [FIND_COORDINATOR.key, INIT_PRODUCER_ID.key])
def test_who_asks_the_coordinator_while_it_is_closed_is_told(run: Run, key: int) -> None:
    broker = ForgetfulCoordinator()
    broker.silent.add(key)

    async def work() -> None:
        async with broker.run() as address:
            p = AsyncProducer(address, **SETTINGS)
            init = asyncio.ensure_future(p.init_transactions())
            await until(lambda: key in broker.requests)
            await p.close()
            with pytest.raises(ProducerClosed):
                await asyncio.wait_for(init, PATIENCE)

    run(work)


def test_a_connection_that_comes_when_it_is_closed_is_not_kept(run: Run) -> None:
    broker = ForgetfulCoordinator()

    async def work() -> None:
        async with broker.run() as address:
            for turns in range(60):  # of the loop: somewhere between the first connection and the last answer
                p = AsyncProducer(address, **SETTINGS)
                init = asyncio.ensure_future(p.init_transactions())
                for _ in range(turns):
                    await asyncio.sleep(0)
                await p.close()
                with suppress(ProducerClosed):
                    await asyncio.wait_for(init, PATIENCE)

    run(work)


@pytest.mark.parametrize("end", ["commit_transaction", "abort_transaction"])
def test_a_transaction_that_was_open_when_it_was_closed_can_be_ended(run: Run, end: str) -> None:
    """It ends with an error that says so: it does not hang."""
    broker = ForgetfulCoordinator()
    broker.silent.add(ADD_PARTITIONS_TO_TXN.key)

    async def work() -> None:
        async with broker.run() as address:
            p = AsyncProducer(address, **SETTINGS)
            await p.init_transactions()
            p.begin_transaction()
            p.send("t", b"x", partition=0)
            await until(lambda: ADD_PARTITIONS_TO_TXN.key in broker.requests)
            await p.close(0.01)
            with pytest.raises(TransactionError):
                async with asyncio.timeout(PATIENCE):
                    await getattr(p, end)()

    run(work)
