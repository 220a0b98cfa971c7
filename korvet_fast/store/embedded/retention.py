"""Removing records: from the front (delete records, retention) and from the end.

One removal at a time in a log (removals.py). Appends go on meanwhile, so every step between two awaits leaves the log
whole. Flushes go on too while the front is removed: segments are taken out of the log first, and deleted once no flush
has their files.
"""

import asyncio
import errno
import os
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path
from typing import TypeVar

from korvet_fast.errors import Errors, KorvetError, StoreError
from korvet_fast.store.embedded.files import Files, replace_file, sync_directory
from korvet_fast.store.embedded.group_commit import GroupCommit
from korvet_fast.store.embedded.log import Log
from korvet_fast.store.embedded.segment import Segment

_Result = TypeVar("_Result")

_START = "start"  # the file that says where a log starts, if that is not where its first segment does


class Retention:
    """Removes records of a log: from the front (`delete_records`, `apply_retention`) or from the end (`truncate`)."""

    def __init__(self, files: Files, pool: Executor, commit: GroupCommit) -> None:
        """`pool`: threads that no reader keeps waiting."""
        self._files = files
        self._pool = pool
        self._commit = commit

    async def delete_records(self, log: Log, offset: int) -> None:
        """Let the log start at `offset`, durably. Raises `KorvetError` past the durable end, `StoreError`."""
        if not 0 <= offset <= log.durable:
            raise KorvetError(Errors.OFFSET_OUT_OF_RANGE, f"{log.name} holds {log.start} to {log.durable}")
        if offset <= log.start:
            return
        try:
            await self._note_start(log, offset)
        except StoreError as failure:
            if not (_is_full(failure) and log.find(offset)[1]):
                raise
            # Whole segments can go before the start is noted: the segments left tell where the log starts, and room is
            # made.
            await self._remove_front(log, log.find(offset)[1])
            await self._note_start(log, offset)
        log.start = max(log.start, offset)
        await self._remove_front(log, log.find(offset)[1])

    async def _note_start(self, log: Log, offset: int) -> None:
        place = log.directory / _START
        try:
            await asyncio.get_running_loop().run_in_executor(self._pool, replace_file, place, b"%d\n" % offset)
        except OSError as error:
            raise StoreError(f"{place}: {error.strerror}") from error

    async def apply_retention(
        self, log: Log, older_than: int | None, larger_than: int | None, below: int | None
    ) -> None:
        """Remove whole segments from the front: see `CopyStore.apply_retention_below`. Raises `StoreError`."""
        segments = log.view_segments()
        size = sum(segment.size for segment in segments)
        count, safe = 0, log.durable if below is None else min(below, log.durable)
        for segment in segments:
            if not segment.size or segment.end > safe:
                break
            try:
                old = older_than is not None and segment.largest_timestamp() < older_than
            except OSError as error:
                raise StoreError(f"{segment.path}: {error.strerror}") from error
            if not old and (larger_than is None or size - segment.size < larger_than):
                break
            size -= segment.size
            count += 1
        if count == len(segments):
            log.roll()  # the end must stay known: an empty segment keeps it, before all others go
            await self._in_thread(sync_directory, log.directory)
        await self._remove_front(log, count)

    async def _remove_front(self, log: Log, count: int) -> None:
        if count == 0:
            return
        log.version += 1
        removed = log.segments[:count]
        del log.segments[:count]
        log.unflushed = [segment for segment in log.unflushed if segment not in removed]
        log.start = max(log.start, log.segments[0].base)
        for segment in removed:
            self._files.forget(segment.path)
        await self._commit.wait_for_flushes(log)
        # From the front, so that a crash in between leaves no hole.
        await self._in_thread(_remove, [path for s in removed for path in (s.index_path, s.path)])

    async def truncate(self, log: Log, offset: int) -> None:
        """Let the log end at `offset`, durably. The futures of removed records that wait for a flush get `StoreError`.

        The log's flushes are paused meanwhile.
        """
        if not log.start <= offset <= log.end:
            raise KorvetError(Errors.OFFSET_OUT_OF_RANGE, f"{log.name} holds {log.start} to {log.end}")
        if log.failed:
            raise StoreError(log.failed, logged=True)
        if offset == log.end:
            return
        segments, number = log.find(offset)
        last = segments[number]
        # Nothing below `offset` can change while we look for its place: records are removed by one call at a time.
        kept = await self._in_thread(_measure, last, offset, log.interval)
        _, number = log.find(offset)
        log.version += 1
        try:
            if kept.end < log.start:  # the log starts within the batch that goes
                self._remove_back(log.segments)
                number, kept = 0, Segment.create(log.directory, log.start)
                log.dirty = log.fresh = True
            else:
                self._remove_back(log.segments[number + 1 :])
                self._shorten(kept)
        except OSError as error:
            raise log.fail(f"{last.path}: could not be cut: {error.strerror}") from error
        log.segments[number:] = [kept]
        log.unflushed = [segment for segment in log.unflushed if segment in log.segments]
        log.durable = min(log.durable, kept.end)
        if log.waiting is not None:
            log.waiting.fail(StoreError(f"{log.name} was cut at {offset}"))
            log.waiting = None

    def _remove_back(self, segments: list[Segment]) -> None:
        # From the back, so that a crash in between leaves no hole; in the loop, so that no append comes in between.
        for segment in reversed(segments):
            self._files.forget(segment.path)
            _remove([segment.index_path, segment.path])

    def _shorten(self, kept: Segment) -> None:
        _remove([kept.index_path])  # the index would vouch for the bytes cut off
        handle = self._files.open(kept.path)
        os.ftruncate(handle.fd, kept.size)
        os.fsync(handle.fd)
        sync_directory(kept.directory)

    async def _in_thread(self, work: Callable[..., _Result], *arguments: object) -> _Result:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work, *arguments)
        except OSError as error:
            raise StoreError(f"{error.filename}: {error.strerror}") from error


def read_start(directory: Path) -> int:
    """Where the log in a directory was told to start; 0 if it was not. Raises `StoreError` for a damaged file."""
    path = directory / _START
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return 0
    if not text.strip().isdigit():
        raise StoreError(f"{path} should hold one number, an offset, but holds {text[:40]!r}")
    return int(text)


def _is_full(failure: StoreError) -> bool:
    return isinstance(failure.__cause__, OSError) and failure.__cause__.errno in (errno.ENOSPC, errno.EDQUOT)


def _measure(segment: Segment, offset: int, interval: int) -> Segment:
    """In a thread. The segment as it is without the records from `offset` on. Raises `OSError`."""
    return segment.scan(segment.size, interval, verify=False, below=offset)


def _remove(paths: list[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
