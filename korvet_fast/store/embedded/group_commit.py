"""Group commit: one flush of a log makes all appends durable that wait for a flush.

A log has at most one flush under way, in a native thread. Requests that come meanwhile are handed to the thread at
once. The thread answers all of them with one flush as soon as it is free, so the disk never waits for the event loop.
A failed flush fails its log for good: the kernel may have dropped the dirty pages, so a later flush that succeeds would
prove nothing.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from typing import NamedTuple

from korvet_fast._native import Flusher
from korvet_fast.errors import StoreError, TooFewThreads
from korvet_fast.store.embedded.log import Log
from korvet_fast.store.embedded.segment import Segment
from korvet_fast.store.shared_future import SharedFuture
from korvet_fast.store.types import Spent

_AT_ONCE = 64  # flushes whose waiters are told in one turn of the event loop

_logger = logging.getLogger(__name__)


class Flush(NamedTuple):
    """A flush that a thread has: the log, the offset below which it makes the log durable, and the waiters' future."""

    log: Log
    end: int
    full: list[Segment]  # their indexes are written after the flush
    future: SharedFuture[None]


class GroupCommit:
    """Flushes logs on request."""

    def __init__(self, threads: int, pool: Executor) -> None:
        """`threads`: the number of logs that are flushed at the same time. `pool`: writes the indexes.

        Raises `TooFewThreads`, and other `OSError`s.
        """
        try:
            self._flusher = Flusher(threads)
        except BlockingIOError as error:
            raise TooFewThreads from error
        self._pool = pool
        self._flushes: dict[int, Flush] = {}  # by ticket
        self._ticket = 0
        self._done: deque[tuple[int, str | None]] = deque()  # ended flushes with untold waiters
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._flusher.fileno(), self._finish)
        self.closed = False

    def close(self) -> None:
        """Wait for the flushes under way, and begin no other: a later request gets `StoreError`."""
        self.closed = True
        self._loop.remove_reader(self._flusher.fileno())
        self._flusher.close()
        self._finish()

    def read_spent(self) -> Spent:
        """The flushes of the disk so far: what gathered during one is the next one."""
        return Spent(*self._flusher.spent())

    def ask(self, log: Log) -> "asyncio.Future[None]":
        """Request a flush. The future, shared by all requests for it: None once the log is durable, or `StoreError`."""
        future = log.waiting
        if future is None:
            future = log.waiting = SharedFuture(loop=self._loop)
            if log.flushing is None:
                self._hand_over(log)  # the disk works while the loop reads the other requests that have arrived
            else:
                # One turn later: the requests that arrive in this turn of the loop share the flush.
                self._loop.call_soon(self._hand_over, log)
        return future

    @asynccontextmanager
    async def pause(self, log: Log) -> AsyncIterator[None]:
        """Keep the log free of flushes inside the context. A log has at most one pause at a time."""
        log.paused = True
        try:
            await self.wait_until_idle(log)
            yield
        finally:
            log.paused = False
            self._hand_over(log)

    async def wait_until_idle(self, log: Log) -> None:
        """Wait until no flush of this log is under way, and no index is being written."""
        while log.flushing is not None or log.indexing is not None:
            await asyncio.wait([future for future in (log.flushing, log.indexing) if future is not None])

    async def wait_for_flushes(self, log: Log) -> None:
        """Wait for the flushes that the threads have now; later flushes are not waited for."""
        if log.flushing is not None:  # the last flush of the log: flushes of a log end in their order
            await asyncio.wait([log.flushing])
        if log.indexing is not None:
            await asyncio.wait([log.indexing])

    def _hand_over(self, log: Log) -> None:
        """Hand the waiting requests of a log to the threads, as one flush."""
        future = log.waiting
        if future is None or log.paused:
            return
        log.waiting = None
        if log.failed or self.closed:
            closed = StoreError("the store was closed before it was flushed")
            future.fail(StoreError(log.failed, logged=True) if log.failed else closed)
            return
        full = list(log.unflushed)
        log.unflushed.clear()  # the list stays: one made anew with each flush would lie among what requests let go of
        files = [segment.path for segment in (*full, log.segments[-1])]
        directories = [log.directory, log.directory.parent] if log.fresh else []
        log.dirty = log.fresh = False
        self._ticket += 1
        self._flusher.flush(id(log), self._ticket, files, directories)
        self._flushes[self._ticket] = Flush(log, log.end, full, future)
        log.flushing = future

    def _finish(self) -> None:
        """Tell the waiters of ended flushes, on the event loop: a few flushes in each turn, to leave time to others."""
        self._done.extend(self._flusher.take())
        for _ in range(len(self._done) if self.closed else _AT_ONCE):
            if not self._done:
                return
            ticket, failure = self._done.popleft()
            log, end, full, future = self._flushes.pop(ticket)
            if log.flushing is future:
                log.flushing = None
            if failure is not None:
                log.fail(f"the flush failed: {failure}")
            if log.failed:
                future.fail(StoreError(log.failed, logged=True))
                continue
            log.durable = max(log.durable, end)
            if full and not self.closed:
                self._index(log, full)
            future.set_result(None)
        if self._done and not self.closed:
            self._loop.call_soon(self._finish)

    def _index(self, log: Log, full: Sequence[Segment]) -> None:
        """Write the indexes of flushed segments, in a thread of the pool; for one log, one call after the other."""
        before = log.indexing

        async def write() -> None:
            try:
                if before is not None:
                    await asyncio.wait([before])
                for segment in await self._loop.run_in_executor(self._pool, _write_indexes, full):
                    segment.index = None  # the index file has it now
            finally:
                if log.indexing is mine:
                    log.indexing = None

        mine = log.indexing = self._loop.create_task(write())


def _write_indexes(segments: Sequence[Segment]) -> list[Segment]:
    return [segment for segment in segments if write_index(segment)]


def write_index(segment: Segment) -> bool:
    """Write the index file of a flushed segment. False if that fails: a later start builds it from the segment."""
    if segment.index is None:
        return False
    try:
        segment.index.write(segment.index_path, segment.summary)
    except OSError as error:
        _logger.warning("%s: index not written, the segment will be read again: %s", segment.path, error.strerror)
        return False
    return True
