"""Tasks in the background. Their exceptions are logged: somebody may wait for ever for a task that has failed."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

log = logging.getLogger(__name__)


def begin(work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
    """Run it as a task; an exception is logged with its traceback when it ends."""
    task = asyncio.get_running_loop().create_task(work)
    task.add_done_callback(_tell)
    return task


def _tell(task: "asyncio.Task[Any]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("background work failed: %s", error, exc_info=error)
