"""Group commit: one flush of a log answers everyone who waited for it.

Each log has at most one flush under way, in a thread. Who asks meanwhile is handed to that thread at once, and it
flushes for all of them together the moment it is free: the disk never waits for the loop. A flush that fails fails its
log for good: the kernel may have thrown the pages away, so a second flush that succeeds would prove nothing.
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

_logger = logging.getLogger(__name__)


class Shared(asyncio.Future[None]):
    """A future that many wait for: that one of them is cancelled does not cancel it for the others."""

    def cancel(self, msg: object = None) -> bool:
        """Refused; a task that waits here is cancelled when the future ends."""
        return False


class Flush(NamedTuple):
    """What a thread is to make durable, up to which offset the log then is, and who is told."""

    end: int
    files: list[Path]  # in the order of the log
    directories: tuple[Path, ...]
    full: list[Segment]  # get their index written
    future: "asyncio.Future[None]"


class Commit:
    """Flushes logs for those who ask."""

    def __init__(self, files: Files, threads: int) -> None:
        """`threads`: how many logs are flushed side by side."""
        self._files = files
        self._most = threads
        self._threads: list[Thread] = []
        # A queue of our own: the futures of an executor cost several times what the hand-over itself does.
        self._logs: SimpleQueue[Log | None] = SimpleQueue()
        self._under_way = 0  # logs in the queue and in the threads
        self._loop = asyncio.get_running_loop()
        self.closed = False

    def close(self) -> None:
        """Begin no flush any more; who still asks for one gets `StoreError`. Waits for those under way."""
        self.closed = True
        for _ in self._threads:
            self._logs.put(None)
        for thread in self._threads:
            thread.join()

    def ask(self, log: Log) -> "asyncio.Future[None]":
        """A future, shared by all who ask now: None when all that is in the log now is durable, or `StoreError`."""
        future = log.waiting
        if future is None:
            future = log.waiting = Shared(loop=self._loop)
            # Not at once: whatever else arrives in this turn of the loop belongs to the same flush.
            self._loop.call_soon(self._hand_over, log)
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
            self._hand_over(log)

    def _hand_over(self, log: Log) -> None:
        """Give those who wait to the thread that flushes this log, or to the next that is free."""
        future = log.waiting
        if future is None or log.paused:
            return
        log.waiting = None
        if log.failed or self.closed:
            refuse(future, log.failed or "the store was closed before it was flushed")
            return
        idle = log.flushing is None
        log.flushing = future
        log.flushes.append(_collect(log, future))
        if idle:
            self._start(log)

    def _start(self, log: Log) -> None:
        self._under_way += 1
        if len(self._threads) < min(self._under_way, self._most):
            thread = Thread(target=self._work, name="flush", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._logs.put(log)

    def _work(self) -> None:
        """A thread: flush the logs of the queue, and tell the loop."""
        while (log := self._logs.get()) is not None:
            on = True
            while on:
                flushes = [log.flushes.popleft() for _ in range(len(log.flushes))]
                done: list[Segment] | Exception
                try:
                    done = _run(flushes, self._files)
                except Exception as error:  # noqa: BLE001  who waits is told, whatever it was, and `_finish` logs it
                    done = error
                # With the same log, unless another waits for its turn; what arrives from here on `_finish` sees.
                on = not isinstance(done, Exception) and bool(log.flushes) and self._logs.empty()
                self._loop.call_soon_threadsafe(self._finish, log, flushes, done, on)

    def _finish(self, log: Log, flushes: list[Flush], done: "list[Segment] | Exception", on: bool) -> None:
        """On the loop: what a thread did. `on`: it goes on with the same log."""
        if isinstance(done, Exception):
            log.fail(f"the flush failed: {done}")
            flushes += log.flushes
            log.flushes.clear()
        else:
            log.durable = max(log.durable, flushes[-1].end)
            for segment in done:
                segment.index = None  # it is on disk now
        if not on:
            self._under_way -= 1
            if log.flushes:
                self._start(log)
            else:
                log.flushing = None
        for flush in flushes:
            if log.failed:
                refuse(flush.future, log.failed)
            else:
                flush.future.set_result(None)


def _collect(log: Log, future: "asyncio.Future[None]") -> Flush:
    """What has to be flushed so that all that is in the log now is durable."""
    full, log.unflushed = log.unflushed, []
    files = [segment.path for segment in (*full, log.segments[-1])]
    directories = (log.directory, log.directory.parent) if log.fresh else ()
    log.dirty = log.fresh = False
    return Flush(log.end, files, directories, full, future)


def refuse(future: "asyncio.Future[None]", why: str) -> None:
    """End a future with `StoreError`."""
    future.set_exception(StoreError(why))
    future.exception()  # nobody has to be waiting


def _run(flushes: list[Flush], files: Files) -> list[Segment]:
    """In a thread. Returns the segments whose index is now beside them; raises `OSError`."""
    for path in dict.fromkeys(path for flush in flushes for path in flush.files):
        # Held only now: ten thousand flushes may be waiting for their turn, and each would keep a file open.
        handle = files.peek(path) or Handle(path)
        os.fdatasync(handle.fd)
    for directory in dict.fromkeys(directory for flush in flushes for directory in flush.directories):
        sync_directory(directory)
    return [segment for flush in flushes for segment in flush.full if write_index(segment)]


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
