"""A future for one coroutine, without the turn of the loop that asyncio's takes."""

import asyncio
from collections.abc import Callable, Generator
from contextvars import Context
from functools import partial
from typing import Any


class Signal:
    """One coroutine waits for it and goes on at once when it is set, where a future takes one more turn of the loop.

    asyncio takes it for a future. It is set by callbacks of the loop: no task may be running then.
    """

    __slots__ = ("_asyncio_future_blocking", "_callback", "_cancelled", "_done")

    def __init__(self) -> None:
        self._asyncio_future_blocking = False
        self._callback: Callable[[Signal], object] | None = None
        self._done = self._cancelled = False

    def set(self) -> None:
        """Carry the coroutine on; the second time, and after a cancellation, it does nothing."""
        if not self._done:
            self._done = True
            callback, self._callback = self._callback, None  # a circle: the callback has this signal
            if callback is not None:
                callback(self)

    def note_end(self, _: object) -> None:
        """As `set`: the callback of a future."""
        self.set()

    def __await__(self) -> "Generator[Signal, None, Any]":
        """Gives nothing; a subclass may give the result of what was waited for."""
        if not self._done:
            self._asyncio_future_blocking = True
            yield self

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """Asked by tasks."""
        return asyncio.get_running_loop()

    def add_done_callback(self, callback: "Callable[[Signal], object]", *, context: Context | None = None) -> None:
        """Called once, by the task or the `eager.run_inline` that carries the waiting coroutine on."""
        # No function of Python: its frame would keep the task alive, as part of the traceback of a cancellation.
        run: Callable[..., object] | None = None if context is None else context.run
        self._callback = callback if run is None else partial(run, callback)

    def cancel(self, msg: object = None) -> bool:
        """The task that waits is cancelled."""
        if self._done:
            return False
        self._done = self._cancelled = True
        callback, self._callback = self._callback, None
        if callback is not None:
            asyncio.get_running_loop().call_soon(callback, self)
        return True

    def result(self) -> None:
        """Asked by tasks. Raises `asyncio.CancelledError`."""
        if self._cancelled:
            raise asyncio.CancelledError
