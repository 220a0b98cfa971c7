"""Running a coroutine without a task: the future it waits for carries it on.

Most requests never wait, and a task costs more than many a request does. The price: such a coroutine waits for futures
only (asyncio's locks, events and executors do nothing else), is never cancelled, and has no current task, which
`asyncio.timeout` asks for.
"""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


def run(
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
            asyncio.get_running_loop().call_soon(run, work, end)
            return
        # `await` marks a future for a task to take the mark off, so that nothing but a future is waited for.
        waits_for._asyncio_future_blocking = False
        waits_for.add_done_callback(partial(run, work, end))
