"""What every partition shares: the store, the clock, the leader epoch, and a place for work in the background."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from korvet_fast.core.clock import Clock
from korvet_fast.store.interface import Store

log = logging.getLogger(__name__)


class Host:
    """`epoch` is the leader epoch of all partitions; `draining` tells long polls to answer at once."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store = store
        self.clock = clock
        self.epoch = 0
        self.draining = False
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run in the background; an exception is logged with its traceback when the work ends."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finish)
        return task

    def _finish(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("background work failed: %s", error, exc_info=error)

    async def settle(self) -> None:
        """Wait until nothing runs in the background."""
        while self._tasks:
            await asyncio.wait(self._tasks)
