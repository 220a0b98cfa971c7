"""The order of a connection's commands: each begins when those before it have ended.

So lines that somebody pipes in mean what they would mean one by one: a CONSUME behind a PRODUCE finds its record. Runs
of PRODUCE lines go side by side, as long as nothing else stands between them: their appends begin in order anyway.
"""

import asyncio
from types import TracebackType


class CommandOrder:
    """`async with order.alone():` for a command, `async with order.beside():` for a run of PRODUCE lines."""

    __slots__ = ("_idle", "_last", "_running")

    def __init__(self) -> None:
        self._last: asyncio.Future[None] | None = None  # ends when those that came so far let the next one begin
        self._idle: asyncio.Future[None] | None = None  # somebody waits for the runs that are at work
        self._running = 0

    def alone(self) -> "_Turn":
        """Nothing else of the connection is at work meanwhile."""
        return _Turn(self, alone=True)

    def beside(self) -> "_Turn":
        """Others of this kind may be at work meanwhile."""
        return _Turn(self, alone=False)

    async def begin(self, turn: "_Turn", alone: bool) -> None:
        """Wait for what came before."""
        before = self._last
        if alone or before is not None:
            turn.mine = self._last = asyncio.get_running_loop().create_future()
        if before is not None:
            await before
        if alone:
            if self._running:
                self._idle = asyncio.get_running_loop().create_future()
                await self._idle
            return
        self._running += 1
        self._pass_on(turn)

    def end(self, turn: "_Turn", alone: bool) -> None:
        """The command has ended."""
        if alone:
            self._pass_on(turn)
            return
        self._running -= 1
        if not self._running and self._idle is not None:
            self._idle.set_result(None)
            self._idle = None

    def _pass_on(self, turn: "_Turn") -> None:
        """Whoever came next may begin."""
        mine = turn.mine
        if mine is not None:
            mine.set_result(None)
            if self._last is mine:
                self._last = None


class _Turn:
    """One command's turn. `mine`: what the next one waits for."""

    __slots__ = ("_alone", "_order", "mine")

    def __init__(self, order: CommandOrder, *, alone: bool) -> None:
        self._order = order
        self._alone = alone
        self.mine: asyncio.Future[None] | None = None

    async def __aenter__(self) -> None:
        await self._order.begin(self, self._alone)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._order.end(self, self._alone)
