"""Work in the background of a broker: every task is kept until it ends, and its exception is logged."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from korvet_fast.rate_limited_log import RateLimitedLog

_AGAIN = 1.0  # seconds until work begins again that failed


class BackgroundTasks:
    """The tasks that run. `log` takes their exceptions."""

    def __init__(self, log: RateLimitedLog) -> None:
        self._log = log
        self._running: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run `work` as a task; an exception is logged with its traceback when the task ends."""
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._finish)
        return task

    def keep(self, work: Callable[[], Coroutine[Any, Any, None]]) -> asyncio.Task[None]:
        """Run `work` as a task until it ends or is cancelled; after an exception, which is logged, it begins again."""
        return self.start(self._keep(work))

    async def _keep(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        while True:
            try:
                await work()
            except Exception as error:  # noqa: BLE001  (told below)
                self._tell("background work failed, and is done again", error)
                await asyncio.sleep(_AGAIN)
            else:
                return

    def _tell(self, what: str, error: BaseException) -> None:
        self._log.error(what, f"{what}: {error}", error)

    def _finish(self, task: "asyncio.Task[None]") -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._tell("background work failed", error)

    async def wait(self) -> None:
        """Wait until no task runs."""
        while self._running:
            await asyncio.wait(self._running)
