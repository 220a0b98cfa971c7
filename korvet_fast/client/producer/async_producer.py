"""The asyncio producer: Sarama's AsyncProducer, with an awaitable for each message."""

import asyncio
import logging
from collections.abc import Sequence
from time import time_ns
from types import TracebackType
from typing import Any, Self
from weakref import WeakValueDictionary

from korvet_fast.client.producer.bootstrap import Bootstrap, read_brokers
from korvet_fast.client.producer.column_sender import ColumnSender
from korvet_fast.client.producer.config import read_config
from korvet_fast.client.producer.delivery import Delivery, wake
from korvet_fast.client.producer.dialects import KAFKA
from korvet_fast.client.producer.driver import Driver
from korvet_fast.client.producer.input import Input, InputRun
from korvet_fast.client.producer.interceptors import Interceptors
from korvet_fast.client.producer.message import (
    ANY_PARTITION,
    Cancelled,
    DeliveryFailed,
    Headers,
    Message,
    Outcome,
    QueuedRecords,
    failure_of,
)
from korvet_fast.client.producer.message_check import check_message
from korvet_fast.client.producer.message_run import MessageRun
from korvet_fast.client.producer.message_sender import MessageSender
from korvet_fast.client.producer.metrics import ProducerMetrics
from korvet_fast.client.producer.result_stream import ProducerError, ResultStream, Success
from korvet_fast.client.producer.rows import ColumnMetadata, QueuedRows
from korvet_fast.client.producer.settings import NO_RESPONSE
from korvet_fast.client.producer.transaction_calls import TransactionCalls
from korvet_fast.client.producer.unread_failures import UnreadFailures
from korvet_fast.client.tls import make_context
from korvet_fast.endpoint import Address

_log = logging.getLogger(__name__)
_DELIVERED = Outcome.DELIVERED  # looked up once: the class of an enumeration is slow to ask


class AsyncProducer(TransactionCalls):
    """`async with AsyncProducer("127.0.0.1:9092", acks="all") as p: print((await p.send("orders", b"value")).offset)`

    Settings have Kafka's names (`linger_ms`), or Sarama's: `config.SETTINGS` has all of them. Nothing is connected
    before the first message; a producer that finds no broker keeps messages, until they expire. At the end of `async
    with` everything is delivered, or has ended otherwise. Raises `SettingError` for settings that cannot be used.

    `successes`, `errors`: the results of what came by `input`. `unread`: failures that nobody has read: `flush` and
    `close` tell them in the log. For one event loop, that of the first call: calls from
    another raise `RuntimeError`.
    """

    def __init__(self, bootstrap: str | Sequence[Address], **settings: Any) -> None:
        brokers = read_brokers(bootstrap) if isinstance(bootstrap, str) else Bootstrap(KAFKA, tuple(bootstrap))
        self.config = read_config(settings, brokers.dialect)
        make_context(self.config.security)  # files that cannot be used are an error here, not of each message
        self._check_dialect = self.config.dialect.check
        self._driver = Driver(self.config, brokers, self._end)
        self._ledger = self._driver.pipeline.ledger
        self.unread = UnreadFailures()
        self._confirms = self.config.acks != NO_RESPONSE
        self._told = bool(self.config.interceptors) or self.config.return_successes
        self._interceptors = Interceptors(self.config.interceptors, self._check)
        # The short way of most messages: into the open run of their partition. Interceptors see messages.
        super().__init__(self._driver.transactions, self._driver.enter)
        direct = not self._interceptors and self._transactions is None and self._check_dialect is None
        self._topics = self._driver.pipeline.dispatcher.topics if direct else {}
        self._sender = MessageSender(self._driver.pipeline.dispatcher, self.config, self._driver)
        # Locks of columns.
        self._turns: WeakValueDictionary[tuple[str, int | None], asyncio.Lock] = WeakValueDictionary()
        self.input = Input(self._put)
        self.successes: ResultStream[Success] = ResultStream(self._release)
        self.errors: ResultStream[ProducerError] = ResultStream(self._release)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, Exception):
            await self.close()
        else:  # the task was cancelled: it wants to end now
            await self.abort()

    def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> Delivery:
        """Send a message; returns at once. Await the result for its place in the log, late, or never.

        `timestamp`: ms since 1970, the present if None. Without memory the message waits for some, up to
        `max.block.ms`, and so many may wait; then `BufferFull` is raised. Raises `DeliveryFailed` also for what cannot
        be sent, `TypeError` and `ValueError` for what is no message, and `ProducerClosed`: then the message was not
        accepted.
        """
        found = self._topics.get(topic)
        plain = not headers and timestamp is None and (partition is None or type(partition) is int)  # no True for 1
        if found is not None and plain:
            run = found.open_run(key, partition)
            if run is not None:
                delivery: Delivery | None = run.cells.join(Delivery, run, value, key)
            else:
                delivery = self._begin(topic, value, key, partition)
            if delivery is not None:
                return delivery
        return self._send(Message(topic, value, key, headers, partition, timestamp), wait=True)

    def try_send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> Delivery:
        """As `send`, but without memory for the message it raises `BufferFull` at once."""
        return self._send(Message(topic, value, key, headers, partition, timestamp), wait=False)

    async def send_when_room(self, message: Message) -> Delivery:
        """As `send`, but returns when the message has been accepted. Raises `BufferFull` after `max.block.ms`."""
        run = self._sender.make(MessageRun, self._intercept(message))
        await self._enqueue_when_room(run)
        return Delivery(run, 0)

    async def send_many(
        self,
        topic: str,
        keys: Any,
        values: Any,
        *,
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> ColumnMetadata:
        """Send a column of values, with a column of keys or None: lists, NumPy or Arrow arrays of bytes.

        Takes rows as fast as there is memory, and returns when all are delivered: partitions and offsets in the order
        of the rows. Raises `RowsFailed`, which says what became of which row. Interceptors do not see rows. Columns
        that are sent at the same time with the same `partition`, or with none, keep their order.
        """
        self._driver.enter()
        turn = self._turns.setdefault((topic, partition), asyncio.Lock())
        check_message(Message(topic, None, partition=partition, timestamp=timestamp))
        self._check_transaction()
        if self._check_dialect is not None:
            self._check_dialect(Message(topic, b"", partition=partition, timestamp=timestamp))
        sender = ColumnSender(self._driver, topic, partition, self._time(timestamp), turn)
        return await sender.send(keys, values)

    async def flush(self) -> None:
        """Send what waits for more messages now, and wait until everything sent so far has ended."""
        self._driver.enter()
        number = self._driver.pipeline.flush()
        self._driver.schedule()
        await self._driver.wait(lambda: self._ledger.is_flushed(number))
        self.unread.tell()

    async def close(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 Sarama's and Kafka's name
        """Take no more messages, deliver those that are here, and leave nothing behind. May be called again.

        `timeout`: seconds; then what is left ends as not written, or as unknown if it was sent. None: each message has
        its own deadline, so this ends too.
        """
        self._driver.enter()
        self._driver.pipeline.close()
        self._driver.schedule()
        try:
            async with asyncio.timeout(timeout):
                await self._driver.wait(lambda: not self._ledger.counts.open)
        except TimeoutError:
            _log.warning("closed after %g s with %d messages undelivered", timeout, self._ledger.counts.open)
        finally:
            await self._close_all()

    async def abort(self) -> None:
        """Close at once: what is here ends as not written, or as unknown if it was sent."""
        self._driver.enter()
        self._driver.pipeline.close()
        await self._close_all()

    def resume(self, topic: str, partition: int | None = None) -> None:
        """Take messages again for a partition that a failure stopped (`on.failure` = stop).

        `partition` None: the messages for which the broker chooses, by text:// and legacy://.
        """
        stopped = self._driver.pipeline.dispatcher.topic(topic).stopped
        stopped.pop(ANY_PARTITION if partition is None else partition, None)

    def metrics(self) -> ProducerMetrics:
        """The producer's figures at this moment."""
        return self._driver.pipeline.metrics(self._driver.now())

    async def _put(self, message: Message) -> None:
        sent = self._intercept(message)
        run = self._sender.make(InputRun, sent)
        run.message, run.returns = message, (self.config.return_successes, self.config.return_errors)
        await self._enqueue_when_room(run)

    def _begin(self, topic: str, value: bytes | None, key: bytes | None, partition: int | None) -> Delivery | None:
        """Begin a run with a message that is bytes and names its partition; None if it has to go the long way."""
        if partition is None or type(value) is not bytes or not (key is None or type(key) is bytes):
            return None
        now = self._driver.enter()
        try:
            run = self._sender.begin(topic, value, key, partition, now)
        except Exception as error:
            self._driver.break_off(error)  # the message may be at a stage, or at none
            raise
        self._driver.schedule()
        return run.cells.place(Delivery, run, 0) if run is not None else None

    def _send(self, message: Message, wait: bool) -> Delivery:
        now = self._driver.enter()
        sent = self._intercept(message)
        try:
            run, index = self._sender.send(sent, now, wait)
        except DeliveryFailed as error:
            self._driver.schedule()  # what it asked for in vain may have come about by now
            self._interceptors.end(None, error)
            raise
        except Exception as error:
            self._driver.break_off(error)  # the message may be at a stage, or at none
            raise
        self._driver.schedule()
        delivery: Delivery = run.cells.place(Delivery, run, index)
        return delivery

    async def _enqueue_when_room(self, run: MessageRun) -> None:
        try:
            self._sender.check_size(run)
            await self._driver.enqueue(run, self._driver.transaction)
        except DeliveryFailed as error:
            self._interceptors.end(None, error)
            raise
        except asyncio.CancelledError:
            self._interceptors.end(None, Cancelled("the caller withdrew the message while it waited for memory"))
            raise

    def _intercept(self, message: Message) -> Message:
        self._check_transaction()
        sent = self._check(message)
        return self._interceptors.send(sent) if self._interceptors else sent

    def _check(self, message: Message) -> Message:
        """The message as it can be sent. Raises as `check_message`, and `DeliveryFailed`."""
        checked = check_message(message)
        if self._check_dialect is not None:
            self._check_dialect(checked)
        return checked

    def _time(self, timestamp: int | None) -> int:
        """The time of rows in ms since 1970; -1 where only the broker sets one."""
        if timestamp is not None:
            return timestamp
        return time_ns() // 1_000_000 if self.config.dialect.has_times else -1

    def _release(self, records: InputRun) -> None:
        if records.unread is not None:
            records.unread.read()
        self._ledger.release(records)
        if not self._driver.finished:
            self._driver.schedule()

    def _check_transaction(self) -> None:
        if self._transactions is not None:
            self._transactions.state.check_open()

    def _end(self, records: QueuedRecords) -> None:
        """Messages have ended: tell interceptors, then whoever waits for them."""
        if self._transactions is not None and records.error is not None and not isinstance(records.error, Cancelled):
            self._transactions.state.fail(records.error)
        if isinstance(records, QueuedRows):
            records.column.end(records.rows, records)
            return
        assert isinstance(records, MessageRun), "whatever was sent"
        records.confirmed = self._confirms
        try:
            if records.outcome is not _DELIVERED or self._told:  # of most messages nobody sees the result unasked
                self._report(records)
        finally:
            wake(records)
            records.forget()

    def _report(self, records: MessageRun) -> None:
        error = failure_of(records)
        if self._interceptors:
            for position in range(records.count):
                self._interceptors.end(records.metadata(position) if error is None else None, error)
        is_awaited = isinstance(records, InputRun) and self._return_result(records, error)
        if error is not None and not is_awaited and not isinstance(error, Cancelled):  # that was the caller's wish
            records.unread = self.unread.add(records.topic, records.partition, error, records.indexes())

    def _return_result(self, records: InputRun, error: DeliveryFailed | None) -> bool:
        """Put the result of what came by `input` where it is taken; returns whether somebody waits for an error."""
        if error is None:
            if self.config.return_successes:
                self.successes.add(records, Success(records.message, records.metadata(0)))
            return False
        if not self.config.return_errors:
            return False
        self.errors.add(records, ProducerError(records.message, error))
        return self.errors.is_awaited

    async def _close_all(self) -> None:
        await self._driver.finish()
        self.successes.end()
        self.errors.end()
        self.unread.tell()
