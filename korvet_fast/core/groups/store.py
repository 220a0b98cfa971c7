"""Writes the documents of groups. Every write to the registry is a compare-and-set.

Where a store has files for people to read, text groups are kept there, and nothing of them in the registry
(`text_files`). A group without members may change its protocol, and then moves: it is written to where it belongs
before it is removed from where it was. A crash between the two leaves it in both, and `GroupDocuments.read` takes the
newer one: the first text document of a group has a higher generation than the group had before.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from korvet_fast.core.fair_queue import BackgroundPace
from korvet_fast.core.groups.collaborators import GroupCollaborators
from korvet_fast.core.groups.config import GroupConfig
from korvet_fast.core.groups.documents import group_key, parse_key, partition_prefix
from korvet_fast.core.groups.ownership import owner_key
from korvet_fast.core.groups.text.document import is_text
from korvet_fast.core.groups.text_files import TextGroupFiles
from korvet_fast.errors import Errors, StoreError
from korvet_fast.store.interface import Store
from korvet_fast.store.types import CompareAndSet

Documents: TypeAlias = dict[str, dict[str, bytes]]  # by group id: its keys and their values


class CoordinatorFenced(Exception):
    """Another broker has written to the group, or taken over its coordinator partition."""


def error_of(failure: CoordinatorFenced | StoreError) -> Errors:
    """The error that members get after a write failed."""
    return Errors.NOT_COORDINATOR if isinstance(failure, CoordinatorFenced) else Errors.COORDINATOR_NOT_AVAILABLE


class GroupStore:
    """The keys of one group. `known`: their values, as far as this coordinator knows."""

    __slots__ = ("_files", "_group_id", "_in_files", "_order", "_ownership", "_store", "known")

    def __init__(
        self,
        store: Store,
        ownership: Sequence[CompareAndSet],
        group_id: str,
        known: dict[str, bytes],
        files: TextGroupFiles | None = None,
    ) -> None:
        """`ownership`: compared with each write, as of when `known` was read. `files`: for a text group."""
        self._store = store
        self._ownership = ownership
        self._group_id = group_id
        self._files = files
        self._in_files = files is not None and bool(files.find(group_id))
        self._order = asyncio.Lock() if files is not None else None  # a group that moves must not be written meanwhile
        self.known = known

    async def write(self, changes: Mapping[str, bytes | None]) -> None:
        """Set keys, or (None) remove them, in one step; durable on return. No two writes of one key at a time.

        Raises `CoordinatorFenced`, or `StoreError` with the outcome unknown. After that `known` may be wrong.
        """
        if self._order is None or self._files is None:
            await self._save(changes)
            return
        async with self._order:
            document = changes.get(group_key(self._group_id))
            in_files = self._in_files if document is None else is_text(document)
            if in_files != self._in_files:
                await self._move(changes, self._files)
            elif in_files:
                await self._files.write(self._group_id, changes)
                self._note(changes)
            else:
                await self._save(changes)

    async def _move(self, changes: Mapping[str, bytes | None], files: TextGroupFiles) -> None:
        """Write the whole group to its new place, and remove it from the former one."""
        before = self.known
        after = {key: value for key, value in {**before, **changes}.items() if value is not None}
        if self._in_files:
            self.known = {}
            await self._save(after)
            await files.write(self._group_id, dict.fromkeys(before))
        else:
            await files.write(self._group_id, after)
            await self._save(dict.fromkeys(before))
            self.known = after
        self._in_files = not self._in_files

    async def _save(self, changes: Mapping[str, bytes | None]) -> None:
        if not changes:
            return
        pace, compared = BackgroundPace(), []
        for key, value in changes.items():
            compared.append(CompareAndSet(key, value, self.known.get(key)))
            if pace.due():
                await pace.turn()
        first, *others = compared
        if not await self._store.save(*first, *others, *self._ownership):
            names = " or ".join(changes)
            raise CoordinatorFenced(f"another program has written {names}, or taken over its coordinator partition")
        self._note(changes)

    def _note(self, changes: Mapping[str, bytes | None]) -> None:
        for key, value in changes.items():
            if value is None:
                self.known.pop(key, None)
            else:
                self.known[key] = value


class GroupDocuments:
    """The documents of all groups, wherever they are kept."""

    def __init__(self, given: GroupCollaborators, config: GroupConfig) -> None:
        self._store = given.store
        files = given.store.plain_files
        self._files = None if files is None else TextGroupFiles(files, given, config)

    async def open(self) -> None:
        """Read the files, once. Raises `StoreError`."""
        if self._files is not None:
            await self._files.open()

    def open_store(self, group_id: str, known: dict[str, bytes], ownership: Sequence[CompareAndSet]) -> GroupStore:
        """The writer of a group's keys. `known`: their values."""
        return GroupStore(self._store, ownership, group_id, known, self._files)

    async def read(self, partition: int) -> Documents:
        """The documents of a coordinator partition. Raises `StoreError`."""
        documents: Documents = {}
        found = await self._store.scan(partition_prefix(partition))
        found.pop(owner_key(partition), None)
        for key, document in found.items():
            documents.setdefault(parse_key(key)[0], {})[key] = document
        if self._files is not None:
            await self._read_files(partition, documents, self._files)
        return documents

    async def _read_files(self, partition: int, documents: Documents, files: TextGroupFiles) -> None:
        """Add the text groups, and finish the moves that a crash interrupted."""
        for group_id, found in documents.items():
            document = found.get(group_key(group_id))
            if document is not None and is_text(document):  # a document of a version without these files
                await files.write(group_id, found)
        for group_id in files.in_partition(partition):
            moved, written = documents.get(group_id, {}), files.find(group_id)
            if _generation(group_id, moved) > _generation(group_id, written) or _is_kafkas(group_id, moved, written):
                await files.write(group_id, dict.fromkeys(written))
                continue
            if moved:
                first, *others = (CompareAndSet(key, None, value) for key, value in moved.items())
                await self._store.save(*first, *others)
            documents[group_id] = written


def _generation(group_id: str, documents: Mapping[str, bytes]) -> int:
    document = documents.get(group_key(group_id))
    return -1 if document is None else int(json.loads(document)["generation"])


def _is_kafkas(group_id: str, moved: Mapping[str, bytes], written: Mapping[str, bytes]) -> bool:
    """Whether a group that is in both places, with one generation, was on its way out of the files."""
    document = moved.get(group_key(group_id))
    same = _generation(group_id, moved) == _generation(group_id, written)
    return document is not None and not is_text(document) and same
