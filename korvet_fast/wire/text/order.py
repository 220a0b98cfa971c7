"""The order of a connection's commands: each begins when those before it have ended.

So lines that somebody pipes in mean what they would mean one by one: a CONSUME behind a PRODUCE finds its record. Runs
of PRODUCE lines go side by side, as long as nothing else stands between them: their appends begin in order anyway.
"""

import asyncio
from collections import deque
from types import TracebackType


class CommandOrder:
    """`async with order.alone():` for a command, `async with order.beside():` for a run of PRODUCE lines."""

    __slots__ = ("_lonely", "_running", "_waiting", "_waking")

    def __init__(self) -> None:
        self._lonely = False  # a command is at work
        self._running = 0  # runs are
        self._waiting: deque[tuple[bool, asyncio.Future[None]]] = deque()
        self._waking = 0  # of those at work, how many have waited, and go on in the loop's next turn only

    def alone(self) -> "_Turn":
        """Nothing else of the connection is at work meanwhile."""
        return _Turn(self, alone=True)

    def beside(self) -> "_Turn":
        """Others of this kind may be at work meanwhile."""
        return _Turn(self, alone=False)

    def begin(self, alone: bool) -> asyncio.Future[None] | None:
        """Take a turn; the future, if there is one, ends when what came before lets it begin."""
        if not (self._waiting or self._waking) and self._is_free(alone):
            self._take(alone)
            return None
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((alone, turn))
        return turn

    def end(self, alone: bool) -> None:
        """The command has ended."""
        if alone:
            self._lonely = False
        else:
            self._running -= 1
        self._wake()

    def _wake(self) -> None:
        """Let those begin whose turn has come."""
        while self._waiting and self._is_free(self._waiting[0][0]):
            alone, turn = self._waiting.popleft()
            self._take(alone)
            self._waking += 1
            turn.set_result(None)
            asyncio.get_running_loop().call_soon(self._woken)  # right behind the one that waited

    def _woken(self) -> None:
        self._waking -= 1
        self._wake()

    def _is_free(self, alone: bool) -> bool:
        return not (self._lonely or (alone and self._running))

    def _take(self, alone: bool) -> None:
        if alone:
            self._lonely = True
        else:
            self._running += 1


class _Turn:
    """One command's turn."""

    __slots__ = ("_alone", "_order")

    def __init__(self, order: CommandOrder, *, alone: bool) -> None:
        self._order = order
        self._alone = alone

    async def __aenter__(self) -> None:
        turn = self._order.begin(self._alone)
        if turn is not None:
            await turn

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._order.end(self._alone)
