"""What one server has been asked for: who asks for much waits while much is to come.

A server carries out all that a connection has asked for before it turns to another one. Consumers that ask for a
hundred megabytes in one moment would keep everybody else waiting for as long as these take.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

SMALL = 64 << 10  # bytes of an answer that never waits
FULL = 4 << 20  # bytes to come that keep a server busy: only small answers are asked for


class AnswerWindow:
    """The large answers that a server has been asked for and has not given, and the calls that wait for their turn."""

    __slots__ = ("_bytes", "_waiting")

    def __init__(self) -> None:
        self._bytes = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def turn(self, size: int) -> AsyncIterator[None]:
        """Enter when it is the turn of a call whose answer has about so many bytes, and leave when that is there."""
        if self._waiting or self._bytes >= FULL:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append((size, turn))
            try:
                await turn
            except asyncio.CancelledError:
                if not turn.cancelled():
                    self._end(size)
                raise
        else:
            self._bytes += size
        try:
            yield
        finally:
            self._end(size)

    def _end(self, size: int) -> None:
        self._bytes -= size
        while self._waiting and self._bytes < FULL:
            following, turn = self._waiting.popleft()
            if not turn.done():  # else the call was broken off
                self._bytes += following
                turn.set_result(None)
