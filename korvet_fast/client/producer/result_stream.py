"""`successes` and `errors` of the asyncio producer: results of what came by `input`, until they are taken."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Generic, NamedTuple, Self, TypeVar

from korvet_fast.client.producer.input import InputRun
from korvet_fast.client.producer.message import DeliveryFailed, Message, RecordMetadata


class Success(NamedTuple):
    """A message that was delivered, and where it is."""

    message: Message
    metadata: RecordMetadata


class ProducerError(NamedTuple):
    """A message that was not delivered, and why (Sarama's ProducerError). `error.outcome`: may the log have it?"""

    message: Message
    error: DeliveryFailed


Result = TypeVar("Result", Success, ProducerError)


class ResultStream(Generic[Result]):
    """`async for result in producer.errors`: ends after `close`, when all were taken. For one task at a time.

    A result that is not taken keeps its message's memory; it never holds up the pipeline. `is_awaited`: somebody waits
    for the next one.
    """

    def __init__(self, release: Callable[[InputRun], None]) -> None:
        self._release = release
        self._results: deque[tuple[InputRun, Result]] = deque()
        self.is_awaited = False
        self._ended = False
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._results)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Result:
        while not self._results:
            if self._ended:
                raise StopAsyncIteration
            self._changed.clear()
            self.is_awaited = True
            try:
                await self._changed.wait()
            finally:
                self.is_awaited = False
        records, result = self._results.popleft()
        self._release(records)
        return result

    def add(self, records: InputRun, result: Result) -> None:
        """A message has ended."""
        self._results.append((records, result))
        self._changed.set()

    def end(self) -> None:
        """No more results will come."""
        self._ended = True
        self._changed.set()
