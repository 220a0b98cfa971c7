"""The order of a connection's requests: 0.7 handles one after the other.

The next one begins when the one before has ended, or, behind a produce, when that has been appended. Whatever reads
waits until all of that is durable, so it sees it.
"""

import asyncio
from collections.abc import Iterable
from typing import Any


class RequestOrder:
    """`turn = await order.begin()`, the request's work, `order.end(turn)`, which may be called more than once."""

    __slots__ = ("_last", "_waiting")

    def __init__(self) -> None:
        self._last: asyncio.Future[None] | None = None  # ends when the next request may begin
        self._waiting: set[asyncio.Future[Any]] = set()  # futures of appends that cannot be read yet

    async def begin(self) -> "asyncio.Future[None]":
        """Wait for the requests before this one."""
        before = self._last
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._last = turn
        if before is not None:
            await before
        return turn

    def end(self, turn: "asyncio.Future[None]") -> None:
        """Let the next request begin."""
        if not turn.done():
            turn.set_result(None)
            if self._last is turn:
                self._last = None

    def note(self, appended: Iterable["asyncio.Future[Any]"]) -> None:
        """These end when what the connection has just appended is durable."""
        for one in appended:
            self._waiting.add(one)
            # One that is done may not have called yet what raises the high watermark: this callback comes after that.
            one.add_done_callback(self._waiting.discard)

    async def wait_durable(self) -> None:
        """Wait until what the connection appended is durable, or has failed."""
        while self._waiting:
            await asyncio.wait(self._waiting)
