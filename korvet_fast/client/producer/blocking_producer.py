"""The producer for scripts and notebooks: an `AsyncProducer` on a thread of its own."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self, TypeVar

from korvet_fast.client.producer.async_producer import AsyncProducer
from korvet_fast.client.producer.message import Headers, Message, ProducerClosed, RecordMetadata
from korvet_fast.client.producer.message_check import check_message
from korvet_fast.client.producer.metrics import ProducerMetrics
from korvet_fast.client.producer.rows import ColumnMetadata
from korvet_fast.endpoint import Address

Result = TypeVar("Result")
_MOST_HANDED = 1000  # messages on their way to the thread; then `send` waits for it


class Producer:
    """`with Producer("127.0.0.1:9092") as p: p.send("orders", b"value").result()`

    The settings are those of `AsyncProducer`. May be used from several threads; order is that of each thread's calls.
    """

    def __init__(self, bootstrap: str | Sequence[Address], **settings: Any) -> None:
        self._producer = AsyncProducer(bootstrap, **settings)  # raises for wrong settings before there is a loop
        self._loop = asyncio.new_event_loop()
        self._handed = threading.Semaphore(_MOST_HANDED)
        self._turns: dict[str, asyncio.Lock] = {}  # locks of topics
        self._closing = threading.Lock()
        self._closed = False
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
    ) -> "Future[RecordMetadata]":
        """Send a message. `result()` of what is returned waits for its delivery, and raises `DeliveryFailed`.

        What is no message raises `TypeError` or `ValueError`. Without memory for `max.block.ms` the result is
        `BufferFull`. `cancel()` withdraws what was not sent yet.
        """
        message = check_message(Message(topic, value, key, headers, partition, timestamp))
        self._handed.acquire()
        try:
            return self._submit(self._send(message))
        except ProducerClosed:
            self._handed.release()
            raise

    def send_many(
        self, topic: str, keys: Any, values: Any, *, partition: int | None = None, timestamp: int | None = None
    ) -> ColumnMetadata:
        """As `AsyncProducer.send_many`; waits until all rows are delivered."""
        sent = self._producer.send_many(topic, keys, values, partition=partition, timestamp=timestamp)
        return self._submit(sent).result()

    def flush(self) -> None:
        """Wait until everything sent so far has ended."""
        self._submit(self._producer.flush()).result()

    def close(self, timeout: float | None = None) -> None:
        """As `AsyncProducer.close`; ends the thread too. May be called again."""
        self._end(lambda: self._producer.close(timeout))

    def abort(self) -> None:
        """As `AsyncProducer.abort`; ends the thread too."""
        self._end(self._producer.abort)

    def metrics(self) -> ProducerMetrics:
        """As `AsyncProducer.metrics`."""

        async def read_metrics() -> ProducerMetrics:
            return self._producer.metrics()

        return self._submit(read_metrics()).result()

    async def _send(self, message: Message) -> RecordMetadata:
        try:
            async with self._turns.setdefault(message.topic, asyncio.Lock()):  # in the order of the calls
                delivery = await self._producer.send_when_room(message)
        finally:
            self._handed.release()
        return await delivery

    def _submit(self, work: Coroutine[Any, Any, Result]) -> "Future[Result]":
        with self._closing:
            if not self._closed:
                return asyncio.run_coroutine_threadsafe(work, self._loop)
        work.close()
        raise ProducerClosed("the producer is closed; it takes no more messages")

    def _end(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Close the producer, then end the thread; whoever comes later waits for the same end."""
        with self._closing:
            first, self._closed = not self._closed, True
            ended = asyncio.run_coroutine_threadsafe(work(), self._loop) if first else None
        if ended is not None:
            try:
                ended.result()
            finally:
                self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        try:
            self._loop.run_forever()
            waiting = asyncio.all_tasks(self._loop)  # the tasks that return results: they have them now
            if waiting:
                self._loop.run_until_complete(asyncio.wait(waiting))
        finally:
            self._loop.close()
