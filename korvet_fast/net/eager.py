"""Starting a coroutine without a task, and going on with it inside one only if it has to wait.

Most requests never wait, and a task costs more than they do.
"""

import asyncio
from collections.abc import Coroutine, Generator
from types import coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Waits(Generic[T]):
    """A coroutine that was started and waits for something; `await finish(waits)` in a task gives its result."""

    __slots__ = ("started", "waits_for")

    def __init__(self, started: Coroutine[Any, Any, T], waits_for: object) -> None:
        self.started = started
        self.waits_for = waits_for


def start(work: Coroutine[Any, Any, T]) -> T | Waits[T]:
    """Run up to the first wait: the result, or what is left to do. Raises what `work` raises."""
    try:
        waits_for = work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    if isinstance(waits_for, asyncio.Future):
        # `await` marks the future, and the task that gets it takes the mark off. Here the task comes a moment later,
        # and until then others must be able to await the same future.
        waits_for._asyncio_future_blocking = False
    return Waits(work, waits_for)


@coroutine
def finish(waits: Waits[T]) -> Generator[Any, Any, T]:
    """Inside a task: the rest of the work. Raises what it raises."""
    work, waits_for = waits.started, waits.waits_for
    if isinstance(waits_for, asyncio.Future):
        waits_for._asyncio_future_blocking = True
    try:
        while True:
            try:
                sent = yield waits_for
            except BaseException as error:  # noqa: BLE001 - whatever it is, a cancellation too, it is meant for `work`
                waits_for = work.throw(error)
            else:
                waits_for = work.send(sent)
    except StopIteration as end:
        result: T = end.value
        return result
