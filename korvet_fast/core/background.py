"""Work in the background of a broker: every task is kept until it ends, and its exception is logged."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from korvet_fast.rate_limited_log import RateLimitedLog


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

    def _finish(self, task: "asyncio.Task[None]") -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._log.error("background", f"background work failed: {error}", error)

    async def wait(self) -> None:
        """Wait until no task runs."""
        while self._running:
            await asyncio.wait(self._running)
