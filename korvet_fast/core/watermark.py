"""How far consumers may read: up to what is durable. Rises as the store reports, and tells those who wait for bytes."""

import asyncio
from collections.abc import Callable
from functools import partial

from korvet_fast.core.watch import Watch
from korvet_fast.errors import StoreError

_RECENT = 64  # appends whose sizes are remembered at least, for `count_readable`
_MOST = 2 * _RECENT


class Round:
    """Appends that become durable together: all below `end`, `written` bytes in all since the partition opened."""

    __slots__ = ("end", "future", "written")

    def __init__(self, future: "asyncio.Future[None]", end: int, written: int) -> None:
        self.future = future
        self.end = end
        self.written = written


class Watermark:
    """`offset`: all below it is durable. `fail` is called, with the reason, when an append turns out not to be.

    `stored`: the largest end of an append of which the store has said that it has it. Whatever clients may have been
    told lies below.
    """

    __slots__ = ("_fail", "_recent", "_rounds", "_visible", "_written", "offset", "stored", "watches")

    def __init__(self, fail: Callable[[BaseException], object]) -> None:
        self.offset = 0
        self.stored = 0
        self.watches: list[Watch] = []
        self._fail = fail
        self._written = self._visible = 0  # bytes appended, and bytes below `offset`, since opening
        self._recent: list[tuple[int, int]] = []  # (base offset, bytes written before it), rising
        self._rounds: list[Round] = []

    def add(self, base: int, end: int, size: int, durable: "asyncio.Future[None] | None") -> None:
        """`size` bytes were appended as `base` <= offset < `end`, to be read when `durable` ends.

        None: as soon as what was appended before may be read.
        """
        recent, before = self._recent, self._written
        recent.append((base, before))
        if len(recent) > _MOST:
            del recent[:_RECENT]
        written = self._written = before + size
        if durable is None and not self._rounds and not self.watches:
            self._visible = written
            if end > self.offset:
                self.offset = end
        else:
            self._await(end, written, durable)

    def _await(self, end: int, written: int, durable: "asyncio.Future[None] | None") -> None:
        rounds = self._rounds
        done = durable is None or _ended_well(durable)
        # The store shares one future between many appends: one callback for all of them.
        if rounds and (done or rounds[-1].future is durable):
            rounds[-1].end, rounds[-1].written = end, written
        elif durable is None or done:
            self._rise(end, written)
        else:
            rounds.append(Round(durable, end, written))
            durable.add_done_callback(self.settle)

    def expect(self, end: int, stored: "asyncio.Future[None]") -> None:
        """An append that ends at `end` is on its way: note when the store has it."""
        stored.add_done_callback(partial(self._note, end))

    def _note(self, end: int, stored: "asyncio.Future[None]") -> None:
        if not stored.cancelled() and stored.exception() is None:
            self.stored = max(self.stored, end)

    def settle(self, _: "asyncio.Future[None] | None" = None) -> None:
        """Rise by what has become durable since, or fail for what has not."""
        while self._rounds and self._rounds[0].future.done():
            done = self._rounds[0]
            if done.future.cancelled():
                self._fail(StoreError("an append was cancelled while its outcome was open"))
                return
            if (error := done.future.exception()) is not None:
                self._fail(error)
                return
            del self._rounds[0]
            self._rise(done.end, done.written)

    def _rise(self, end: int, written: int) -> None:
        more, self._visible = written - self._visible, written
        if end > self.offset:
            self.offset = end
        for watch in self.watches:
            if more:
                watch.tell(more)
            else:  # what another program wrote, or what was there before: nobody counted it
                watch.wake()

    def reset(self, offset: int) -> None:
        """Start anew at a log's durable end."""
        self.offset = offset
        self.stored = max(self.stored, offset)
        self._visible = self._written
        self._recent.clear()

    def lift(self, offset: int) -> None:
        """Another program's records are durable, and this is where they end."""
        if offset > self.offset:
            self.offset = offset
            self.stored = max(self.stored, offset)
            self._recent.clear()
            self.wake()

    def wake(self) -> None:
        """Have everybody who waits here look for themselves."""
        for watch in self.watches:
            watch.wake()

    def find_round(self, offset: int) -> "asyncio.Future[None] | None":
        """What ends when `offset` is durable; None if it is."""
        if offset < self.offset:
            return None
        return next(round_.future for round_ in self._rounds if round_.end > offset)

    async def wait(self) -> bool:
        """Until everything appended so far is durable, or failed; whether there was anything to wait for."""
        rounds = [round_.future for round_ in self._rounds]
        if rounds:
            await asyncio.wait(rounds)
        return bool(rounds)

    def forget_rounds(self) -> None:
        """What is pending failed, or its outcome is no longer of interest."""
        self._rounds.clear()

    def count_readable(self, offset: int) -> int | None:
        """Bytes from `offset` to the watermark; None if that is too long ago to know."""
        if offset >= self.offset:
            return 0
        if not self._recent or offset < self._recent[0][0]:
            return None
        return self._visible - next(before for base, before in reversed(self._recent) if base <= offset)


def _ended_well(durable: "asyncio.Future[None]") -> bool:
    return durable.done() and not durable.cancelled() and durable.exception() is None
