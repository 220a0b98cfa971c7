"""Calls that begin and end transactions, at once and cancelled: each ends in a state from which others go on."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from korvet_fast.client import AsyncProducer
from korvet_fast.client.producer import DeliveryFailed, Outcome, TransactionError
from korvet_fast.client.protocol.errors import ClientError
from korvet_fast.client.protocol.transactions import ADD_PARTITIONS_TO_TXN, END_TXN
from korvet_fast.wire.kafka.shapes.coordinators import FIND_COORDINATOR
from korvet_fast.wire.kafka.shapes.message import Message
from korvet_fast.wire.kafka.shapes.producers import INIT_PRODUCER_ID
from transaction_broker import ForgetfulCoordinator

Run = Callable[[Callable[[], Awaitable[Any]]], Any]
SETTINGS: dict[str, Any] = {"transactional_id": "billing", "retry_backoff_ms": 1, "retry_backoff_max_ms": 1}
PATIENCE = 30  # seconds; whoever has not come back by then hangs
REFUSED = ((0, 29),)  # TOPIC_AUTHORIZATION_FAILED, for partition 0
CONCURRENT = ((0, 51),)  # CONCURRENT_TRANSACTIONS: later
NOT_COORDINATOR, INVALID_PRODUCER_EPOCH, TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 16, 47, 53


async def until(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not reached():
            await asyncio.sleep(0.001)


def test_a_second_init_is_refused_while_one_is_under_way(run: Run) -> None:
    """Both asked for a producer id: the later answer replaced the epoch in the middle of a transaction."""
    broker = ForgetfulCoordinator()
    broker.silent.add(INIT_PRODUCER_ID.key)

    async def work() -> None:
        async with broker.run() as address, AsyncProducer(address, **SETTINGS) as p:
            calls = [asyncio.ensure_future(p.init_transactions()) for _ in range(2)]
            await until(lambda: INIT_PRODUCER_ID.key in broker.requests)
            for call in (p.commit_transaction, p.abort_transaction):
                with pytest.raises(TransactionError, match="the init is not over; wait for its end"):
                    await call()
            with pytest.raises(TransactionError, match="no begin now"):
                p.begin_transaction()
            broker.silent.clear()
            first, second = await asyncio.gather(*calls, return_exceptions=True)
            assert first is None
            assert isinstance(second, TransactionError)
            assert str(second) == "no init now: the init is not over; wait for its end"
            assert broker.requests.count(INIT_PRODUCER_ID.key) == 1
            async with p.transaction():
                p.send("t", b"x", partition=0)
        assert broker.ends == [True]

    run(work)


def test_a_commit_says_that_it_failed_also_where_an_abort_comes_at_once(run: Run) -> None:
    """Whoever awaits the message learns of its failure before the commit does, and aborts: the commit then returned as
    if it had committed.
    """
    broker = ForgetfulCoordinator(left_out=1, results=REFUSED)

    async def work() -> None:
        async with broker.run() as address, AsyncProducer(address, **SETTINGS) as p:
            await p.init_transactions()
            p.begin_transaction()
            sent = p.send("t", b"x", partition=0)
            commit = asyncio.ensure_future(p.commit_transaction())
            with pytest.raises(DeliveryFailed):
                await sent
            with pytest.raises(TransactionError, match="no abort now: the commit is not over"):
                await p.abort_transaction()
            with pytest.raises(TransactionError, match="no commit: the transaction failed"):
                await commit
            await p.abort_transaction()
            p.begin_transaction()
            await p.commit_transaction()

    run(work)


def test_a_commit_waits_until_the_coordinator_knows_what_it_is_being_told(run: Run) -> None:
    """A partition whose only message was withdrawn was added behind the end, so to the next transaction."""
    broker = ForgetfulCoordinator(left_out=1, results=CONCURRENT)
    broker.silent.add(ADD_PARTITIONS_TO_TXN.key)

    async def work() -> None:
        async with broker.run() as address, AsyncProducer(address, **SETTINGS) as p:
            await p.init_transactions()
            p.begin_transaction()
            sent = p.send("t", b"x", partition=0)
            await until(lambda: ADD_PARTITIONS_TO_TXN.key in broker.requests)
            assert sent.cancel()
            commit = asyncio.ensure_future(p.commit_transaction())
            await asyncio.sleep(0.01)
            broker.silent.clear()
            await commit
        told = [key for key in broker.requests if key in (ADD_PARTITIONS_TO_TXN.key, END_TXN.key)]
        assert told == [ADD_PARTITIONS_TO_TXN.key] * 2 + [END_TXN.key]

    run(work)


def test_an_abort_that_is_cancelled_while_it_takes_a_new_epoch_can_be_followed_by_init(run: Run) -> None:
    """The producer was aborting for ever."""
    broker = ForgetfulCoordinator(left_out=1, results=REFUSED)

    async def work() -> None:
        async with broker.run() as address, AsyncProducer(address, **SETTINGS) as p:
            await p.init_transactions()
            p.begin_transaction()
            with pytest.raises(DeliveryFailed):
                await p.send("t", b"x", partition=0)
            broker.silent.add(INIT_PRODUCER_ID.key)
            abort = asyncio.ensure_future(p.abort_transaction())
            await until(lambda: broker.requests.count(INIT_PRODUCER_ID.key) == 2)
            abort.cancel()
            with pytest.raises(asyncio.CancelledError):
                await abort
            broker.silent.clear()
            await p.init_transactions()
            async with p.transaction():
                p.send("t", b"x", partition=0)
        assert broker.ends == [True]

    run(work)


class LostCoordinator(ForgetfulCoordinator):
    """It has moved when a transaction is to be ended; where to, the producer may not ask until `allows`."""

    moved = allows = False

    def _answer(self, message: Message, values: dict[str, Any]) -> dict[str, Any]:
        if message is END_TXN and not self.moved:
            self.moved = True
            return {"error_code": NOT_COORDINATOR}
        answer = super()._answer(message, values)
        if message is FIND_COORDINATOR and self.moved and not self.allows:
            answer["error_code"] = TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return answer


@pytest.mark.parametrize("end", ["commit_transaction", "abort_transaction"])
def test_where_the_coordinator_may_not_be_asked_for_any_more_the_end_is_unknown(run: Run, end: str) -> None:
    """The producer was committing, or aborting, for ever."""
    broker = LostCoordinator()

    async def work() -> None:
        async with broker.run() as address, AsyncProducer(address, **SETTINGS) as p:
            await p.init_transactions()
            p.begin_transaction()
            await p.send("t", b"x", partition=0)
            with pytest.raises(TransactionError, match="call init_transactions to go on") as caught:
                await getattr(p, end)()
            assert caught.value.outcome is Outcome.UNKNOWN
            broker.allows = True
            await p.init_transactions()
            async with p.transaction():
                p.send("t", b"x", partition=0)
        assert broker.ends == [True]

    run(work)


class EpochCoordinator(ForgetfulCoordinator):
    """Each InitProducerId begins an epoch, and fences those before it. `down`: AddPartitionsToTxn costs the connection.

    `expired`: the transaction took longer than its timeout, so its epoch is over.
    """

    epoch = -1
    down = expired = False

    def _answer(self, message: Message, values: dict[str, Any]) -> dict[str, Any]:
        if message is INIT_PRODUCER_ID:
            self.epoch += 1
            self.expired = False
            return {"error_code": 0, "producer_id": 7, "producer_epoch": self.epoch}
        if message is ADD_PARTITIONS_TO_TXN:
            if self.expired or values["producer_epoch"] < self.epoch:
                rows = [{"index": 0, "error_code": INVALID_PRODUCER_EPOCH}]
                return {"results": [{"name": "t", "partitions": rows}]}
            if self.down:
                raise ConnectionError
        return super()._answer(message, values)


@pytest.mark.parametrize("expires", [False, True])
def test_a_request_of_a_lost_transaction_does_not_fence_the_next_one(run: Run, expires: bool) -> None:
    """It was sent again, with the old epoch, behind the new one's beginning."""
    broker = EpochCoordinator()

    async def work() -> None:
        async with broker.run() as address, AsyncProducer(address, **SETTINGS) as p:
            await p.init_transactions()
            p.begin_transaction()
            broker.down = True
            sent = p.send("t", b"x", partition=0)
            await until(lambda: ADD_PARTITIONS_TO_TXN.key in broker.requests)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(p.abort_transaction(), 0.02)
            assert sent.outcome is Outcome.NOT_WRITTEN
            init = asyncio.ensure_future(p.init_transactions())
            await asyncio.sleep(0.02)
            broker.down, broker.expired = False, expires
            await asyncio.wait_for(init, PATIENCE)
            async with p.transaction():
                p.send("t", b"x", partition=0)
        assert broker.ends == [True]

    run(work)


def test_a_second_event_loop_is_refused(run: Run) -> None:
    """The connection to the coordinator was made there, for the first loop to hang on."""
    p = AsyncProducer("127.0.0.1:1", **SETTINGS, delivery_timeout_ms=50)

    async def first() -> None:
        with pytest.raises(ClientError, match="did not take InitProducerId"):
            await p.init_transactions()

    async def second() -> None:
        for call in (p.init_transactions, p.commit_transaction, p.abort_transaction):
            with pytest.raises(RuntimeError, match="for the event loop of its first call"):
                await call()
        with pytest.raises(RuntimeError, match="for the event loop of its first call"):
            p.send("t", b"x")

    run(first)
    run(second)
