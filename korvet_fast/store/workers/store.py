"""The embedded store as one of several workers over a directory has it: a `SharedStore`.

data/.lock              names the parent; the directory is locked for it and its workers, one family at a time
data/@workers/registry  the Unix socket of the worker that has the registry (key_server.py)

Who is alive, and who has the registry, is told by locks in a file that the workers inherit from the parent (locks.py).
A log is opened when this worker acquires it, as after a crash, and closed when another one asks for it. Everything else
is the embedded store's, and so are all files of logs.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from korvet_fast.errors import Errors, KorvetError, StoreError
from korvet_fast.store.embedded.lock import Lock
from korvet_fast.store.embedded.log import Log
from korvet_fast.store.embedded.names import directory_name
from korvet_fast.store.embedded.recovery import view_log
from korvet_fast.store.embedded.removals import Removals
from korvet_fast.store.embedded.store import EmbeddedStore
from korvet_fast.store.embedded.unreadable import explain
from korvet_fast.store.interface import OpenedLog
from korvet_fast.store.types import Bounds, CompareAndSet, LeadershipGrant, LogFormat, ReadResult
from korvet_fast.store.workers.keys import WorkerKeys
from korvet_fast.store.workers.locks import ByteLocks
from korvet_fast.store.workers.log_files import LogFiles
from korvet_fast.store.workers.owned_log import OwnedLog
from korvet_fast.store.workers.owners import Owners

_CLOSED = "the store is closed"


class WorkerLock(Lock):
    """The byte of one worker in the file `locks`, in place of the lock of the directory.

    Also the `Processes` of the store: a name is the byte's number and the token of who took it.
    """

    def __init__(self, directory: Path, number: int, locks: Path) -> None:
        super().__init__(directory)
        self._locks = locks
        self.token = secrets.token_hex(8)
        self.own = f"{number}-{self.token}"
        self._number = number
        self.bytes: ByteLocks

    def take(self) -> None:
        """See `Lock.take`."""
        self.bytes = ByteLocks(self._locks)
        if not self.bytes.take(self._number, self.token):
            self.bytes.close()
            raise StoreError(f"{self._path.parent}: worker {self._number} is running already")

    def release(self) -> None:
        """See `Lock.release`."""
        self.bytes.close()

    def has_ended(self, name: str) -> bool:
        """See `Processes.has_ended`; False for a name that is none of a worker."""
        number, _, token = name.partition("-")
        # The kernel does not tell a process of its own lock.
        return bool(number.isdecimal() and token) and name != self.own and not self.bytes.has(int(number), token)


class WorkerStore(EmbeddedStore):
    """The store of the worker `number`, from 1 on. Several may be open over one directory, each in its process.

    `locks`: the file of their locks, the same for all of them.
    """

    def __init__(self, directory: Path, number: int, locks: Path, *, index_interval_bytes: int = 4096) -> None:
        """See `EmbeddedStore`."""
        super().__init__(directory, index_interval_bytes=index_interval_bytes)
        self._number = number
        self._lock: WorkerLock = WorkerLock(directory, number, locks)
        self.plain_files = None  # several programs would write them
        self.shared = self
        self.processes = self._lock
        self._owning = Removals()  # one change of a log's owner at a time

    async def _recover(self) -> None:
        lock = self._lock
        self._log_files = LogFiles(
            self._given, self._reader, self._readers, self._writers, self._commit, self._removals
        )
        open_registry = partial(self._log_files.open_registry, self._directory, self._retention)
        place = self._directory / "@workers"
        self._keys = WorkerKeys(place, self._number, lock.bytes, open_registry, self._give_up)
        self._resources.callback(self._keys.abort)
        self._owners = Owners(self._keys, lock.bytes, self._number, lock.token)
        await self._keys.open()

    async def close(self) -> None:
        """See `Store.close`. Raises `StoreError` if a log has failed."""
        self._ready = False
        try:
            owned = [log for log in self._logs.values() if isinstance(log, OwnedLog) and log.owned]
            failed = [f"{log.name}: {log.failed}" for log in owned if log.failed]
            await asyncio.gather(*map(self._let_go, owned))
            await self._log_files.wait()
            await self._keys.close()
            if failed:
                raise StoreError("; ".join(failed))
        finally:
            self._release()

    # -- owning logs -------------------------------------------------------------------------------------------------

    def declare(self, log: str, log_format: LogFormat) -> None:
        """See `SharedStore.declare`: there is one format."""

    async def acquire(
        self, log: str, log_format: LogFormat, *, epoch: int, floor: int, durable: int = 0
    ) -> LeadershipGrant:
        """See `SharedStore.acquire`, but for `floor`: files have no gaps, and the log goes on where its records end."""
        async with self._owning.lock(log):
            state = self._find_state(log)
            granted = await self._own(state, epoch)
            return LeadershipGrant(state.bounds, granted, state.end)

    async def _own(self, log: OwnedLog, epoch: int) -> int:
        """Become the owner, and open the files; returns the epoch. Raises `StoreError`."""
        if log.owned:
            await self._let_go(log)
        granted = await self._owners.acquire(log.name, epoch)
        found = await self._log_files.open(log.name, log.directory)
        if not self._ready:
            raise StoreError(_CLOSED)  # this worker's byte is free, or soon will be
        log.reset_owned(found)
        return granted

    async def _give_up(self, log: str) -> None:
        """Another worker wants the log. Raises `StoreError`."""
        if self._owning.under_way(log):
            return  # this worker is about to own it, or to give it up: the other one asks again
        async with self._owning.lock(log):
            state = self._logs.get(log)
            if isinstance(state, OwnedLog) and state.owned:
                await self._let_go(state, given_up=True)
            await self._owners.release(log)

    async def _let_go(self, log: OwnedLog, *, given_up: bool = False) -> None:
        """Take no appends any more, wait for the flushes, and close the files."""
        log.owned, log.fenced, log.given_up = False, True, given_up
        async with self._removals.lock(log.name):
            await self._log_files.close(log)
            log.reset_unowned(fenced=True)

    async def is_leader(self, log: str) -> bool:
        """See `SharedStore.is_leader`: as long as this worker lives, nobody takes a log that it does not give up."""
        state = self._logs.get(log)
        return isinstance(state, OwnedLog) and state.owned

    def notify(
        self, log: str, end: int, on_append: Callable[[], None], wanted: Callable[[], bool] | None = None
    ) -> Callable[[], None]:
        """See `SharedStore.notify`: nobody else appends to a log of this worker."""
        return lambda: None

    def on_data_loss(self, lost: Callable[[str], None]) -> None:
        """See `SharedStore.on_data_loss`: what was answered is in the files, whichever worker ends."""

    # -- records -----------------------------------------------------------------------------------------------------

    def _find_state(self, log: str) -> OwnedLog:
        state = self._logs.get(log)
        if state is None:
            if not self._ready:
                raise StoreError(_CLOSED)
            state = self._logs[log] = made = OwnedLog(log, self._directory / directory_name(log), self._given)
            made.on_growth = self._log_files.note_growth
            made.reset_unowned(fenced=False)
        assert isinstance(state, OwnedLog)
        return state

    def open_log(self, log: str) -> OpenedLog:
        """See `LogStore.open_log`."""
        state = self._find_state(log)
        return OpenedLog(state.append, partial(self._read, state))

    async def _read(self, log: OwnedLog, start: int, max_bytes: int, limit: int, *, copy: bool = False) -> ReadResult:
        if log.owned:
            return await self._reader.read(log, start, max_bytes, limit, copy=copy)
        if log.fenced:
            return ReadResult([], start)  # its owner has the records
        async with self._viewed(log.name) as view:
            return await self._reader.read(view, start, max_bytes, limit, copy=copy)

    async def bounds(self, log: str) -> Bounds:
        """See `LogStore.bounds`."""
        async with self._viewed(log) as view:
            return view.bounds

    async def find_time(self, log: str, ms: int, start: int = 0) -> ReadResult:
        """See `LogStore.find_time`."""
        async with self._viewed(log) as view:
            return await self._reader.find_time(view, ms, start)

    @asynccontextmanager
    async def _viewed(self, name: str) -> AsyncIterator[Log]:
        """A log, to look at: the one that this worker owns, else as it lies on the disk at this moment."""
        state = self._logs.get(name)
        if isinstance(state, OwnedLog) and state.owned:
            yield state
            return
        directory = self._directory / directory_name(name)
        try:
            view = await asyncio.get_running_loop().run_in_executor(
                self._readers, view_log, name, directory, self._given
            )
        except OSError as error:
            raise StoreError(explain(error, directory)) from error
        try:
            yield view
        finally:
            self._log_files.forget(view)

    def _find(self, log: str, offset: int) -> Log | None:
        state = self._find_state(log)
        if not state.owned and state.directory.exists():
            raise KorvetError(Errors.NOT_LEADER_OR_FOLLOWER, f"{log} is not this worker's: acquire it first")
        return super()._find(log, offset)

    async def drop(self, log: str) -> None:
        """See `LogStore.drop`."""
        async with self._owning.lock(log):
            state = self._find_state(log)
            if not state.owned:
                await self._own(state, 0)
            await super().drop(log)
            await self._owners.forget(log)

    async def close_idle(self, wanted: Callable[[str], bool] | None = None) -> None:
        """See `LogStore.close_idle`. A log that this worker owns is kept: who drops it will ask for it first."""
        await super().close_idle(wanted)
        if wanted is None:
            return
        for name, log in list(self._logs.items()):
            foreign = isinstance(log, OwnedLog) and not log.owned and not self._owning.under_way(name)
            if foreign and not wanted(name):
                del self._logs[name]

    # -- keys --------------------------------------------------------------------------------------------------------

    async def load(self, key: str) -> bytes | None:
        """See `KeyStore.load`."""
        return await self._keys.load(key)

    async def save(self, key: str, value: bytes | None, expected: bytes | None, *others: CompareAndSet) -> bool:
        """See `KeyStore.save`."""
        return await self._keys.save(CompareAndSet(key, value, expected), *others)

    async def scan(self, prefix: str) -> dict[str, bytes]:
        """See `KeyStore.scan`."""
        return await self._keys.scan(prefix)

    async def version(self, prefix: str) -> int:
        """See `SharedStore.version`."""
        return await self._keys.version(prefix)
