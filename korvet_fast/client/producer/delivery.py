"""What `send` returns: a message that can be awaited, at once, late, many times, or never."""

import asyncio
from collections.abc import Callable, Generator
from typing import Any

from korvet_fast.client.producer.message import DeliveryFailed, Headers, Outcome, QueuedRecords, RecordMetadata


class Delivery(QueuedRecords):
    """A message on its way. `await delivery` gives its `RecordMetadata`, or raises `DeliveryFailed`.

    `outcome`: None until it has ended. If the only task that awaits it is cancelled, the message is withdrawn if it was
    not sent yet; otherwise only the task goes.
    """

    __slots__ = ("_withdraw", "confirmed", "waiters")

    def __init__(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        headers: Headers,
        partition: int,
        timestamp: int,
        withdraw: Callable[[QueuedRecords], bool],
    ) -> None:
        super().__init__(topic, (value,), None if key is None else (key,), headers, partition, timestamp)
        self.confirmed = True
        self.waiters: list[asyncio.Future[None]] | None = None
        self._withdraw = withdraw

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        while self.outcome is None:
            yield from self.wait_for_change().__await__()
        return self.result()

    def done(self) -> bool:
        """Whether the message has ended."""
        return self.outcome is not None

    def result(self) -> RecordMetadata:
        """Where the message is. Raises `DeliveryFailed` if it is not delivered; only when `done`."""
        if self.outcome is None:
            raise asyncio.InvalidStateError("the message has not ended; await it")
        error = self.exception()
        if error is not None:
            raise error
        return RecordMetadata(self.topic, self.partition, self.offset, self.timestamp, self.confirmed)

    def exception(self) -> DeliveryFailed | None:
        """Why the message was not delivered, as an error of its own; None if it was. Only when `done`."""
        return failure_of(self)

    def cancel(self) -> bool:
        """Take the message back. False if it was sent already: then await it, its outcome says what became of it."""
        return self._withdraw(self)

    def wake(self) -> None:
        """The message has ended, or got the memory it waited for: whoever waits goes on."""
        if self.waiters is not None:
            for future in self.waiters:
                if not future.done():
                    future.set_result(None)
            self.waiters = None

    async def wait_for_change(self) -> None:
        """Wait until the message has ended, or has got the memory it waited for."""
        future = asyncio.get_running_loop().create_future()
        self.waiters = self.waiters or []
        self.waiters.append(future)
        try:
            await future
        except asyncio.CancelledError:
            if self.waiters is not None:
                self.waiters.remove(future)
                if not self.waiters:
                    self._withdraw(self)
            raise


def failure_of(records: QueuedRecords) -> DeliveryFailed | None:
    """Why records were not delivered: an error of their own, since a batch's is shared; None if they were."""
    if records.outcome is None or records.outcome is Outcome.DELIVERED:
        return None
    shared = records.error
    assert shared is not None, "whatever fails has a reason"
    own = type(shared)(str(shared), records.outcome, shared.cause)
    own.__cause__ = shared.cause
    return own
