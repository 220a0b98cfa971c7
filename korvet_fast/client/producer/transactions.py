"""Transactions of an asyncio producer: begun, committed and aborted, with what the coordinator is asked for each."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from korvet_fast.client.producer.config import ProducerConfig
from korvet_fast.client.producer.message import Cancelled
from korvet_fast.client.producer.pipeline import Pipeline
from korvet_fast.client.producer.transaction_coordinator import CoordinatorRefused, TransactionCoordinator
from korvet_fast.client.producer.transaction_refusals import FENCED
from korvet_fast.client.producer.transaction_state import (
    Transaction,
    TransactionError,
    TransactionState,
)
from korvet_fast.client.protocol.errors import ClientError
from korvet_fast.client.protocol.metadata import TopicPartition
from korvet_fast.client.protocol.requests import check_producer_id
from korvet_fast.client.protocol.transactions import (
    ADD_PARTITIONS_TO_TXN,
    END_TXN,
    add_partitions_request,
    read_add_partitions,
)
from korvet_fast.wire.kafka.shapes.message import Message
from korvet_fast.wire.kafka.shapes.producers import INIT_PRODUCER_ID


class Transactions:
    """`wait`: until something is so, as the driver looks; `changed`: called when the pipeline has to run."""

    def __init__(
        self,
        config: ProducerConfig,
        pipeline: Pipeline,
        coordinator: TransactionCoordinator,
        wait: Callable[[Callable[[], bool]], Any],
        changed: Callable[[], None],
    ) -> None:
        assert pipeline.transaction is not None, "for transactional producers"
        self.state: Transaction = pipeline.transaction
        self._config = config
        self._pipeline = pipeline
        self._coordinator = coordinator
        self._wait = wait
        self._changed = changed
        self._under_way = ""

    async def init(self) -> None:
        """Get a producer id. Whoever had one under the same `transactional.id` is fenced, its transaction ended."""
        with self._alone("init"):
            await self._init()

    async def commit(self) -> None:
        """Deliver what was sent, then commit it."""
        with self._alone("commit"):
            await self._commit()

    async def abort(self) -> None:
        """Send nothing more of the transaction, and abort what was sent."""
        with self._alone("abort"):
            await self._abort()

    async def add(self, partitions: Sequence[TopicPartition]) -> None:
        """Tell the coordinator that the transaction has these partitions; before that nothing is sent to them."""
        try:
            values = self._producer() | add_partitions_request(partitions)
            await self._ask(ADD_PARTITIONS_TO_TXN, values, partial(read_add_partitions, partitions))
        except ClientError as error:
            self.state.asked.clear()
            self.state.fail(error)
            self._pipeline.dispatcher.end_unsent(TransactionError(f"the transaction failed: {error}", cause=error))
        else:
            self._pipeline.partitions_added()
        self._changed()

    async def close(self) -> None:
        """Close the connection to the coordinator."""
        await self._coordinator.close()

    @contextmanager
    def _alone(self, what: str) -> Iterator[None]:
        """One of these at a time, as Java's TransactionManager has it. Raises `TransactionError` for a second one."""
        if self._under_way:
            raise TransactionError(f"no {what} now: the {self._under_way} is not over; wait for its end")
        self._under_way = what
        try:
            yield
        finally:
            self._under_way = ""

    async def _init(self) -> None:
        if self.state.state is not TransactionState.NEW:
            self.state.apply("init")
        await self._wait(lambda: not self.state.asked)  # of a lost transaction: its epoch ends with the next request
        await self._renew({})
        self.state.apply("init")

    async def _commit(self) -> None:
        self.state.apply("commit")
        try:
            number = self._pipeline.flush()
            self._changed()
            await self._wait(lambda: self._is_delivered(number) or self.state.failure is not None)
        except asyncio.CancelledError:
            self.state.fail(Cancelled("the commit was cancelled"))
            raise
        if self._pipeline.ledger.broken is not None:
            self._pipeline.ledger.refuse()
        self.state.refuse("commit")
        await self._end(committed=True)
        self.state.apply("end")

    async def _abort(self) -> None:
        failed = self.state.state is TransactionState.FAILED
        self.state.apply("abort")
        try:
            failed |= await self._clear()
            await self._wait(lambda: not self.state.asked)
        except asyncio.CancelledError:
            self.state.apply("lose")
            raise
        self.state.refuse("abort")  # fenced meanwhile
        await self._end(committed=False)
        if failed:  # sequence numbers were given away in vain, or are in doubt: they begin anew (KIP-360)
            with self._unknown_if_it_fails("abort"):
                await self._renew(self._producer())
        self.state.apply("end")

    def _is_delivered(self, number: int) -> bool:
        """Whether a flush is over, and the coordinator is being told of nothing that would come behind the end."""
        return self._pipeline.ledger.is_flushed(number) and not self.state.asked

    async def _clear(self) -> bool:
        """End what is not on its way, and wait for the rest. Whether there was any."""
        counts, partitions = self._pipeline.ledger.counts, self._pipeline.dispatcher.partitions
        self._pipeline.dispatcher.runs.shut_all()
        found = counts.open > 0
        while counts.open:
            self._pipeline.dispatcher.end_unsent(
                Cancelled("the transaction was aborted before the message was delivered")
            )
            self._changed()
            await self._wait(
                lambda: not counts.open or any(not each.idle and not each.in_flight for each in partitions())
            )
        return found

    async def _end(self, committed: bool) -> None:
        if self.state.is_empty:
            return
        values = self._producer() | {"committed": committed}
        with self._unknown_if_it_fails("commit" if committed else "abort"):
            try:
                await self._ask(END_TXN, values, lambda answer: [answer["error_code"]])
            except CoordinatorRefused as error:
                if not committed:
                    raise
                self.state.fail(error)
                raise TransactionError(f"not committed, abort it: {error}", cause=error) from error

    @contextmanager
    def _unknown_if_it_fails(self, what: str) -> Iterator[None]:
        """Nobody knows how the transaction ended if the coordinator gives no answer; unless the state tells it."""
        try:
            yield
        except asyncio.CancelledError:
            self.state.apply("lose")
            raise
        except ClientError as error:
            if self.state.state in (TransactionState.FAILED, TransactionState.FENCED):
                raise
            raise self.state.unknown(what, error) from error

    async def _renew(self, known: Mapping[str, Any]) -> None:
        timeout = int(self._config.transaction_timeout * 1000)
        values = {"transaction_timeout_ms": timeout, **known}
        answer = await self._ask(INIT_PRODUCER_ID, values, _producer_id_codes)
        self._pipeline.renew_identity(answer["producer_id"], answer["producer_epoch"])

    async def _ask(
        self, message: Message, values: Mapping[str, Any], codes: Callable[[Mapping[str, Any]], Sequence[int]]
    ) -> dict[str, Any]:
        try:
            return await self._coordinator.ask(message, values, codes)
        except CoordinatorRefused as error:
            # A new producer has asked for nothing but its id: the rest is of a transaction that was lost.
            is_lost = self.state.state is TransactionState.NEW and message is not INIT_PRODUCER_ID
            if error.code in FENCED and not is_lost:
                raise self.state.fence() from error
            raise

    def _producer(self) -> dict[str, int]:
        assert self._pipeline.identity.current is not None, "initialised"
        producer_id, epoch = self._pipeline.identity.current
        return {"producer_id": producer_id, "producer_epoch": epoch}


def _producer_id_codes(answer: Mapping[str, Any]) -> list[int]:
    if not answer["error_code"]:
        check_producer_id(answer)
    return [answer["error_code"]]
