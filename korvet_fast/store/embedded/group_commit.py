"""Group commit: one flush of a log answers everyone who waited for it.

Each log has at most one flush under way, in a native thread. Who asks meanwhile is handed over at once, and is flushed
together with all others who did, the moment that thread is free: the disk never waits for the loop. A flush that fails
fails its log for good: the kernel may have thrown the pages away, so a second flush that succeeds would prove nothing.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from typing import NamedTuple

from korvet_fast._native import Flusher
from korvet_fast.errors import StoreError
from korvet_fast.store.embedded.log import Log
from korvet_fast.store.embedded.segment import Segment
from korvet_fast.store.shared_future import SharedFuture

_AT_ONCE = 64  # flushes whose waiters go on in one turn of the loop

_logger = logging.getLogger(__name__)


class Flush(NamedTuple):
    """A flush handed over: of which log, up to which offset it then is durable, and who is told."""

    log: Log
    end: int
    full: list[Segment]  # get their index written
    future: SharedFuture


class GroupCommit:
    """Flushes logs for those who ask."""

    def __init__(self, threads: int, pool: Executor) -> None:
        """`threads`: how many logs are flushed side by side. `pool`: where indexes are written."""
        self._flusher = Flusher(threads)
        self._pool = pool
        self._flushes: dict[int, Flush] = {}  # by ticket
        self._ticket = 0
        self._done: deque[tuple[int, str | None]] = deque()  # by the threads, and nobody was told yet
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._flusher.fileno(), self._finish)
        self.closed = False

    def close(self) -> None:
        """Begin no flush any more; who still asks for one gets `StoreError`. Waits for those under way."""
        self.closed = True
        self._loop.remove_reader(self._flusher.fileno())
        self._flusher.close()
        self._finish()

    def ask(self, log: Log) -> "asyncio.Future[None]":
        """A future, shared by all who ask now: None when all that is in the log now is durable, or `StoreError`."""
        future = log.waiting
        if future is None:
            future = log.waiting = SharedFuture(loop=self._loop)
            if log.flushing is None:
                self._hand_over(log)  # the disk works while the loop takes in what else has arrived
            else:
                # Not at once: whatever else arrives in this turn of the loop belongs to the same flush.
                self._loop.call_soon(self._hand_over, log)
        return future

    @asynccontextmanager
    async def pause(self, log: Log) -> AsyncIterator[None]:
        """While inside, no flush of this log is under way. One at a time for a log."""
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
        """Wait until the flushes handed over so far have ended; later ones are not waited for."""
        if log.flushing is not None:  # the last one, and flushes of a log end in their order
            await asyncio.wait([log.flushing])
        if log.indexing is not None:
            await asyncio.wait([log.indexing])

    def _hand_over(self, log: Log) -> None:
        """Give those who wait to the threads."""
        future = log.waiting
        if future is None or log.paused:
            return
        log.waiting = None
        if log.failed or self.closed:
            closed = StoreError("the store was closed before it was flushed")
            future.fail(StoreError(log.failed, logged=True) if log.failed else closed)
            return
        full, log.unflushed = log.unflushed, []
        files = [segment.path for segment in (*full, log.segments[-1])]
        directories = [log.directory, log.directory.parent] if log.fresh else []
        log.dirty = log.fresh = False
        self._ticket += 1
        try:
            self._flusher.flush(id(log), self._ticket, files, directories)
        except OSError as error:
            future.fail(log.fail(f"the flush failed: {error}"))
            return
        self._flushes[self._ticket] = Flush(log, log.end, full, future)
        log.flushing = future

    def _finish(self) -> None:
        """On the loop: what the threads did, a few at a time: others have their turn between."""
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
        """Put the indexes of flushed segments beside them, in a thread, one call of a log after the other."""
        before = log.indexing

        async def write() -> None:
            try:
                if before is not None:
                    await asyncio.wait([before])
                for segment in await self._loop.run_in_executor(self._pool, _write_indexes, full):
                    segment.index = None  # it is on disk now
            finally:
                if log.indexing is mine:
                    log.indexing = None

        mine = log.indexing = self._loop.create_task(write())


def _write_indexes(segments: Sequence[Segment]) -> list[Segment]:
    return [segment for segment in segments if write_index(segment)]


def write_index(segment: Segment) -> bool:
    """Put a flushed segment's index beside it. False if that fails: it can be built again from the segment."""
    if segment.index is None:
        return False
    try:
        segment.index.write(segment.index_path, segment.summary)
    except OSError as error:
        _logger.warning("%s: index not written, the segment will be read again: %s", segment.path, error)
        return False
    return True
