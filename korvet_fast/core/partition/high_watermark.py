"""The high watermark: consumers may read durable records below it. It rises as the store reports, and wakes fetches."""

import asyncio
from array import array
from collections.abc import Callable
from functools import partial
from typing import Protocol

from korvet_fast.core.partition.renewal import renew
from korvet_fast.errors import StoreError, TooFewCopies

_RECENT = 64  # appends whose sizes are remembered at least, for `count_available_bytes`
_FIELDS = 2  # numbers remembered of an append
_FORGOTTEN = _RECENT * _FIELDS  # numbers of the oldest, when there are twice as many
_MOST = 2 * _FORGOTTEN


class WatermarkListener(Protocol):
    """A fetch that waits for records (`core/fetch/delayed_fetch.py`)."""

    def notify(self, more: int) -> None:
        """Count `more` bytes that became readable."""

    def wake(self) -> None:
        """Check the partitions again: something other than an append happened."""


class PendingFlush:
    """Appends that become durable together: all below `end`, `written` bytes in all since the partition opened."""

    __slots__ = ("end", "future", "written")

    def __init__(self, future: "asyncio.Future[None]", end: int, written: int) -> None:
        self.future = future
        self.end = end
        self.written = written


class PendingStore:
    """Appends that the store confirms together: all up to `end` that earlier ones do not cover."""

    __slots__ = ("end", "future")

    def __init__(self, future: "asyncio.Future[None]", end: int) -> None:
        self.future = future
        self.end = end


class HighWatermark:
    """`offset`: all below it is durable. `fail` is called with the reason when an append turns out not to be durable.

    `stored`: the largest end of an append that the store has confirmed. Clients were told of nothing above it.
    `written`, `records`: bytes and records appended since the partition opened. `fetched`: bytes that consumers got.
    """

    __slots__ = (
        "_expected",
        "_fail",
        "_flushes",
        "_looked_at",
        "_recent",
        "_visible",
        "delayed_fetches",
        "fetched",
        "offset",
        "records",
        "stored",
        "written",
    )

    def __init__(self, fail: Callable[[BaseException], object]) -> None:
        self.offset = 0
        self.stored = 0
        # Tens of thousands of fetches may end at once, when their clients leave: a list would be searched for each.
        self.delayed_fetches: dict[WatermarkListener, None] = {}
        self._fail = fail
        self.written = self.records = self.fetched = 0
        self._visible = 0  # of `written`, those below `offset`
        self._looked_at = 0  # `written` when somebody last looked whether the partition is idle
        # Base offset and bytes written before it, of one append after the other, rising. As a list of pairs this takes
        # eight times the memory, in small pieces among those that requests let go of.
        self._recent = array("q")
        self._flushes: list[PendingFlush] = []
        self._expected: PendingStore | None = None  # the last of those that the store has not confirmed

    def add(self, base: int, end: int, size: int, durable: "asyncio.Future[None] | None") -> None:
        """`size` bytes were appended as `base` <= offset < `end`, to be read when `durable` ends.

        None: as soon as all earlier appends may be read.
        """
        recent, before = self._recent, self.written
        recent.append(base)
        recent.append(before)
        if len(recent) > _MOST:
            del recent[:_FORGOTTEN]
        written = self.written = before + size
        self.records += end - base
        flushes = self._flushes
        if durable is None and not flushes and not self.delayed_fetches:
            self._visible = written
            if end > self.offset:
                self.offset = end
        elif flushes and (last := flushes[-1]).future is durable:
            # The store shares one future between many appends: one callback for all of them.
            last.end, last.written = end, written
        else:
            self._await(end, written, durable)

    def _await(self, end: int, written: int, durable: "asyncio.Future[None] | None") -> None:
        flushes = self._flushes
        done = durable is None or _ended_well(durable)
        if flushes and done:
            flushes[-1].end, flushes[-1].written = end, written
        elif durable is None or done:
            self._rise(end, written)
        else:
            flushes.append(PendingFlush(durable, end, written))
            durable.add_done_callback(self.settle)

    def expect(self, end: int, stored: "asyncio.Future[None]") -> None:
        """An append that ends at `end` is on its way: note when the store has it."""
        expected = self._expected
        if expected is not None and expected.future is stored:
            expected.end = end
        else:
            expected = self._expected = PendingStore(stored, end)
            stored.add_done_callback(partial(self._note, expected))

    def _note(self, expected: PendingStore, stored: "asyncio.Future[None]") -> None:
        if self._expected is expected:
            self._expected = None
        if not stored.cancelled() and stored.exception() is None:
            self.stored = max(self.stored, expected.end)

    def settle(self, _: "asyncio.Future[None] | None" = None) -> None:
        """Advance over all appends that have become durable; report the failure of one that has not."""
        while self._flushes and self._flushes[0].future.done():
            done = self._flushes[0]
            if done.future.cancelled():
                self._fail(StoreError("an append was cancelled while its outcome was open"))
                return
            if (error := done.future.exception()) is not None:
                self._fail(error)
                return
            del self._flushes[0]
            self._rise(done.end, done.written)

    def _rise(self, end: int, written: int) -> None:
        more, self._visible = written - self._visible, written
        if end > self.offset:
            self.offset = end
        for fetch in self.delayed_fetches:
            if more:
                fetch.notify(more)
            else:  # records of another program, or from before: nobody counted them
                fetch.wake()

    def reset(self, offset: int) -> None:
        """Start anew at a log's durable end."""
        self.offset = offset
        self.stored = max(self.stored, offset)
        self._visible = self.written
        self._forget_recent()

    def advance(self, offset: int) -> None:
        """Another program's records are durable, and this is where they end."""
        if offset > self.offset:
            self.offset = offset
            self.stored = max(self.stored, offset)
            self._forget_recent()
            self.wake()

    def wake(self) -> None:
        """Wake all delayed fetches, so that they check their partitions."""
        for fetch in self.delayed_fetches:
            fetch.wake()

    def find_flush(self, offset: int) -> "asyncio.Future[None] | None":
        """The future that ends when `offset` is durable; None if it is durable."""
        if offset < self.offset:
            return None
        return next(flush.future for flush in self._flushes if flush.end > offset)

    async def wait(self) -> bool:
        """Wait until every append so far is durable or failed. Returns whether there was one to wait for."""
        flushes = [flush.future for flush in self._flushes]
        if flushes:
            await asyncio.wait(flushes)
        return bool(flushes)

    def forget_uncopied(self) -> None:
        """Forget flushes that found too few copies: their records are stored, and become durable with later records."""
        flushes = self._flushes
        while flushes and flushes[0].future.done() and isinstance(_failure(flushes[0].future), TooFewCopies):
            del flushes[0]
        self.settle()

    def forget_flushes(self) -> None:
        """Forget the pending flushes: they failed, or nobody asks for their outcome any more."""
        self._flushes.clear()

    def is_idle(self) -> bool:
        """Whether nothing was appended since the last call, and nobody waits."""
        before, self._looked_at = self._looked_at, self.written
        return before == self.written and not (self._flushes or self.delayed_fetches)

    def settle_idle(self, end: int) -> None:
        """Forget the sizes of appends, and the room of emptied tables. `end`: see `idle.py`."""
        self.written = self._visible = self._looked_at = renew(self.written)
        self.records = renew(self.records)
        self.fetched = renew(self.fetched)
        self._forget_recent()
        self._flushes.clear()
        self.delayed_fetches.clear()
        self.offset = renew(self.offset, end)
        self.stored = renew(self.stored, self.offset, end)

    def count_available_bytes(self, offset: int) -> int | None:
        """Bytes from `offset` to the watermark; None if `offset` is too old to know."""
        if offset >= self.offset:
            return 0
        recent = self._recent
        if not recent or offset < recent[0]:
            return None
        at = len(recent) - _FIELDS
        while recent[at] > offset:
            at -= _FIELDS
        return self._visible - recent[at + 1]

    def _forget_recent(self) -> None:
        del self._recent[:]


def _ended_well(durable: "asyncio.Future[None]") -> bool:
    return durable.done() and not durable.cancelled() and durable.exception() is None


def _failure(ended: "asyncio.Future[None]") -> BaseException | None:
    return None if ended.cancelled() else ended.exception()
