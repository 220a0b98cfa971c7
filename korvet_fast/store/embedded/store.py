"""The embedded store: logs and keys in files of one directory.

data/.lock                                   names the process that has the directory (lock.py)
data/checkpoint                              how a clean shutdown left the logs (recovery.py)
data/orders-0/00000000000000000000.log       batches from offset 0 on (segment.py)
data/orders-0/00000000000000000000.index     where they are (index.py)
data/orders-0/start                          where the log starts, if records were deleted (retention.py)
data/@registry/                              keys and values, a log as well (registry.py)
data/@registry/*.damaged                     what recovery had to cut off it, for a person to look at (recovery.py)
data/@removed/                               dropped logs on their way out
data/orders-0.<uuid>-stray/                  a log that was set aside, for a person to look at (names.py)
data/groups.json, data/offsets.json          what core keeps where people can read it (plain_files.py)
"""

import asyncio
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from korvet_fast.errors import Errors, KorvetError, StoreError
from korvet_fast.prestarted_executor import PrestartedExecutor
from korvet_fast.store.embedded.copies import find_missing_copies
from korvet_fast.store.embedded.files import Files, default_limit, sync_directory
from korvet_fast.store.embedded.group_commit import GroupCommit, write_index
from korvet_fast.store.embedded.idle import close_idle
from korvet_fast.store.embedded.lock import Lock
from korvet_fast.store.embedded.log import Log, LogCollaborators
from korvet_fast.store.embedded.names import REMOVED, directory_name, stray_name
from korvet_fast.store.embedded.plain_files import EmbeddedPlainFiles
from korvet_fast.store.embedded.reader import Reader
from korvet_fast.store.embedded.recovery import open_logs, write_checkpoint
from korvet_fast.store.embedded.registry import NAME, Registry
from korvet_fast.store.embedded.removals import Removals
from korvet_fast.store.embedded.retention import Retention
from korvet_fast.store.embedded.unreadable import explain
from korvet_fast.store.interface import OpenedLog, SharedStore
from korvet_fast.store.shared_future import SharedFuture
from korvet_fast.store.types import BATCHES, Appending, Bounds, CompareAndSet, ReadResult, Spent, StoreTimes

_FLUSHERS = 8  # threads; the file system's journal joins flushes that run side by side
_READERS = 4
_WRITERS = 4  # apart from the readers, who wait for cold disks

_CLOSED = "the store is closed"
_NOTHING = Bounds(0, 0, 0, 0)


class EmbeddedStore:
    """A `Store` in a directory of its own. Durable means: flushed to the disk.

    While it is open no other program can get in: nothing happens behind its owner's back.
    """

    layouts: tuple[str, ...] = (BATCHES,)
    syncs: bool = True
    shared: SharedStore | None = None
    producers = groups = None

    def __init__(self, directory: Path, *, index_interval_bytes: int = 4096) -> None:
        """An index has a row every `index_interval_bytes` of its segment."""
        self._directory = directory
        self._interval = index_interval_bytes
        self._lock = Lock(directory)
        self._resources = ExitStack()  # what an open store has: the lock first, and given back last
        self._plain_files = EmbeddedPlainFiles(directory)
        self.plain_files: EmbeddedPlainFiles | None = self._plain_files
        self._logs: dict[str, Log] = {}
        self._ready = False
        self._read_flushes: Callable[[], Spent] = Spent

    async def open(self) -> None:
        """See `Store.open`."""
        self._lock.claim()
        resources = self._resources
        resources.callback(self._lock.release)
        try:
            self._files = Files(default_limit())  # of now: `cli/serve.py` has raised the limit by now
            resources.callback(self._files.clear)
            self._writers = resources.enter_context(PrestartedExecutor(_WRITERS, "write"))
            self._readers = resources.enter_context(PrestartedExecutor(_READERS, "read"))
            self._commit = GroupCommit(_FLUSHERS, self._writers)
            resources.callback(self._commit.close)
            self._read_flushes = self._commit.read_spent
            self._plain_files.pool = self._writers
            stored: SharedFuture[None] = SharedFuture(loop=asyncio.get_running_loop())
            stored.set_result(None)
            at_once = Appending(stored, stored, at_once=True)
            self._given = LogCollaborators(self._interval, self._files, self._commit.ask, at_once)
            self._reader = Reader(self._files, self._readers)
            self._retention = Retention(self._files, self._writers, self._commit)
            self._removals = Removals()
            await self._recover()
            self._ready = True
        except OSError as error:
            raise StoreError(explain(error, self._directory)) from error
        finally:
            if not self._ready:
                self._release()

    async def _recover(self) -> None:
        loop = asyncio.get_running_loop()
        self._logs = await loop.run_in_executor(None, open_logs, self._directory, self._given, self._readers)
        changes = self._logs.pop(NAME, None) or Log.create(NAME, self._directory / NAME, self._given)
        self._changes = changes
        self._registry = Registry(changes, self._commit, self._retention)
        await self._registry.open(self._reader)

    async def close(self) -> None:
        """See `Store.close`. Raises `StoreError` if a log has failed; the directory is let go of even then."""
        async with self._removals.stop(
            self._logs.keys()
        ):  # the checkpoint must not tell of files that are being removed
            await self._registry.close()
            try:
                logs = await self._flush()
                self._ready = False  # no log is opened any more: it would be missing in the checkpoint
                clean = [log for log in logs if log.exists and not log.failed]
                failed = [f"{log.name}: {log.failed}" for log in logs if log.failed]
                for log in logs:
                    log.failed = log.failed or _CLOSED  # a late append would be missing in the checkpoint
                try:
                    await asyncio.get_running_loop().run_in_executor(None, _leave, self._directory, clean)
                except OSError as error:
                    why = f"{self._directory} was not closed cleanly: {error.strerror}"
                    failed.append(f"{why}; its flushed records are safe, and the next start looks at every log")
                if failed:
                    raise StoreError("; ".join(failed))
            finally:
                self._release()

    async def _flush(self) -> list[Log]:
        """Flush all logs that are not flushed; returns all logs, to which nothing was appended since."""
        while True:
            logs = [*self._logs.values(), self._changes]
            under_way = [future for log in logs for future in (log.flushing, log.indexing) if future is not None]
            under_way += [self._commit.ask(log) for log in logs if (log.dirty or log.waiting) and not log.failed]
            if not under_way:
                return logs
            await asyncio.wait(under_way)

    def _release(self) -> None:
        self._ready = False
        for log in self._logs.values():
            if not log.exists:
                log.failed = _CLOSED  # a late append would make files where another program may work by now
        self._plain_files.pool = None
        self._resources.close()

    def read_times(self) -> StoreTimes:
        """See `Store.read_times`."""
        return StoreTimes(flushes=self._read_flushes())

    def durability_error(self, log: str | None, sync: bool, copies: int) -> str | None:
        """See `LogStore.durability_error`."""
        return find_missing_copies(copies) or None

    def open_log(self, log: str) -> OpenedLog:
        """See `LogStore.open_log`."""
        state = self._logs.get(log)
        if state is None:
            if not self._ready:
                raise StoreError(_CLOSED)
            state = self._logs[log] = Log(log, self._directory / directory_name(log), self._given)
        return OpenedLog(state.append, partial(self._reader.read, state))

    async def bounds(self, log: str) -> Bounds:
        """See `LogStore.bounds`."""
        state = self._logs.get(log)
        return _NOTHING if state is None else state.bounds

    async def find_time(self, log: str, ms: int, start: int = 0) -> ReadResult:
        """See `LogStore.find_time`."""
        state = self._logs.get(log)
        if state is None:
            return ReadResult([], start)
        return await self._reader.find_time(state, ms, start)

    async def truncate(self, log: str, end: int) -> Bounds:
        """See `LogStore.truncate`."""
        async with self._removals.lock(log):
            state = self._find(log, end)
            if state is None:
                return _NOTHING
            async with self._commit.pause(state):
                await self._retention.truncate(state, end)
            return state.bounds

    async def delete_records(self, log: str, start: int) -> Bounds:
        """See `LogStore.delete_records`."""
        async with self._removals.lock(log):
            state = self._find(log, start)
            if state is None:
                return _NOTHING
            if state.durable < start <= state.end:
                await self._commit.ask(state)
            await self._retention.delete_records(state, start)
            return state.bounds

    async def apply_retention(
        self, log: str, *, older_than: int | None = None, larger_than: int | None = None
    ) -> Bounds:
        """See `LogStore.apply_retention`."""
        return await self.apply_retention_below(log, None, older_than=older_than, larger_than=larger_than)

    async def apply_retention_below(
        self, log: str, below: int | None, *, older_than: int | None = None, larger_than: int | None = None
    ) -> Bounds:
        """See `CopyStore.apply_retention_below`."""
        async with self._removals.lock(log):
            state = self._find(log, 0)
            if state is None:
                return _NOTHING
            if older_than is not None or larger_than is not None:
                await self._retention.apply_retention(state, older_than, larger_than, below)
            return state.bounds

    async def close_idle(self, wanted: Callable[[str], bool] | None = None) -> None:
        """See `LogStore.close_idle`. No other program drops logs."""
        await close_idle(self._logs, self._removals, self._reader, self._files, self._commit.ask)

    def _find(self, log: str, offset: int) -> Log | None:
        """A log; None if there is none yet. Raises `KorvetError` OFFSET_OUT_OF_RANGE if it then lacks the offset."""
        state = self._logs.get(log)
        if state is not None and state.exists:
            return state
        if offset:
            raise KorvetError(Errors.OFFSET_OUT_OF_RANGE, f"{log} is empty")
        return None

    async def drop(self, log: str) -> None:
        """See `LogStore.drop`."""
        removed = await self._take_out(log, stray=False)
        if removed is None:
            return
        try:
            await asyncio.get_running_loop().run_in_executor(self._writers, _remove, removed)
        except OSError as error:
            raise StoreError(f"{log} is dropped, but {removed} cannot be removed: {error}") from error

    async def set_aside(self, log: str) -> str:
        """See `CopyStore.set_aside`."""
        stray = await self._take_out(log, stray=True)
        if stray is None:
            return ""
        try:
            await asyncio.get_running_loop().run_in_executor(self._writers, sync_directory, self._directory)
        except OSError as error:
            raise StoreError(f"{log} is set aside as {stray}, but that is not on the disk: {error}") from error
        return str(stray.absolute())

    async def _take_out(self, log: str, *, stray: bool) -> Path | None:
        """Take a log out of sight in one step, so that a new one of its name can be made at once.

        Returns where its files are now: to be removed, or (`stray`) to be kept; None where there were none.
        """
        async with self._removals.lock(log):
            state = self._logs.get(log)
            if state is None:
                return None
            async with self._commit.pause(state):
                if not state.exists:
                    self._forget_log(state)
                    return None
                try:
                    place = self._directory / stray_name(log) if stray else _name_removed(state)
                    state.directory.rename(place)
                except OSError as error:
                    raise StoreError(f"{state.directory} cannot be removed: {error}") from error
                self._forget_log(state)
                for segment in state.segments:
                    self._files.forget(segment.path)
                if state.waiting is not None:
                    state.waiting.fail(StoreError(state.failed))
                    state.waiting = None
                return place

    async def restart(self, log: str, start: int) -> None:
        """See `CopyStore.restart`."""
        await self.drop(log)
        directory = self._directory / directory_name(log)
        if not self._ready:
            raise StoreError(_CLOSED)
        try:
            self._logs[log] = Log.create(log, directory, self._given, start)
        except OSError as error:
            raise StoreError(f"{directory} cannot be made: {error.strerror}") from error

    def _forget_log(self, log: Log) -> None:
        del self._logs[log.name]
        log.gone = True
        log.failed = f"{log.name} was dropped"
        log.version += 1

    async def load(self, key: str) -> bytes | None:
        """See `KeyStore.load`."""
        return self._registry.load(key)

    async def save(self, key: str, value: bytes | None, expected: bytes | None, *others: CompareAndSet) -> bool:
        """See `KeyStore.save`."""
        return await self._registry.save(key, value, expected, *others)

    async def scan(self, prefix: str) -> dict[str, bytes]:
        """See `KeyStore.scan`."""
        return self._registry.scan(prefix)


def _leave(directory: Path, logs: list[Log]) -> None:
    for log in logs:
        last = log.segments[-1]
        if last.index is not None and len(last.index):
            write_index(last)
    write_checkpoint(directory, logs)


def _name_removed(log: Log) -> Path:
    """Where the files of a dropped log wait to be deleted. Raises `OSError`."""
    place = log.directory.parent / REMOVED
    place.mkdir(exist_ok=True)
    return place / str(log.directory.stat().st_ino)


def _remove(directory: Path) -> None:
    """In a thread. Remove a log that was put aside, once it is out of sight for good. Raises `OSError`."""
    sync_directory(directory.parent.parent)
    shutil.rmtree(directory)
