"""Runs the pipeline on asyncio: does what it wants done, wakes it in time, and tells those who wait."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from random import Random

from korvet_fast.client.producer.bootstrap import Bootstrap
from korvet_fast.client.producer.broker_links import BrokerLinks
from korvet_fast.client.producer.broker_producer import Connect, Disconnect, Produce
from korvet_fast.client.producer.config import ProducerConfig
from korvet_fast.client.producer.control_connection import ControlConnection
from korvet_fast.client.producer.message import (
    BufferFull,
    DeliveryFailed,
    ProducerBroken,
    ProducerClosed,
    QueuedRecords,
)
from korvet_fast.client.producer.message_run import MessageRun
from korvet_fast.client.producer.pipeline import AddPartitions, FetchMetadata, Pipeline
from korvet_fast.client.producer.transaction_coordinator import TransactionCoordinator
from korvet_fast.client.producer.transactions import Transactions
from korvet_fast.client.protocol.errors import ClientError
from korvet_fast.client.protocol.metadata import metadata_request
from korvet_fast.client.protocol.requests import check_producer_id
from korvet_fast.rate_limited_log import RateLimitedLog, printable
from korvet_fast.wire.kafka.shapes.cluster import METADATA
from korvet_fast.wire.kafka.shapes.producers import INIT_PRODUCER_ID

_log = logging.getLogger(__name__)
_ONE_LOOP = (
    "an AsyncProducer is for the event loop of its first call: make one in each loop, "
    "or use Producer, which every thread may call"
)


class Driver:
    """`schedule` after whatever changes the pipeline: it runs once in the next turn of the loop, for all changes.

    `on_ended`: called for all records that have ended.
    """

    def __init__(
        self,
        config: ProducerConfig,
        bootstrap: Bootstrap,
        on_ended: Callable[[QueuedRecords], None],
    ) -> None:
        self.pipeline = Pipeline(config, Random(), bootstrap.broker)  # noqa: S311 pauses and spreading, no secrets
        self._links = BrokerLinks(self.pipeline, self.schedule, self.break_off)
        brokers = self.pipeline.brokers.addresses
        self._control = ControlConnection(bootstrap.addresses, brokers, config)
        self.transactions: Transactions | None = None
        if config.transactional_id is not None:
            coordinator = TransactionCoordinator(config, self._control, Random())  # noqa: S311
            self.transactions = Transactions(config, self.pipeline, coordinator, self.wait, self.schedule)
        self._log = RateLimitedLog(time.monotonic, log=__name__)
        self._on_ended = on_ended
        self._loop: asyncio.AbstractEventLoop | None = None
        self._scheduled = False
        self._timer: asyncio.TimerHandle | None = None
        self._conditions: dict[asyncio.Future[None], Callable[[], bool]] = {}  # what each waits for
        self._finishing: asyncio.Task[None] | None = None

    @property
    def transaction(self) -> int:
        """The number of the transaction that is open, or was the last; 0 where there are none."""
        return self.transactions.state.number if self.transactions is not None else 0

    @property
    def finished(self) -> bool:
        """Whether everything has ended, or is about to."""
        return self._finishing is not None

    def now(self) -> float:
        """The pipeline's clock, in seconds: that of the loop."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop.time()

    def enter(self) -> float:
        """`now`, for a call of the user's. Raises `RuntimeError` where another thread or event loop than that of the
        first call makes it: nothing there would run the pipeline.
        """
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            raise RuntimeError(_ONE_LOOP) from None
        if loop is not self._loop:
            if self._loop is not None:
                raise RuntimeError(_ONE_LOOP)
            self._loop = loop
        return loop.time()

    def schedule(self) -> None:
        """Run the pipeline in the next turn of the loop."""
        if not self._scheduled and self._finishing is None:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._run)

    def withdraw(self, run: MessageRun, index: int) -> tuple[MessageRun, int] | None:
        """Take one message of a run back. Raises as `enter`."""
        self.enter()
        taken = self.pipeline.dispatcher.withdraw_message(run, index)
        self.schedule()
        return taken

    async def wait(self, reached: Callable[[], bool]) -> None:
        """Wait until something is so; it is looked at whenever the pipeline ran."""
        if reached() or self.pipeline.ledger.broken is not None:
            return
        if self._finishing is not None:  # nothing changes any more
            await self.finish()
            return
        future = asyncio.get_running_loop().create_future()
        self._conditions[future] = reached
        try:
            await future
        finally:
            self._conditions.pop(future, None)

    async def enqueue(self, records: QueuedRecords, transaction: int) -> None:
        """Have a message taken as soon as there is memory. Raises `BufferFull` if there is none for `max.block.ms`, and
        `DeliveryFailed` for what cannot be sent. `transaction`: the one that was open when the caller sent it.
        """
        self.enter()
        self.schedule()
        if not self._is_taken(records, transaction):
            limit = self.pipeline.config.max_block
            try:
                async with asyncio.timeout(limit):
                    await self._take_when_room(records, transaction)
            except TimeoutError:
                raise BufferFull.after(limit) from None
            self.schedule()

    def _is_taken(self, records: QueuedRecords, transaction: int) -> bool:
        if self.transactions is not None:
            self.transactions.state.check_open(transaction)
        try:
            self.pipeline.dispatcher.enqueue(records, self.now(), wait=False)
        except BufferFull:
            return False
        return True

    async def _take_when_room(self, records: QueuedRecords, transaction: int) -> None:
        ledger = self.pipeline.ledger
        ledger.waiting[records] = self.now()  # memory is short: no batch waits for more messages
        if len(ledger.waiting) == 1:
            self.pipeline.dispatcher.send_now()
        try:
            while True:
                releases = ledger.releases  # memory given back before this attempt has helped it already
                if self._is_taken(records, transaction):
                    return
                self.schedule()
                await self.wait(lambda: ledger.releases != releases or ledger.closing)  # noqa: B023 waited for here
        finally:
            ledger.waiting.pop(records, None)

    async def finish(self) -> None:
        """End every message that has not ended, and everything that runs. The same end for all who call it."""
        if self._finishing is None:
            self._finishing = asyncio.get_running_loop().create_task(self._finish())
        await asyncio.shield(self._finishing)

    def break_off(self, error: BaseException) -> None:
        """A defect, here or in a stage: every message ends, the connections too, and nothing is taken any more."""
        _log.error("the producer is broken: close it, and make another", exc_info=error)
        if self.pipeline.ledger.broken is None:
            self._links.cancel()
            sentence = f"the producer is broken, close it and make another: {type(error).__name__}: {error}"
            self.pipeline.break_off(ProducerBroken(sentence, cause=error if isinstance(error, Exception) else None))
        if self._finishing is None:
            self._finishing = asyncio.get_running_loop().create_task(self._finish())

    def _run(self) -> None:
        self._scheduled = False
        if self._finishing is None:
            try:
                self._advance()
            except Exception as error:  # noqa: BLE001 each message has an outcome, also where we erred
                self.break_off(error)

    def _advance(self) -> None:
        now = self.now()
        for action in self.pipeline.poll(now):
            if isinstance(action, Produce):
                self._links.produce(action.broker, action.request)
            elif isinstance(action, Connect):
                self._links.connect(action.broker)
            elif isinstance(action, Disconnect):
                self._links.disconnect(action.broker)
            elif isinstance(action, FetchMetadata):
                self._links.start(self._fetch_metadata(action.topics))
            elif isinstance(action, AddPartitions):
                assert self.transactions is not None, "for transactional producers"
                self._links.start(self.transactions.add(action.partitions))
            else:
                self._links.start(self._init_producer_id())
        self._tell()
        self._set_timer(now)

    def _set_timer(self, now: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        at = self.pipeline.next_time()
        self._timer = None if at is None else asyncio.get_running_loop().call_at(max(at, now), self._run)

    def _tell(self) -> None:
        while self.pipeline.ledger.ended:
            try:
                self._on_ended(self.pipeline.ledger.ended.popleft())
            except Exception as error:  # noqa: BLE001 as in `_run`; the others are told all the same
                self.break_off(error)
        for sentence in self.pipeline.stalls.take_reports():
            _log.warning("%s", printable(sentence))
        for future in [each for each, reached in self._conditions.items() if reached()]:
            del self._conditions[future]
            if not future.done():
                future.set_result(None)

    async def _fetch_metadata(self, topics: Iterable[str]) -> None:
        try:
            answer = await self._control.request(METADATA, metadata_request(list(topics), create=True))
        except ClientError as error:
            self._log.warn("metadata", f"no metadata: {error}")
            self.pipeline.metadata_failed(error, self.now())
        else:
            self.pipeline.metadata_received(answer, self.now())
        self.schedule()

    async def _init_producer_id(self) -> None:
        request = {"transactional_id": None, "transaction_timeout_ms": 0}
        try:
            answer = await self._control.request(INIT_PRODUCER_ID, request, check_producer_id)
        except ClientError as error:
            self._log.warn("producer id", f"no producer id: {error}")
            self.pipeline.producer_id_failed(error, self.now())
        else:
            self.pipeline.producer_id_received(answer["producer_id"], answer["producer_epoch"])
        self.schedule()

    async def _finish(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        error: DeliveryFailed = ProducerClosed("the producer was closed before the message was delivered")
        if self.pipeline.ledger.broken is None:
            try:
                self.pipeline.abandon(error)
            except Exception as defect:  # noqa: BLE001 as in `_run`
                self.break_off(defect)
        await self._links.close()
        await self._control.end()
        if self.transactions is not None:
            await self.transactions.close()
        self._tell()
        for future in self._conditions:
            if not future.done():
                future.set_result(None)
        self._conditions.clear()
