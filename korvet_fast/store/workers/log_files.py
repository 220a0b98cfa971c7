"""The files of logs that change hands: opened as after a crash, closed so that the next owner has nothing to read."""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import Executor
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from korvet_fast.errors import StoreError
from korvet_fast.store.embedded.group_commit import GroupCommit, write_index
from korvet_fast.store.embedded.index import Index
from korvet_fast.store.embedded.log import Log, LogCollaborators
from korvet_fast.store.embedded.reader import Reader
from korvet_fast.store.embedded.recovery import find_written, recover_log, tell_of_lost_registry
from korvet_fast.store.embedded.registry import NAME, Registry
from korvet_fast.store.embedded.removals import Removals
from korvet_fast.store.embedded.retention import Retention
from korvet_fast.store.embedded.unreadable import explain
from korvet_fast.store.workers.owned_log import OwnedLog


class LogFiles:
    """Opens and closes the files of logs, and of the registry, with the parts of one store."""

    def __init__(
        self,
        given: LogCollaborators,
        reader: Reader,
        readers: Executor,
        writers: Executor,
        commit: GroupCommit,
        removals: Removals,
    ) -> None:
        self._given = given
        self._reader = reader
        self._readers = readers
        self._writers = writers
        self._commit = commit
        self._removals = removals
        self._noting: set[asyncio.Task[None]] = set()  # indexes that are being written

    async def open(self, name: str, directory: Path) -> Log | None:
        """A log as it lies there, ready to use; None if there is none. Raises `StoreError`."""
        loop = asyncio.get_running_loop()
        try:
            if not await loop.run_in_executor(self._readers, directory.exists):
                return None
            recovering = loop.run_in_executor(self._readers, recover_log, name, directory, self._given)
            try:
                await asyncio.wait([recovering])
            except asyncio.CancelledError:
                await asyncio.wait([recovering])  # it may cut the log: nobody else may have it before that
                recovering.exception()
                raise
            found = recovering.result().log
        except OSError as error:
            raise StoreError(explain(error, directory)) from error
        self.forget(found)  # another worker may have made them anew since they were open here
        return found

    async def close(self, log: Log) -> None:
        """Flush a log that takes no appends, and leave an index that vouches for all of it."""
        if (log.dirty or log.waiting) and not log.failed:
            with suppress(StoreError):  # the log tells why; the next owner checks what is there
                await self._commit.ask(log)
        await self._commit.wait_until_idle(log)
        if log.exists and not log.failed:
            await asyncio.get_running_loop().run_in_executor(self._writers, write_index, log.segments[-1])
        self.forget(log)

    def forget(self, log: Log) -> None:
        """Close what is open of the log's files."""
        segments = log.segments
        self._reader.forget(segments)
        for segment in segments:
            self._given.files.forget(segment.path)

    @asynccontextmanager
    async def open_registry(self, directory: Path, retention: Retention) -> AsyncIterator[Registry]:
        """Have the registry of the store in `directory`. Cancelled inside, it is left as a crash leaves it.

        Raises `StoreError`.
        """
        place = directory / NAME
        changes = await self.open(NAME, place) or Log.create(NAME, place, self._given)
        if changes.start == changes.end:
            written = await asyncio.get_running_loop().run_in_executor(self._readers, find_written, directory)
            tell_of_lost_registry(directory, written)
        registry = Registry(changes, self._commit, retention)
        await registry.open(self._reader)
        yield registry
        await registry.close()
        await self.close(changes)

    def note_growth(self, log: OwnedLog) -> None:
        """A log has grown: write its index in the background, so that the next owner reads what comes after."""
        task = asyncio.get_running_loop().create_task(self._write_index(log))
        self._noting.add(task)
        task.add_done_callback(self._noting.discard)

    async def _write_index(self, log: OwnedLog) -> None:
        segment, version = log.segments[-1], log.version
        if segment.index is None:
            return
        summary, index = segment.summary, Index.unpack(segment.index.pack())
        with suppress(StoreError, OSError):  # the log tells of a flush that failed; without an index more is read
            await self._commit.ask(log)
            async with self._removals.lock(log.name):
                if log.version == version and log.owned and segment is log.segments[-1]:
                    loop = asyncio.get_running_loop()
                    await loop.run_in_executor(self._writers, index.write, segment.index_path, summary)

    async def wait(self) -> None:
        """Wait for the indexes that are being written."""
        if self._noting:
            await asyncio.wait(self._noting)
