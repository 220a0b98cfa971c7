"""The result of `send`: a message that can be awaited, at once, late, many times, or never."""

import asyncio
from collections.abc import Generator
from typing import Any

from korvet_fast.client.producer.message import DeliveryFailed, Outcome, RecordMetadata, failure_of
from korvet_fast.client.producer.message_run import MessageRun

_DELIVERED = Outcome.DELIVERED  # looked up once: the class of an enumeration is slow to ask


class Delivery:
    """A message on its way. `await delivery` gives its `RecordMetadata`, or raises `DeliveryFailed`.

    If the only task that awaits it is cancelled, the message is withdrawn if it was not sent yet; otherwise only the
    task goes. It is a place in a run of messages: these end together, and nothing is made for each. Until the message
    has ended, `await` and `cancel` raise `RuntimeError` in another event loop than the producer's.
    """

    __slots__ = ("_index", "_run")

    def __init__(self, run: MessageRun, index: int) -> None:
        self._run = run
        self._index = index

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        while self.outcome is None:
            yield from self._wait().__await__()
        return self.result()

    @property
    def outcome(self) -> Outcome | None:
        """The outcome of the message; None: it has none yet."""
        while self._run.parts is not None:
            self._run, self._index = self._run.parts.find(self._run.position(self._index))
        return self._run.outcome

    def done(self) -> bool:
        """Whether the message has ended."""
        return self.outcome is not None

    def result(self) -> RecordMetadata:
        """The message's partition and offset, only when `done`. Raises `DeliveryFailed` if it was not delivered."""
        run = self._run
        if run.outcome is _DELIVERED:  # most messages
            return run.metadata(run.position(self._index) if run.gone else self._index)
        if self.outcome is None:
            raise asyncio.InvalidStateError("the message has not ended; await it")
        if self._run is not run:
            return self.result()
        error = self.exception()
        assert error is not None, "whatever fails has a reason"
        raise error

    def exception(self) -> DeliveryFailed | None:
        """Why the message was not delivered, as an error of its own; None if it was. Only when `done`."""
        if self.outcome is None:
            return None
        if self._run.unread is not None:
            self._run.unread.read(self._index)
        return failure_of(self._run)

    @property
    def partition(self) -> int:
        """The partition of a message that has ended; -1 if none was chosen."""
        return self._run.partition

    def cancel(self) -> bool:
        """Take the message back. False if it was sent already: then await it, its outcome says what became of it."""
        if self.outcome is not None:
            return False
        taken = self._run.owner.withdraw(self._run, self._index)
        if taken is None:
            return False
        self._run, self._index = taken
        return True

    async def _wait(self) -> None:
        """Wait until the message has ended, or went on in another run."""
        self._run.owner.enter()
        future = asyncio.get_running_loop().create_future()
        self._run.waiters.setdefault(self._index, []).append(future)
        try:
            await future
        except asyncio.CancelledError:
            if self.outcome is None:
                waiters = self._run.waiters.get(self._index, [])
                if future in waiters:
                    waiters.remove(future)
                if not waiters:
                    self._run.waiters.pop(self._index, None)
                    self.cancel()
            raise


def wake(run: MessageRun) -> None:
    """The run has ended: whoever waits for one of its messages goes on."""
    if not run.waiters:  # of most runs
        return
    for futures in run.waiters.values():
        for future in futures:
            if not future.done():
                future.set_result(None)
    run.waiters = {}
