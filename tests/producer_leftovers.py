"""The check after every test of the producer's asyncio side: nothing is left behind."""

import asyncio
import gc
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import psutil

PATIENCE = 10.0  # seconds


def leftovers(before: set[str]) -> list[str]:
    """Threads of producers and sockets that were not there before, and do not go while the event loop stands still.

    Clients of earlier tests may have threads of their own that connect and give up just now.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        gc.collect()
        left = sorted(resources() - before)
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.05)


def resources() -> set[str]:
    threads = {f"thread {each.name}" for each in threading.enumerate() if each.name.startswith("korvet-fast producer")}
    sockets = {f"socket {each.fd} {each.laddr} {each.raddr}" for each in psutil.Process().net_connections()}
    return threads | sockets


def pending_futures(loop: asyncio.AbstractEventLoop) -> list["asyncio.Future[Any]"]:
    """The futures of a loop that nobody has ended."""
    # A subclass by its type: other objects may pretend to have another class.
    futures = [each for each in gc.get_objects() if issubclass(type(each), asyncio.Future) and each.get_loop() is loop]
    return [each for each in futures if not each.done() and not isinstance(each, asyncio.Task)]


def run_clean(work: Callable[[], Awaitable[Any]]) -> Any:
    """Run a coroutine function.

    Afterwards there may be no task, no timer that will run, no future that waits, no socket, and no thread.
    """
    before = resources()

    async def checked() -> Any:
        result = await work()
        await asyncio.sleep(0)  # a connection that was aborted is told so in the next turn
        assert asyncio.all_tasks() == {asyncio.current_task()}
        timers = [each for each in asyncio.get_running_loop()._scheduled if not each.cancelled()]  # type: ignore[attr-defined]
        assert timers == []
        assert leftovers(before) == []
        assert pending_futures(asyncio.get_running_loop()) == []
        return result

    return asyncio.run(checked())
