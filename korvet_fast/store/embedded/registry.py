"""Keys and values: a log of changes, and what they add up to in memory.

When most of the log is out of date, everything that holds is written into a new segment, and the log is made to
start there.
"""

import logging
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from korvet_fast._native import Column, assemble, columns, headers
from korvet_fast.core.types import Buffer
from korvet_fast.errors import CodecError, StoreError
from korvet_fast.store.embedded.commit import Commit
from korvet_fast.store.embedded.cut import Cutter
from korvet_fast.store.embedded.files import Files
from korvet_fast.store.embedded.log import Log
from korvet_fast.store.embedded.reader import Reader
from korvet_fast.store.interface import LARGE, Change, Entry

NAME = "@registry"

_GARBAGE = 1000  # changes that may always be out of date
_ROWS = 1000  # changes in one batch of a snapshot
_PAGE = 1 << 20
_LIMIT = 1 << 30  # bytes that one page may unpack to; these batches are not compressed

_Change = tuple[str, bytes | None]

_logger = logging.getLogger(__name__)


class Registry:
    """The keys of a store."""

    def __init__(self, log: Log, files: Files, commit: Commit, cutter: Cutter) -> None:
        self._log = log
        self._files = files
        self._commit = commit
        self._cutter = cutter
        self._values: dict[str, bytes] = {}
        self._changes = 0  # in the log, at least
        self._versions: Counter[str] = Counter()  # changes since the opening, by what begins their keys
        self._compacting = False

    async def open(self, reader: Reader) -> None:
        """Read the log of changes. Raises `StoreError` if it is damaged."""
        offset = self._log.start
        while offset < self._log.end:
            page = await reader.read(self._log, offset, _PAGE, self._log.end)
            for piece in page.data:
                self._replay(piece)
            offset = page.next

    def load(self, key: str) -> bytes | None:
        """See `Store.load`."""
        self._check()
        return self._values.get(key)

    def scan(self, prefix: str) -> dict[str, bytes]:
        """See `Store.scan`."""
        self._check()
        return {key: self._values[key] for key in sorted(self._values) if key.startswith(prefix)}

    def changed(self, prefix: str) -> int:
        """See `Store.changed`."""
        return self._versions[prefix]

    async def save(self, key: str, value: bytes | None, expected: bytes | None, *others: Change) -> bool:
        """See `Store.save`."""
        self._check()
        changes = (Change(key, value, expected), *others)
        if any(self._values.get(each.key) != each.expected for each in changes):
            return False
        rows = [(each.key, each.value) for each in changes if each.value != each.expected]
        if rows:
            self._append([rows])
        for row in rows:
            self._note(*row)
        self._versions[key[: key.find("/") + 1]] += 1
        await self._commit.ask(self._log)
        if not self._compacting and self._changes > 2 * len(self._values) + _GARBAGE:
            await self._compact()
        return True

    async def _compact(self) -> None:
        self._compacting = True
        try:
            self._log.roll()
            base = self._log.end
            rows = list(self._values.items())
            self._append([rows[first : first + _ROWS] for first in range(0, len(rows), _ROWS)])
            self._changes = len(rows)
            await self._commit.ask(self._log)
            async with self._commit.pause(self._log):
                await self._cutter.delete_before(self._log, base)
        except StoreError as error:  # the value saved is durable all the same
            _logger.warning("%s: not compacted: %s", NAME, error)
        finally:
            self._compacting = False

    def _check(self) -> None:
        if self._log.failed:  # what is in memory may be newer than what survives
            raise StoreError(self._log.failed)

    def _append(self, batches: Sequence[Sequence[_Change]]) -> None:
        entries = []
        offset = self._log.end
        for changes in batches:
            last = offset + len(changes) - 1
            entries.append(Entry(_pack(changes, offset), offset, last, 0))
            offset = last + 1
        self._log.append(entries, self._log.end, LARGE, self._files)

    def _note(self, key: str, value: bytes | None) -> None:
        self._changes += 1
        if value is None:
            self._values.pop(key, None)
        else:
            self._values[key] = value

    def _replay(self, page: Buffer) -> None:
        found = headers(page, verify=True)
        covered = found[-1].start + found[-1].size if found else 0
        if covered != len(page):
            raise StoreError(f"{self._log.directory} is damaged: no good batch {covered} bytes into a page")
        try:
            changes = columns(page, _LIMIT)
        except CodecError as error:
            raise StoreError(f"{self._log.directory} cannot be read: {error}") from error
        for key, value in zip(_strings(changes, "key"), _strings(changes, "value"), strict=True):
            self._note((key or b"").decode(), value)


def _pack(changes: Sequence[_Change], offset: int) -> bytearray:
    keys = [key.encode() for key, _ in changes]
    values = [value or b"" for _, value in changes]
    columns_of = {
        "timestamp": array("q", bytes(8 * len(changes))),
        "key_offsets": array("i", accumulate(map(len, keys), initial=0)),
        "key": b"".join(keys),
        "key_valid": b"\1" * len(changes),
        "value_offsets": array("i", accumulate(map(len, values), initial=0)),
        "value": b"".join(values),
        "value_valid": bytes(value is not None for _, value in changes),
    }
    return assemble(columns_of, 0, offset, -1, -1, -1)  # type: ignore[arg-type]  # arrays are buffers, from 3.12 on by name


def _strings(changes: Mapping[str, Column], name: str) -> Iterator[bytes | None]:
    data = bytes(memoryview(changes[name]))
    ends = memoryview(changes[f"{name}_offsets"])
    valid = memoryview(changes[f"{name}_valid"])
    for number, there in enumerate(valid):
        yield data[ends[number] : ends[number + 1]] if there else None
