"""The futures of an append (a leaf): many wait for one, and none of them can cancel it for the others."""

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Any, Final, TypeAlias, TypeVar

T = TypeVar("T")
_Waiter: TypeAlias = "Callable[[Any], object]"
_NOBODY: Final[list[_Waiter]] = []


class SharedFuture(asyncio.Future[T]):
    """Ends with a result or an exception. A task that is cancelled while it waits here goes on until the future ends.

    All callbacks are called by one call of the loop, in their order: a future of asyncio makes one for each.
    """

    _waiters = _NOBODY

    def add_done_callback(self, callback: Callable[[Any], object], /, *, context: Context | None = None) -> None:
        """See `asyncio.Future.add_done_callback`."""
        if context is not None or self.done():
            super().add_done_callback(callback, context=context)
        elif self._waiters:
            self._waiters.append(callback)
        else:
            self._waiters = [callback]

    def remove_done_callback(self, callback: Callable[[Any], object], /) -> int:
        """See `asyncio.Future.remove_done_callback`."""
        kept = [waiter for waiter in self._waiters if waiter != callback]
        removed = len(self._waiters) - len(kept)
        self._waiters = kept
        return removed + super().remove_done_callback(callback)

    def set_result(self, result: T, /) -> None:
        """See `asyncio.Future.set_result`."""
        if self._waiters:
            self.get_loop().call_soon(self._tell)  # before the tasks that wait, which `super` wakes
        super().set_result(result)

    def set_exception(self, exception: type | BaseException, /) -> None:
        """See `asyncio.Future.set_exception`."""
        if self._waiters:
            self.get_loop().call_soon(self._tell)  # before the tasks that wait, which `super` wakes
        super().set_exception(exception)

    def end(self, result: T) -> None:
        """End well, and call the callbacks at once. For callbacks of the loop: no task may be running."""
        super().set_result(result)
        self._tell()

    def fail(self, error: BaseException) -> None:
        """End with an error, also where nobody waits for it."""
        self.set_exception(error)
        self.exception()

    def cancel(self, msg: object = None) -> bool:
        """Refused: the others still wait."""
        return False

    def _tell(self) -> None:
        waiters, self._waiters = self._waiters, _NOBODY
        for waiter in waiters:
            try:
                waiter(self)
            except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  as asyncio does: the others are told all the same
                context = {"message": f"exception in the callback {waiter!r}", "exception": error, "future": self}
                self.get_loop().call_exception_handler(context)
