"""Keys and values: a log of changes, and the present values in memory.

When most of the log's bytes are out of date, everything that holds is written into a new segment, and the log is made
to start there. That happens in the background, in slices, each flushed before the next: saves go on in between.
"""

import asyncio
import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from korvet_fast._native import batch_headers
from korvet_fast.errors import CodecError, StoreError
from korvet_fast.store.embedded.group_commit import GroupCommit
from korvet_fast.store.embedded.log import Log
from korvet_fast.store.embedded.reader import DamagedLog, Reader
from korvet_fast.store.embedded.retention import Retention
from korvet_fast.store.embedded.segment import covered_size
from korvet_fast.store.key_changes import KeyChange, pack_changes, unpack_changes
from korvet_fast.store.types import LARGE, CompareAndSet, RecordBatch
from korvet_fast.types import Buffer

NAME = "@registry"

_GARBAGE = 128 << 10  # bytes that may always be out of date
_SLICE = 256 << 10  # bytes of values written again at once; a larger value is a slice of its own
_ROWS = 1000  # changes in one slice
_ROW = 16  # bytes that a change takes besides its key and its value, about
_PAGE = 1 << 20

_logger = logging.getLogger(__name__)


class Registry:
    """The keys of a store. `broken` is set once a write has failed so that nothing can be asked any more."""

    def __init__(self, log: Log, commit: GroupCommit, retention: Retention) -> None:
        self._log = log
        self._commit = commit
        self._retention = retention
        self._areas: dict[str, dict[str, bytes]] = {}  # the values, by the area and the key
        self._live = 0  # bytes that the values would take in a log of nothing else, about
        self._compacting: asyncio.Task[None] | None = None
        self._closed = False
        self.broken = asyncio.Event()

    async def open(self, reader: Reader) -> None:
        """Read the log of changes. Raises `StoreError` if it is damaged."""
        offset = self._log.start
        while offset < self._log.end:
            try:
                page = await reader.read(self._log, offset, _PAGE, self._log.end, copy=True)
            except DamagedLog as error:
                raise self._explain_damage(error.detail) from error
            for piece in page.data:
                self._replay(piece)
            offset = page.next

    def load(self, key: str) -> bytes | None:
        """See `KeyStore.load`."""
        self._check()
        return self._get(key)

    def scan(self, prefix: str) -> dict[str, bytes]:
        """See `KeyStore.scan`."""
        self._check()
        areas = [area_of(prefix)] if "/" in prefix else list(self._areas)  # a look at one area does not walk the others
        found = {
            key: value for area in areas for key, value in self._areas.get(area, {}).items() if key.startswith(prefix)
        }
        return dict(sorted(found.items()))

    async def save(self, key: str, value: bytes | None, expected: bytes | None, *others: CompareAndSet) -> bool:
        """See `KeyStore.save`."""
        self._check()
        changes = (CompareAndSet(key, value, expected), *others)
        if any(self._get(each.key) != each.expected for each in changes):
            return False
        rows = [(each.key, each.value) for each in changes if each.value != each.expected]
        if rows:
            self._append(rows)
        for row in rows:
            self._note(*row)
        await self._commit.ask(self._log)
        if self._compacting is None and not self._closed and self._is_wasteful():
            self._compacting = asyncio.create_task(self._compact())
        return True

    async def close(self) -> None:
        """Compact no more; a compaction under way ends after its slice."""
        self._closed = True
        if self._compacting is not None:
            await asyncio.wait([self._compacting])

    def _is_wasteful(self) -> bool:
        return sum(segment.size for segment in self._log.segments) > 2 * self._live + _GARBAGE

    async def _compact(self) -> None:
        try:
            if self._log.segments[-1].size:
                self._log.roll()
            base = self._log.end
            keys = iter([key for values in self._areas.values() for key in values])
            while rows := self._take_slice(keys):
                if self._closed or self._commit.closed:
                    return  # the values written again hold, and the log is whole
                self._append(rows)
                await self._commit.ask(self._log)
            await self._retention.delete_records(self._log, base)
        except StoreError as error:  # the values are durable all the same
            _logger.warning("%s: not compacted: %s", NAME, error)
        finally:
            self._compacting = None

    def _take_slice(self, keys: Iterator[str]) -> list[KeyChange]:
        """The next of these keys with the values they have now.

        Values that are set later come behind them in the log.
        """
        rows: list[KeyChange] = []
        size = 0
        while size < _SLICE and len(rows) < _ROWS and (key := next(keys, None)) is not None:
            if (value := self._get(key)) is not None:
                rows.append((key, value))
                size += len(value)
        return rows

    def _check(self) -> None:
        if self._log.failed:  # the values in memory may be newer than those that survive
            self.broken.set()
            raise StoreError(self._log.failed, logged=True)

    def _append(self, changes: Sequence[KeyChange]) -> None:
        first = self._log.end
        entry = RecordBatch(pack_changes(changes, first), first, first + len(changes) - 1, 0)
        self._log.write([entry], first, LARGE)

    def _get(self, key: str) -> bytes | None:
        return self._areas.get(area_of(key), {}).get(key)

    def _note(self, key: str, value: bytes | None) -> None:
        values = self._areas.setdefault(area_of(key), {})
        before = values.get(key)
        if before is not None:
            self._live -= len(key) + len(before) + _ROW
        if value is None:
            values.pop(key, None)
        else:
            values[key] = value
            self._live += len(key) + len(value) + _ROW

    def _replay(self, page: Buffer) -> None:
        found = batch_headers(page, verify=True)
        if covered_size(found) != len(page):
            raise self._explain_damage(f"{self._log.directory}: a batch is not as it was written, the log is damaged")
        try:
            for key, value in unpack_changes(page):
                self._note(key, value)
        except CodecError as error:
            raise StoreError(f"{self._log.directory} cannot be read: {error}") from error

    def _explain_damage(self, what: str) -> StoreError:
        place = self._log.directory
        return StoreError(
            f"{what}. Stop the broker and copy {place} back from a copy of the data directory; or, to go on with what "
            f"stands before the damage, delete {place.parent}/checkpoint and {place}/*.index"
        )


def area_of(key: str) -> str:
    """What a key begins with, up to its first "/"; "" where it has none."""
    return key.partition("/")[0] if "/" in key else ""


def read_key(directory: Path, key: str) -> bytes | None:
    """A key's value, as `read_keys`; None if it cannot be told."""
    return read_keys(directory, key).get(key)


def read_keys(directory: Path, prefix: str) -> dict[str, bytes]:
    """The keys with a prefix of the store in this directory, which another process may be writing.

    For tools: changes nothing, and reads the undamaged part of the files.
    """
    found: dict[str, bytes] = {}
    registry = directory / NAME
    try:
        names = sorted(name for name in os.listdir(registry) if name.endswith(".log"))  # noqa: PTH208  (names are enough)
    except OSError:
        return {}  # there is none, or it cannot be read: `find_unreadable` tells
    for name in names:
        try:
            page = (registry / name).read_bytes()
        except OSError:
            continue  # compacted meanwhile
        batches = batch_headers(page, verify=True)
        if not batches:
            continue
        for key, value in unpack_changes(page[: batches[-1].start + batches[-1].size]):
            if value is None:
                found.pop(key, None)
            elif key.startswith(prefix):
                found[key] = value
    return found
