"""A fetch that waits for records: it sleeps until an append or a deletion wakes it, and never polls."""

import asyncio
from collections.abc import Iterable
from types import TracebackType
from typing import Protocol

from korvet_fast.core.partition.high_watermark import WatermarkListener


class FetchableLog(Protocol):
    """The part of a partition's log that a delayed fetch uses."""

    @property
    def delayed_fetches(self) -> dict[WatermarkListener, None]: ...

    @property
    def entries_layout(self) -> bool: ...

    @property
    def draining(self) -> bool: ...

    def available_bytes(self, offset: int) -> int: ...

    def subscribe(self) -> None: ...


class DelayedFetch:
    """`with DelayedFetch([(log, offset), ...], min_bytes) as fetch: enough = await fetch.wait(seconds)`.

    Registered only inside the `with`. An append tells its log's delayed fetches how much became readable.
    """

    __slots__ = ("_logs", "_missing", "_waiter")

    def __init__(self, logs: "Iterable[tuple[FetchableLog, int]]", min_bytes: int) -> None:
        self._logs: list[FetchableLog] = []
        self._missing = min_bytes
        self._waiter: asyncio.Future[bool] | None = None
        for log, offset in logs:
            self._logs.append(log)
            self._missing -= log.available_bytes(offset)

    def __enter__(self) -> "DelayedFetch":
        for log in self._logs:
            log.delayed_fetches[self] = None
            if log.entries_layout:
                log.subscribe()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for log in self._logs:
            log.delayed_fetches.pop(self, None)  # a log that is named twice is there once

    async def wait(self, seconds: float) -> bool:
        """Wait until `min_bytes` are readable, or something else happened (deleted, draining).

        Returns False if neither came within `seconds`.
        """
        if self._missing <= 0 or any(log.draining for log in self._logs):
            return True
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        timer = loop.call_later(seconds, self._end, False)
        try:
            return await self._waiter
        finally:
            timer.cancel()
            self._waiter = None

    def notify(self, more: int) -> None:
        """Count bytes that became readable in one of the logs; end the wait when there are enough."""
        self._missing -= more
        if self._missing <= 0:
            self._end(True)

    def wake(self) -> None:
        """End the wait: something other than an append happened, and the fetch must check its partitions."""
        self._missing = 0
        self._end(True)

    def _end(self, enough: bool) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(enough)
