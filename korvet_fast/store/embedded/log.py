"""One log: its segments, where it starts and ends, how far it is durable. Belongs to the event loop's thread.

Only this file writes to segments. A write that fails is either undone completely, or the log is marked as failed and
takes nothing more until the store is opened again.
"""

import asyncio
import errno
import logging
import os
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from korvet_fast.errors import RAISE_FILE_LIMIT, StoreError
from korvet_fast.store.embedded.closed_log import pack_segments, unpack_segments
from korvet_fast.store.embedded.files import Files, Handle
from korvet_fast.store.embedded.segment import Segment
from korvet_fast.store.shared_future import SharedFuture
from korvet_fast.store.types import LARGE, Appending, Bounds, OffsetConflict, RecordBatch, SegmentLimits
from korvet_fast.types import Buffer

_PARTS = 1024  # buffers that one system call takes (IOV_MAX)
# What a person has to do before appends go on by themselves.
_ADVICE = {
    errno.ENOSPC: "make room",
    errno.EDQUOT: "make room",
    errno.EFBIG: "raise the limit of a file's size (`ulimit -f`, LimitFSIZE=), or set segment.bytes below it",
    errno.EMFILE: RAISE_FILE_LIMIT,
    errno.EACCES: "let the broker's user write there",
    errno.EROFS: "mount it for writing",
}

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LogCollaborators:
    """The parts that a store's logs share. `flush` is `GroupCommit.ask`; `at_once`: an append that has ended well."""

    interval: int  # bytes of a segment between two rows of its index
    files: Files
    flush: "Callable[[Log], asyncio.Future[None]]"
    at_once: Appending


class Log:
    """The state of one log. `directory` holds its segments and nothing of other logs; the first append makes it.

    A log that nobody uses can be closed: its segments are packed then, and unpacked when anybody asks for them.
    """

    __slots__ = (
        "_given",
        "_packed",
        "_place",
        "_segments",
        "dirty",
        "durable",
        "exists",
        "failed",
        "flushing",
        "fresh",
        "gone",
        "indexing",
        "interval",
        "name",
        "paused",
        "reading",
        "start",
        "unflushed",
        "used",
        "version",
        "waiting",
    )

    def __init__(
        self, name: str, directory: Path, given: LogCollaborators, segments: Sequence[Segment] = (), start: int = 0
    ) -> None:
        self.name = name
        self._place = os.fspath(directory)
        self._given = given
        self.interval = given.interval
        self.used = False  # since somebody looked whether it is idle
        self.reading = 0  # threads that read it
        self.version = 0  # counts removals of records: reads under way begin anew
        self.reset(segments, start)

    def reset(self, segments: Sequence[Segment] = (), start: int = 0) -> None:
        """Take these as the log's segments, all of them durable. None: there is no log yet. Nothing is under way."""
        self.version += 1
        self.exists = bool(segments)  # in the directory
        # Only the last grows; empty: the log is closed.
        self._segments = list(segments) or [Segment(self.directory, start)]
        self._packed = b""  # the segments of a closed log
        self.start = start
        self.durable = self.end
        self.failed = ""  # why nothing can be written any more
        self.gone = False  # dropped: nothing can be read any more
        # The group commit's part (see group_commit.py).
        self.dirty = False  # something was written since the last flush began
        self.fresh = False  # a file was made since then
        self.unflushed: list[Segment] = []  # segments that became full since then
        self.waiting: SharedFuture[None] | None = None  # for requests whose flush no thread has yet
        self.flushing: asyncio.Future[None] | None = None  # the last flush that a thread has, until the log is at rest
        self.indexing: asyncio.Future[None] | None = None  # until the indexes of full segments are beside them
        self.paused = False  # none may be handed over

    @classmethod
    def create(cls, name: str, directory: Path, given: LogCollaborators, base: int = 0) -> "Log":
        """A new and empty log, in its directory. Raises `OSError`."""
        log = cls(name, directory, given, start=base)
        log._make_files()
        return log

    @property
    def directory(self) -> Path:
        """Where the log is. Made anew each time: a `Path` keeps its parts for good once it was asked for them."""
        return Path(self._place)

    def _make_files(self) -> None:
        directory = self.directory
        directory.mkdir(exist_ok=True)
        self._segments = [Segment.create(directory, self.start)]
        self.exists = self.dirty = self.fresh = True

    @property
    def segments(self) -> list[Segment]:
        """The segments, at least one. A closed log is open again."""
        return self._segments or self._open()

    def _open(self) -> list[Segment]:
        self._segments = segments = self.view_segments()
        self._packed = b""
        return segments

    @property
    def is_closed(self) -> bool:
        """Whether `close` has closed it, and nobody has used it since."""
        return not self._segments

    def view_segments(self) -> list[Segment]:
        """The segments to look at, not to change or keep: a closed log stays closed."""
        if self._segments:
            return self._segments
        return unpack_segments(self.directory, self._packed) or [Segment(self.directory, self.start)]

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way."""
        under_way = self.waiting or self.flushing or self.indexing
        return not (under_way or self.reading or self.paused or self.unflushed or self.gone)

    def close(self) -> list[Segment]:
        """Pack the segments of an idle log, and let go of them; returns those that there were."""
        segments = self.segments
        self._packed = pack_segments(segments) if self.exists else b""
        self._segments = []
        return segments

    @property
    def end(self) -> int:
        """The offset that the next record gets."""
        return (self._segments or self._open())[-1].end

    @property
    def bounds(self) -> Bounds:
        """Where the log starts and ends."""
        segments = self.view_segments()
        size = sum(segment.size for segment in segments)
        latest = max(segment.max_time for segment in segments)
        return Bounds(self.start, segments[-1].end, self.durable, size, latest, removed=self.start)

    def find(self, offset: int) -> tuple[list[Segment], int]:
        """The segments, and the position of the one that holds the offset, or would hold it."""
        segments = self._segments or self._open()
        return segments, max(0, bisect_right(segments, offset, key=_base) - 1)

    def append(
        self,
        batches: Sequence[RecordBatch],
        at: int,
        sync: bool,
        copies: int = 1,
        segment_limits: SegmentLimits = LARGE,
    ) -> Appending:
        """See `store.interface.Append`."""
        given = self._given
        end = self.write(batches, at, segment_limits)
        if not sync and self.durable == at:
            self.durable = end
        if self.durable == end and not (sync and (self.dirty or self.flushing)):
            if self.unflushed:  # full segments: once they are flushed, recovery need not read them
                given.flush(self)
            return given.at_once
        # Without `sync` too, where an earlier append waits for its flush: durability has no holes.
        durable = given.flush(self)
        return Appending(given.at_once.stored, durable) if sync else given.at_once

    def write(self, batches: Sequence[RecordBatch], at: int, segment_limits: SegmentLimits) -> int:
        """Write the batches behind the end, all or none, into the page cache; returns the new end.

        Raises `OffsetConflict` and `StoreError`.
        """
        if self.failed:
            raise StoreError(self.failed, logged=True)
        segment = (self._segments or self._open())[-1]
        if at != segment.end:
            raise OffsetConflict(segment.end)
        if not self.exists:
            try:
                self._make_files()
            except OSError as error:
                raise StoreError(f"{self.directory} cannot be made: {error.strerror}") from error
            segment = self._segments[-1]
        if not batches:
            return at
        self.used = True
        data, first, last, timestamp = batches[0]
        alone = len(batches) == 1
        size = len(data) if alone else sum(len(batch.data) for batch in batches)
        position = segment.size
        if position:
            limit, span = segment_limits
            if position + size > limit or timestamp - segment.first_time > span:
                segment, position = self.roll(), 0
        try:
            if segment.index is None:
                segment.grow(self.interval)
            handle = segment.handle() or segment.open(self._given.files)
            written = os.pwrite(handle.fd, data, position) if alone else 0
        except OSError as error:
            raise _append_error(segment.path, error) from error
        if written < size:
            self._write_rest(handle, segment, [batch.data for batch in batches], size, written)
        self.dirty = True
        if alone:
            segment.note(first, last, timestamp, size, self.interval)
            return last + 1
        for data, first, last, timestamp in batches:
            segment.note(first, last, timestamp, len(data), self.interval)
        return segment.end

    def _write_rest(self, handle: Handle, segment: Segment, parts: list[Buffer], size: int, written: int) -> None:
        """Write the bytes behind the first `written`."""
        try:
            while written < size:  # a nearly full disk, a signal, or more parts than one call takes
                written += os.pwritev(handle.fd, _after(parts, written)[:_PARTS], segment.size + written)
        except OSError as error:
            if written:
                self._undo(handle, segment)
            raise _append_error(segment.path, error) from error

    def _undo(self, handle: Handle, segment: Segment) -> None:
        """Cut off the bytes of a failed append, durably: a crash must not bring back a refused batch."""
        try:
            os.ftruncate(handle.fd, segment.size)
            os.fsync(handle.fd)
        except OSError as error:
            self.fail(f"{segment.path}: a failed append could not be undone: {error.strerror}")

    def roll(self) -> Segment:
        """Begin a new segment at the end. Raises `StoreError`; the log is then as it was."""
        full = self.segments[-1]
        try:
            segment = Segment.create(self.directory, full.end)
        except OSError as error:
            raise _append_error(self.directory, error) from error
        self.segments.append(segment)
        self.unflushed.append(full)
        self.dirty = self.fresh = True
        return segment

    def fail(self, why: str) -> StoreError:
        """Take nothing more until the store is opened again: nobody can say what the disk holds. Returns the error."""
        if not self.failed:
            self.failed = f"{why}; nothing more is written to this log until the broker is restarted"
            _logger.error("%s: %s", self.name, self.failed)
        return StoreError(self.failed, logged=True)


def _base(segment: Segment) -> int:
    return segment.base


def _append_error(path: Path, error: OSError) -> StoreError:
    what = _ADVICE.get(error.errno or 0)
    advice = f"; {what}, appends then go on by themselves" if what else ""
    return StoreError(f"{path}: nothing was appended: {error.strerror}{advice}")


def _after(parts: list[Buffer], written: int) -> list[Buffer]:
    """The parts without their first `written` bytes."""
    for number, part in enumerate(parts):
        if written < len(part):
            return [memoryview(part)[written:], *parts[number + 1 :]]
        written -= len(part)
    return []
