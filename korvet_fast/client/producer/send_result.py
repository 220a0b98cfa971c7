"""The result of the blocking producer's `send`."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from korvet_fast.client.producer.message import DeliveryFailed, RecordMetadata
from korvet_fast.client.producer.unread_results import UnreadResults


class SendResult(Future[RecordMetadata]):
    """A future of a task on the producer's thread. `unread`: counts the failure until somebody reads it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.unread: UnreadResults | None = None
        self._loop = loop
        self._task: asyncio.Task[RecordMetadata] | None = None

    def result(self, timeout: float | None = None) -> RecordMetadata:
        try:
            return super().result(timeout)
        except DeliveryFailed:
            self._note_read()
            raise

    def exception(self, timeout: float | None = None) -> BaseException | None:
        error = super().exception(timeout)
        self._note_read()
        return error

    def cancel(self) -> bool:
        cancelled = super().cancel()
        if cancelled:
            with suppress(RuntimeError):  # the loop is closed: the task has ended
                self._loop.call_soon_threadsafe(self._cancel_soon)
        return cancelled

    def run(self, work: Coroutine[Any, Any, RecordMetadata]) -> None:
        """Take the result of a coroutine. On the loop's thread."""
        self._task = self._loop.create_task(work)
        self._task.add_done_callback(self._complete)

    def _cancel_soon(self) -> None:
        if self._task is not None:
            self._loop.call_soon(self._task.cancel)  # once the task has begun: it gives back what `send` took for it

    def _complete(self, task: "asyncio.Task[RecordMetadata]") -> None:
        self._task = None
        error = None if task.cancelled() else task.exception()
        if task.cancelled():
            super().cancel()
        if not self.set_running_or_notify_cancel():  # it was cancelled
            return
        if error is not None:
            self.set_exception(error)
        else:
            self.set_result(task.result())

    def _note_read(self) -> None:
        if self.unread is not None:
            self.unread.read()
