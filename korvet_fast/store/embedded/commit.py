"""Group commit: one flush of a log answers everyone who waited for it.

Each log has at most one flush under way, in a worker thread; who asks meanwhile shares the next one, which begins
when that ends. A flush that fails fails its log for good: the kernel may have thrown the pages away, so a second
flush that succeeds would prove nothing.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from korvet_fast.errors import StoreError
from korvet_fast.store.embedded.files import Files, Handle, sync_directory
from korvet_fast.store.embedded.log import Log
from korvet_fast.store.embedded.segment import Segment

_logger = logging.getLogger(__name__)


class Shared(asyncio.Future[None]):
    """A future that many wait for: that one of them is cancelled does not cancel it for the others."""

    def cancel(self, msg: object = None) -> bool:
        """Refused; a task that waits here is cancelled when the future ends."""
        return False


class _Flush(NamedTuple):
    """What a worker thread is to make durable, and up to which offset the log then is."""

    end: int
    files: list[Path]  # in the order of the log
    directories: tuple[Path, ...]
    full: list[Segment]  # get their index written


class Commit:
    """Flushes logs for those who ask."""

    def __init__(self, files: Files, pool: Executor) -> None:
        self._files = files
        self._pool = pool
        self._loop = asyncio.get_running_loop()
        self._closed = False

    def close(self) -> None:
        """Begin no flush any more; who still asks for one gets `StoreError`."""
        self._closed = True

    def ask(self, log: Log) -> "asyncio.Future[None]":
        """A future, shared by all who ask now: None when all that is in the log now is durable, or `StoreError`."""
        future = log.waiting
        if future is None:
            future = log.waiting = Shared(loop=self._loop)
            # Not at once: whatever else arrives in this turn of the loop belongs to the same flush.
            self._loop.call_soon(self._begin, log)
        return future

    @asynccontextmanager
    async def pause(self, log: Log) -> AsyncIterator[None]:
        """While inside, no flush of this log is under way. One at a time for a log."""
        log.paused = True
        try:
            while log.flushing is not None:
                await asyncio.wait([log.flushing])
            yield
        finally:
            log.paused = False
            self._begin(log)

    def _begin(self, log: Log) -> None:
        if log.waiting is None or log.flushing is not None or log.paused:
            return
        if log.failed or self._closed:
            future, log.waiting = log.waiting, None
            refuse(future, log.failed or "the store was closed before it was flushed")
            return
        log.flushing, log.waiting = log.waiting, None
        flush = self._collect(log)
        running = self._loop.run_in_executor(self._pool, _run, flush, self._files)
        running.add_done_callback(partial(self._finish, log, flush))

    def _collect(self, log: Log) -> _Flush:
        full, log.unflushed = log.unflushed, []
        files = [segment.path for segment in (*full, log.segments[-1])]
        directories = (log.directory, log.directory.parent) if log.fresh else ()
        log.dirty = log.fresh = False
        return _Flush(log.end, files, directories, full)

    def _finish(self, log: Log, flush: _Flush, running: "asyncio.Future[list[Segment]]") -> None:
        future, log.flushing = log.flushing, None
        assert future is not None  # set in _begin, taken only here
        error = running.exception()
        if error is None:
            log.durable = max(log.durable, flush.end)
            for segment in running.result():
                segment.index = None  # it is on disk now
            future.set_result(None)
        else:
            log.fail(f"the flush failed: {error}")
            refuse(future, log.failed)
        self._begin(log)


def refuse(future: "asyncio.Future[None]", why: str) -> None:
    """End a future with `StoreError`."""
    future.set_exception(StoreError(why))
    future.exception()  # nobody has to be waiting


def _run(flush: _Flush, files: Files) -> list[Segment]:
    """In a thread. Returns the segments whose index is now beside them; raises `OSError`."""
    for path in flush.files:
        # Held only now: ten thousand flushes may be waiting for their turn, and each would keep a file open.
        handle = files.peek(path) or Handle(path)
        os.fdatasync(handle.fd)
    for directory in flush.directories:
        sync_directory(directory)
    return [segment for segment in flush.full if write_index(segment)]


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
