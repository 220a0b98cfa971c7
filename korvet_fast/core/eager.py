"""Running coroutines without tasks: the future that one waits for carries it on.

Most work never waits, and a task costs more than many a request does. The price: such a coroutine waits for futures
only (asyncio's locks, events and executors do nothing else), is never cancelled, and has no current task, which
`asyncio.timeout` asks for.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from korvet_fast.core.fair_queue import BackgroundPace, Pace

T = TypeVar("T")
S = TypeVar("S")

_AT_ONCE = 64  # works that `gather_bounded` and `gather_paced` run side by side


def run_inline(
    work: Coroutine[Any, Any, T],
    end: Callable[[T | None, BaseException | None], None],
    _: "asyncio.Future[Any] | None" = None,
) -> None:
    """Run `work` up to its next wait, and from there on when that is over; `end` gets its result or its exception."""
    try:
        waits_for = work.send(None)
    except StopIteration as stop:
        end(stop.value, None)
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  `end` is told, whatever it was
        end(None, error)
    else:
        if waits_for is None:  # `asyncio.sleep(0)`: only to let others go first
            asyncio.get_running_loop().call_soon(run_inline, work, end)
            return
        # `await` marks a future for a task to take the mark off, so that nothing but a future is waited for.
        waits_for._asyncio_future_blocking = False
        waits_for.add_done_callback(partial(run_inline, work, end))


async def gather(works: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Run all side by side, begun in order; their results in order. Raises the first exception when all have ended."""
    if len(works) == 1:
        return [await works[0]]
    side = _Side(len(works))
    for index, work in enumerate(works):
        run_inline(work, partial(side.end, index))
    if side.left:
        side.over = asyncio.get_running_loop().create_future()
        await side.over
    if side.error is None:
        return side.results
    error, side.error = side.error, None  # a circle: it knows the frames that it went through, and these know it
    try:
        raise error
    finally:
        del error


async def gather_paced(items: Iterable[S], work: Callable[[S], Coroutine[Any, Any, T]], pace: Pace) -> list[T]:
    """Do this with every item, some of them side by side, and let others have their turn between; results in order."""
    rest = iter(items)
    results = await gather(list(map(work, islice(rest, _AT_ONCE))))
    while some := list(islice(rest, _AT_ONCE)):
        if pace.due():
            await pace.turn()
        results += await gather(list(map(work, some)))
    return results


async def gather_bounded(items: Iterable[S], work: Callable[[S], Coroutine[Any, Any, None]]) -> None:
    """Do this with every item, some of them side by side. Raises the first exception of those begun together.

    Others have their turn between.
    """
    rest = iter(items)
    pace = BackgroundPace()
    while some := list(islice(rest, _AT_ONCE)):
        await gather(list(map(work, some)))
        if pace.due():
            await pace.turn()


class _Side:
    """The results of coroutines that run side by side."""

    __slots__ = ("error", "left", "over", "results")

    def __init__(self, many: int) -> None:
        self.left = many
        self.results: list[Any] = [None] * many
        self.error: BaseException | None = None
        self.over: asyncio.Future[None] | None = None

    def end(self, index: int, result: object, error: BaseException | None) -> None:
        self.results[index] = result
        self.error = self.error or error
        self.left -= 1
        if not self.left and self.over is not None and not self.over.done():
            self.over.set_result(None)
