"""The embedded store: the nine verbs over files in one directory.

data/.lock                                   one process at a time (lock.py)
data/checkpoint                              how a clean shutdown left the logs (recovery.py)
data/orders-0/00000000000000000000.log       batches from offset 0 on (segment.py)
data/orders-0/00000000000000000000.index     where they are (index.py)
data/orders-0/start                          where the log starts, if records were deleted (cut.py)
data/@registry/                              keys and values, a log as well (registry.py)
data/@removed/                               dropped logs on their way out
"""

import asyncio
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from korvet_fast.errors import KorvetError, StoreError
from korvet_fast.store.embedded.commit import Commit, Shared, refuse, write_index
from korvet_fast.store.embedded.cut import Cutter
from korvet_fast.store.embedded.files import Files, default_limit, sync_directory
from korvet_fast.store.embedded.lock import Lock
from korvet_fast.store.embedded.log import Log
from korvet_fast.store.embedded.names import REMOVED, directory_name
from korvet_fast.store.embedded.reader import Reader
from korvet_fast.store.embedded.recovery import open_logs, write_checkpoint
from korvet_fast.store.embedded.registry import NAME, Registry
from korvet_fast.store.interface import (
    BATCHES,
    LARGE,
    Appending,
    Attached,
    Bounds,
    Change,
    Entry,
    Form,
    Page,
    Piece,
    Stale,
)

_FLUSHERS = 8  # threads; the file system's journal joins flushes that run side by side
_READERS = 4

_CLOSED = "the store is closed"
_NOTHING = Bounds(0, 0, 0, 0)


def _end_nothing() -> None:
    """What ends a `follow` that has nothing to tell."""


class EmbeddedStore:
    """A `Store` in a directory of its own. Durable means: flushed to the disk.

    While it is open no other program can get in: every log is attached, and nothing happens behind its owner's back.
    """

    layouts: tuple[str, ...] = (BATCHES,)
    shared: bool = False
    syncs: bool = True

    def __init__(
        self,
        directory: Path,
        *,
        index_interval_bytes: int = 4096,
        open_files: int | None = None,
    ) -> None:
        """An index has a row every `index_interval_bytes` of its segment; at most `open_files` stay open."""
        self._directory = directory
        self._interval = index_interval_bytes
        self._files = Files(open_files or default_limit())
        self._lock = Lock(directory)
        self._logs: dict[str, Log] = {}
        self._ready = False

    async def open(self) -> None:
        """See `Store.open`."""
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._lock.take()
        except OSError as error:
            raise StoreError(f"{self._directory} cannot be used: {error.strerror}") from error
        self._readers = ThreadPoolExecutor(_READERS, "read")
        self._commit = Commit(_FLUSHERS, self._readers)
        self._reader = Reader(self._files, self._readers)
        self._cutter = Cutter(self._files, self._readers)
        self._cutting = asyncio.Lock()
        try:
            await self._recover()
            self._ready = True
        except OSError as error:
            raise StoreError(f"{self._directory} cannot be opened: {error}") from error
        finally:
            if not self._ready:
                self._let_go()

    async def _recover(self) -> None:
        loop = asyncio.get_running_loop()
        self._logs = await loop.run_in_executor(None, open_logs, self._directory, self._interval, self._readers)
        changes = self._logs.pop(NAME, None) or Log.create(NAME, self._directory / NAME, self._interval)
        self._changes = changes
        self._registry = Registry(changes, self._files, self._commit, self._cutter)
        self._stored: asyncio.Future[None] = Shared(loop=loop)
        self._stored.set_result(None)
        self._at_once = Appending(self._stored, self._stored)
        await self._registry.open(self._reader)

    async def close(self) -> None:
        """See `Store.close`. Raises `StoreError` if a log has failed; the directory is let go of even then."""
        async with self._cutting:  # the checkpoint must not tell of files that are being removed
            try:
                logs = await self._flush()
                clean = [log for log in logs if not log.failed]
                failed = [f"{log.name}: {log.failed}" for log in logs if log.failed]
                for log in logs:
                    log.failed = log.failed or _CLOSED  # a late append would be missing in the checkpoint
                await asyncio.get_running_loop().run_in_executor(None, self._leave, clean)
                if failed:
                    raise StoreError("; ".join(failed))
            except OSError as error:
                raise StoreError(f"{self._directory} was not closed cleanly: {error}") from error
            finally:
                self._let_go()

    async def _flush(self) -> list[Log]:
        """Flush what is not flushed; returns all logs."""
        while True:
            logs = [*self._logs.values(), self._changes]
            unflushed = [log for log in logs if (log.dirty or log.waiting or log.flushing) and not log.failed]
            if not unflushed:
                for log in logs:
                    await self._commit.rest(log)
                return logs
            await asyncio.wait(list(map(self._commit.ask, unflushed)))

    def _leave(self, logs: list[Log]) -> None:
        for log in logs:
            last = log.segments[-1]
            if last.index is not None and len(last.index):
                write_index(last)
        write_checkpoint(self._directory, logs)

    def _let_go(self) -> None:
        self._ready = False
        self._commit.close()
        self._readers.shutdown()
        self._files.clear()
        self._lock.release()

    def listen(self, forked: Callable[[str], None]) -> None:
        """See `Store.listen`. What was stored stays stored while the directory is held: never called."""

    def declare(self, log: str, form: Form) -> None:
        """See `Store.declare`. There is one form."""

    async def attach(self, log: str, form: Form, *, epoch: int, floor: int) -> Attached:
        """See `Store.attach`."""
        bounds = await self.bounds(log)
        return Attached(bounds, epoch, bounds.end, b"")

    def follow(self, log: str, end: int, grown: Callable[[], None]) -> Callable[[], None]:
        """See `Store.follow`. Nobody else can write."""
        return _end_nothing

    def refusal(self, log: str | None, sync: bool, copies: int) -> str | None:
        """See `Store.refusal`."""
        return None if copies <= 1 else f"this store keeps one copy, {copies} are asked for"

    async def changed(self, prefix: str) -> int:
        """See `Store.changed`."""
        return self._registry.changed(prefix)

    def append(
        self, log: str, entries: Sequence[Entry], at: int, *, sync: bool, copies: int = 1, piece: Piece = LARGE
    ) -> Appending:
        """See `Store.append`."""
        state = self._logs.get(log)
        if state is None:
            state = self._create(log, at)
        end = state.append(entries, at, piece, self._files)
        if not sync and state.durable == at:
            state.durable = end
        if state.durable == end and not (sync and (state.dirty or state.flushing)):
            if state.unflushed:  # full segments: once they are flushed, recovery need not read them
                self._commit.ask(state)
            return self._at_once
        # Without `sync` too, where an earlier append waits for its flush: durability has no holes.
        durable = self._commit.ask(state)
        return Appending(self._stored, durable if sync else self._stored)

    def _create(self, name: str, at: int) -> Log:
        if at != 0:
            raise Stale(0)
        directory = self._directory / directory_name(name)
        if not self._ready:
            raise StoreError(_CLOSED)
        try:
            log = self._logs[name] = Log.create(name, directory, self._interval)
        except OSError as error:
            raise StoreError(f"{directory} cannot be made: {error.strerror}") from error
        return log

    async def read(self, log: str, start: int, max_bytes: int, limit: int) -> Page:
        """See `Store.read`."""
        state = self._logs.get(log)
        if state is None:
            return Page([], start)
        return await self._reader.read(state, start, max_bytes, limit)

    async def bounds(self, log: str) -> Bounds:
        """See `Store.bounds`."""
        state = self._logs.get(log)
        return _NOTHING if state is None else state.bounds

    async def find_time(self, log: str, ms: int, start: int = 0) -> Page:
        """See `Store.find_time`."""
        state = self._logs.get(log)
        if state is None:
            return Page([], start)
        return await self._reader.find_time(state, ms, start)

    async def cut(
        self,
        log: str,
        *,
        start: int | None = None,
        end: int | None = None,
        older_than: int | None = None,
        larger_than: int | None = None,
    ) -> Bounds:
        """See `Store.cut`."""
        async with self._cutting:
            state = self._logs.get(log)
            if state is None:
                if start or end:
                    raise KorvetError("OFFSET_OUT_OF_RANGE", f"{log} is empty")
                return _NOTHING
            if start is not None and state.durable < start <= state.end:
                await self._commit.ask(state)
            async with self._commit.pause(state):
                if start is not None:
                    await self._cutter.delete_before(state, start)
                if older_than is not None or larger_than is not None:
                    await self._cutter.retire(state, older_than, larger_than)
                if end is not None:
                    await self._cutter.truncate(state, end)
            return state.bounds

    async def drop(self, log: str) -> None:
        """See `Store.drop`."""
        async with self._cutting:
            state = self._logs.get(log)
            if state is None:
                return
            async with self._commit.pause(state):
                try:
                    removed = self._put_aside(state)
                except OSError as error:
                    raise StoreError(f"{state.directory} cannot be removed: {error}") from error
        try:
            await asyncio.get_running_loop().run_in_executor(self._readers, self._remove, removed)
        except OSError as error:
            raise StoreError(f"{log} is dropped, but {removed} cannot be removed: {error}") from error

    def _put_aside(self, log: Log) -> Path:
        """Take a log out of sight in one step, so that a new one of its name can be made at once."""
        place = self._directory / REMOVED
        place.mkdir(exist_ok=True)
        removed = place / str(log.directory.stat().st_ino)
        log.directory.rename(removed)
        del self._logs[log.name]
        log.gone = True
        log.version += 1
        for segment in log.segments:
            self._files.forget(segment.path)
        if log.waiting is not None:
            refuse(log.waiting, f"{log.name} was dropped")
            log.waiting = None
        return removed

    def _remove(self, directory: Path) -> None:
        sync_directory(self._directory)
        shutil.rmtree(directory)

    def show(self, log: str, group: str, offset: int | None) -> None:
        """See `Store.show`: nobody else looks into these files."""

    async def load(self, key: str) -> bytes | None:
        """See `Store.load`."""
        return self._registry.load(key)

    async def save(self, key: str, value: bytes | None, expected: bytes | None, *others: Change) -> bool:
        """See `Store.save`."""
        return await self._registry.save(key, value, expected, *others)

    async def scan(self, prefix: str) -> dict[str, bytes]:
        """See `Store.scan`."""
        return self._registry.scan(prefix)
