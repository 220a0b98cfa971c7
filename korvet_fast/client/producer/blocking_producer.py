"""The producer for scripts and notebooks: an `AsyncProducer` on a thread of its own."""

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, Self, TypeVar
from weakref import WeakValueDictionary

from korvet_fast.client.producer.async_producer import AsyncProducer
from korvet_fast.client.producer.delivery import Delivery
from korvet_fast.client.producer.message import (
    BufferFull,
    DeliveryFailed,
    Headers,
    Message,
    ProducerClosed,
    RecordMetadata,
)
from korvet_fast.client.producer.message_check import check_message
from korvet_fast.client.producer.metrics import ProducerMetrics
from korvet_fast.client.producer.rows import ColumnMetadata
from korvet_fast.client.producer.send_result import SendResult
from korvet_fast.endpoint import Address

_log = logging.getLogger(__name__)
Result = TypeVar("Result")
_MOST_HANDED = 1000  # messages on their way to the thread; then `send` waits for it
_OTHER_PROCESS = "this Producer is for the process that made it, where its thread is: make another one after a fork"
_OWN_THREAD = "a callback or an interceptor of a Producer may not wait for it, on its own thread: call from another one"
_BUSY = f"{_MOST_HANDED:,} messages are on their way to the producer's thread, where this call may not wait for them"


class Producer:
    """`with Producer("127.0.0.1:9092") as p: p.send("orders", b"value").result()`

    The settings are those of `AsyncProducer`. May be used from several threads; order is that of each thread's calls.
    What a callback of a result raises is logged, `SystemExit` too: it runs on a thread of the producer's.
    All methods raise `RuntimeError` in a forked process; those that wait, also on the producer's own thread.
    """

    def __init__(self, bootstrap: str | Sequence[Address], **settings: Any) -> None:
        self._producer = AsyncProducer(bootstrap, **settings)  # raises for wrong settings before there is a loop
        self._loop = asyncio.new_event_loop()
        self._places: SimpleQueue[None] = SimpleQueue()  # one for each message that may be handed over now
        for _ in range(_MOST_HANDED):
            self._places.put(None)
        # Locks of topics, while messages of theirs are handed over.
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._closing = threading.RLock()  # a signal's handler may close it in the middle of a call
        self._closed = self._stopping = False
        self._stopped = asyncio.Event()  # set on the thread
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._run, name="korvet-fast producer", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, Exception):
            self.close()
        else:  # interrupted: whoever did that wants it to end now
            self.abort()

    def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> Future[RecordMetadata]:
        """Send a message. `result()` of what is returned waits for its delivery, and raises `DeliveryFailed`.

        What is no message raises `TypeError` or `ValueError`. Without memory for `max.block.ms` the result is
        `BufferFull`. `cancel()` withdraws what was not sent yet.
        """
        message = check_message(Message(topic, value, key, headers, partition, timestamp))
        try:
            self._places.get(block=not self._is_own_thread())
        except Empty:
            raise BufferFull(_BUSY) from None
        try:
            return self._hand(self._start, message)
        except ProducerClosed:
            self._places.put(None)
            raise

    def send_many(
        self, topic: str, keys: Any, values: Any, *, partition: int | None = None, timestamp: int | None = None
    ) -> ColumnMetadata:
        """As `AsyncProducer.send_many`; waits until all rows are delivered."""
        return self._wait(
            lambda: self._producer.send_many(topic, keys, values, partition=partition, timestamp=timestamp)
        )

    def flush(self) -> None:
        """Wait until everything sent so far has ended."""
        self._wait(self._flush)

    def close(self, timeout: float | None = None) -> None:
        """As `AsyncProducer.close`; ends the thread too. May be called again."""
        self._end(lambda: self._close(timeout))

    def abort(self) -> None:
        """As `AsyncProducer.abort`; ends the thread too."""
        self._end(self._producer.abort)

    def metrics(self) -> ProducerMetrics:
        """As `AsyncProducer.metrics`."""

        async def read_metrics() -> ProducerMetrics:
            return self._producer.metrics()

        return self._wait(read_metrics)

    def _start(self, message: Message) -> SendResult:
        result = SendResult(self._loop)
        self._loop.call_soon_threadsafe(self._begin, message, result)
        return result

    def _begin(self, message: Message, result: SendResult) -> None:
        result.run(self._send(message, result))

    async def _send(self, message: Message, result: SendResult) -> RecordMetadata:
        delivery: Delivery | None = None
        try:
            delivery = await self._hand_over(message)
            return await delivery
        except DeliveryFailed as error:
            partition = delivery.partition if delivery is not None else -1
            result.unread = self._producer.unread.add(message.topic, partition, error, {0})
            del result  # it will have the error, whose traceback has this frame
            raise

    async def _hand_over(self, message: Message) -> Delivery:
        """Wait until the producer takes a message, in the order of the calls. Raises as `send_when_room`."""
        turn = self._turns.setdefault(message.topic, asyncio.Lock())
        limit = self._producer.config.max_block
        try:
            async with asyncio.timeout(limit if turn.locked() else None), turn:
                return await self._producer.send_when_room(message)
        except TimeoutError:
            raise BufferFull.after(limit) from None
        finally:
            self._places.put(None)

    async def _accept_all(self) -> None:
        """Wait until what was sent so far has been taken by the producer, or has failed."""
        for turn in list(self._turns.values()):
            async with turn:  # whoever came earlier has had it
                pass

    async def _flush(self) -> None:
        await self._accept_all()
        await self._producer.flush()

    async def _close(self, timeout: float | None) -> None:  # noqa: ASYNC109 as in `close`
        until = None if timeout is None else self._loop.time() + timeout
        with suppress(TimeoutError):
            async with asyncio.timeout_at(until):
                await self._accept_all()
        await self._producer.close(None if until is None else max(0.0, until - self._loop.time()))

    def _is_own_thread(self) -> bool:
        """Whether a callback or an interceptor calls. Raises `RuntimeError` in a forked process."""
        if os.getpid() != self._process:
            raise RuntimeError(_OTHER_PROCESS)
        return threading.current_thread() is self._thread

    def _check_waiter(self) -> None:
        if self._is_own_thread():
            raise RuntimeError(_OWN_THREAD)

    def _wait(self, work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        self._check_waiter()
        return self._submit(work()).result()

    def _submit(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        try:
            return self._hand(asyncio.run_coroutine_threadsafe, work, self._loop)
        except ProducerClosed:
            work.close()
            raise

    def _hand(self, call: Callable[..., Future[Result]], *arguments: Any) -> Future[Result]:
        """Hand work to the thread by `call`. Raises `ProducerClosed` once the thread is to end.

        The handler of a signal may close the producer, and with it the loop, between any two lines of this.
        """
        with self._closing, suppress(RuntimeError):
            if not self._closed:
                result = call(*arguments)
                if not self._closed or result.done():  # else it came behind all that the loop still did
                    return result
        raise ProducerClosed("the producer is closed; it takes no more messages")

    def _end(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Close the producer, then end the thread. Whoever comes later may end it sooner; all wait for the same end."""
        self._check_waiter()
        with self._closing:
            self._closed = True
            ended = None if self._stopping else asyncio.run_coroutine_threadsafe(work(), self._loop)
        try:
            if ended is not None:
                ended.result()
        finally:
            with self._closing:
                if not self._stopping:
                    self._stopping = True
                    self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join()

    async def _work(self) -> None:
        """Until `_end`, then until the tasks have ended that return results: they have them by now."""
        await self._stopped.wait()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:
            await asyncio.wait(others)
        self._producer.unread.tell()

    def _run(self) -> None:
        """Run the loop. It goes on after a callback that calls `sys.exit`: whoever waits for the thread would hang."""
        work = self._loop.create_task(self._work())
        try:
            while not work.done():
                try:
                    self._loop.run_until_complete(work)
                except (SystemExit, KeyboardInterrupt):
                    _log.exception("a callback of a result raised this on the producer's thread; the producer goes on")
        finally:
            self._loop.close()
