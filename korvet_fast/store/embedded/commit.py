"""Group commit: one flush of a log answers everyone who waited for it.

Each log has at most one flush under way, in a thread; who asks meanwhile shares the next one. A lone writer is flushed
for at once. Where several keep writing, the next flush waits until all of them are there again (or for `_PATIENCE`):
otherwise those who are answered and those who wait would take turns, and each flush would carry half of them.

A flush that fails fails its log for good: the kernel may have thrown the pages away, so a second flush that succeeds
would prove nothing.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import NamedTuple

from korvet_fast.errors import StoreError
from korvet_fast.store.embedded.files import Files, Handle, sync_directory
from korvet_fast.store.embedded.log import Log
from korvet_fast.store.embedded.segment import Segment

_PATIENCE = 0.001  # seconds, a few times what a flush takes

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


class _Job(NamedTuple):
    """A flush on its way through a thread."""

    log: Log
    flush: _Flush


class Commit:
    """Flushes logs for those who ask."""

    def __init__(self, files: Files, threads: int) -> None:
        """`threads`: how many logs are flushed side by side."""
        self._files = files
        self._most = threads
        self._threads: list[Thread] = []
        # A queue of our own: the futures of an executor cost several times what the hand-over itself does.
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._under_way = 0
        self._loop = asyncio.get_running_loop()
        self.closed = False

    def close(self) -> None:
        """Begin no flush any more; who still asks for one gets `StoreError`. Waits for those under way."""
        self.closed = True
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def ask(self, log: Log) -> "asyncio.Future[None]":
        """A future, shared by all who ask now: None when all that is in the log now is durable, or `StoreError`."""
        future = log.waiting
        if future is None:
            future = log.waiting = Shared(loop=self._loop)
        log.asked += 1
        if log.asked == max(log.crowd, 1):
            # Not at once: whatever else arrives in this turn of the loop belongs to the same flush.
            self._loop.call_soon(self._hurry, log, future)
        return future

    def _hurry(self, log: Log, future: "asyncio.Future[None]") -> None:
        """Flush for those who wait with `future`, though fewer came than were expected."""
        if log.waiting is future and log.flushing is None:
            log.crowd = 0
            self._begin(log)

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
        if log.waiting is None or log.flushing is not None or log.paused or log.asked < log.crowd:
            return
        if log.failed or self.closed:
            future, log.waiting = log.waiting, None
            log.asked = log.crowd = 0
            refuse(future, log.failed or "the store was closed before it was flushed")
            return
        log.flushing, log.waiting = log.waiting, None
        log.crowd, log.asked = log.asked, 0
        self._under_way += 1
        if len(self._threads) < min(self._under_way, self._most):
            thread = Thread(target=self._work, name="flush", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._jobs.put(_Job(log, self._collect(log)))

    def _work(self) -> None:
        """A thread: flush one after the other, and tell the loop."""
        while (job := self._jobs.get()) is not None:
            outcome: list[Segment] | Exception
            try:
                outcome = _run(job.flush, self._files)
            except Exception as error:  # noqa: BLE001  who waits is told, whatever it was; `_finish` logs it
                outcome = error
            self._loop.call_soon_threadsafe(self._finish, job, outcome)

    def _collect(self, log: Log) -> _Flush:
        full, log.unflushed = log.unflushed, []
        files = [segment.path for segment in (*full, log.segments[-1])]
        directories = (log.directory, log.directory.parent) if log.fresh else ()
        log.dirty = log.fresh = False
        return _Flush(log.end, files, directories, full)

    def _finish(self, job: _Job, outcome: "list[Segment] | Exception") -> None:
        log = job.log
        future, log.flushing = log.flushing, None
        assert future is not None  # set in _begin, taken only here
        self._under_way -= 1
        # Who was flushed for and who came meanwhile make the crowd; if nobody came, the next one need not wait.
        log.crowd = log.crowd + log.asked if log.asked else 0
        if isinstance(outcome, Exception):
            log.fail(f"the flush failed: {outcome}")
            refuse(future, log.failed)
        else:
            log.durable = max(log.durable, job.flush.end)
            for segment in outcome:
                segment.index = None  # it is on disk now
            future.set_result(None)
        if log.waiting is not None:
            self._loop.call_later(_PATIENCE, self._hurry, log, log.waiting)
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
