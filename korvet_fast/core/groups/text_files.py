"""Text groups in `groups.json` and `offsets.json`, where a store has files that people can read.

These files are the only place where such a group is stored: the registry has nothing of it. What `groups.json` does not
name is no text group, so offsets of another name in `offsets.json` mean nothing. Therefore the files are written in an
order: offsets come before the group that they belong to, and go after it. A crash between two files leaves the group
as it was before or as it is after.

One round of writes at a time; changes that arrive meanwhile are part of the next one. Each round writes whole files, so
rounds of large files have time between them: many changes share a write. Only groups that changed are encoded.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any, Final, TypeAlias

from korvet_fast.core.fair_queue import BackgroundPace
from korvet_fast.core.groups.collaborators import GroupCollaborators
from korvet_fast.core.groups.config import GroupConfig
from korvet_fast.core.groups.documents import (
    OffsetAndMetadata,
    TopicPartition,
    group_key,
    offset_key,
    parse_key,
    partition_for,
    unpack_group,
    unpack_offset,
)
from korvet_fast.core.groups.text.document import TYPE
from korvet_fast.errors import StoreError
from korvet_fast.store.interface import PlainFiles

GROUPS: Final = "groups.json"
OFFSETS: Final = "offsets.json"
RATE: Final = 32 << 20  # bytes a second of both files, about
_SMALL: Final = 32 << 10  # bytes of files that are written at once; at this rate, a millisecond
_MANY: Final = 500  # lines between two looks at the clock

Changes: TypeAlias = Mapping[str, bytes | None]  # by key, as in the registry; None removes


class _JsonFile:
    """One file: a JSON object with a line, or several, for each group."""

    def __init__(self, files: PlainFiles, name: str) -> None:
        self.name = name
        # By group id, each with its name: the documents on the disk, as far as is known.
        self.lines: dict[str, bytes] = {}
        self.size = 0  # bytes, as written last
        self._files = files
        self._uncertain = False  # a write failed: the file may hold the new content all the same

    async def read(self) -> dict[str, Any]:
        """Read the file's content. Raises `StoreError`."""
        data = await self._files.read(self.name)
        if data is None:
            return {}
        try:
            values = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise StoreError(_damaged(self.name, str(error))) from error
        if not isinstance(values, dict):
            raise StoreError(_damaged(self.name, "it is not a JSON object"))
        return values

    async def write(self, changes: Mapping[str, bytes | None]) -> None:
        """Change the lines of these groups, or (None) remove them; durable on return. Raises `StoreError`."""
        changed = {group_id: line for group_id, line in changes.items() if line != self.lines.get(group_id)}
        if not changed and not self._uncertain:
            return
        self._uncertain = True
        lines = {group_id: line for group_id, line in (self.lines | changed).items() if line is not None}
        data = await _join(list(lines.values()))
        self.size = len(data)
        await self._files.write(self.name, data)
        self.lines, self._uncertain = lines, False


class TextGroupFiles:
    """The documents of text groups. `open` comes first."""

    def __init__(self, files: PlainFiles, given: GroupCollaborators, config: GroupConfig) -> None:
        self._groups, self._offsets = _JsonFile(files, GROUPS), _JsonFile(files, OFFSETS)
        self._given = given
        self._config = config
        self._documents: dict[int, dict[str, dict[str, bytes]]] = {}  # by coordinator partition, group id and key
        self._next: dict[str, dict[str, bytes | None]] = {}  # changes by group id
        self._waiting: list[asyncio.Future[None]] = []  # until `_next` is written
        # Groups whose offsets may be in the file without the group: the next round looks after them.
        self._unsettled: set[str] = set()
        self._next_round = 0.0  # monotonic time: until then, changes wait for one another
        self._writing = self._opened = False

    async def open(self) -> None:
        """Read the files, once. Raises `StoreError`."""
        if self._opened:
            return
        groups, offsets = await self._groups.read(), await self._offsets.read()
        for name, values in ((GROUPS, groups), (OFFSETS, {each: offsets[each] for each in offsets if each in groups})):
            try:
                for group_id, value in values.items():
                    self._set_documents(group_id, self._unpack(name, group_id, value))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise StoreError(_damaged(name, f"its entry {group_id!r} is not that of a group")) from error
        self._groups.lines = {group_id: _group_line(group_id, self.find(group_id)) for group_id in groups}
        self._offsets.lines = {group_id: await _offset_lines(group_id, self.find(group_id)) for group_id in offsets}
        self._unsettled.update(offsets.keys() - groups.keys())
        self._opened = True

    def _unpack(self, name: str, group_id: str, value: dict[str, Any]) -> dict[str, bytes]:
        """The documents in a value of a file. Raises the errors that `open` expects of a value that is no group's."""
        if name == GROUPS:
            document = json.dumps({"type": TYPE} | value).encode()
            unpack_group(document, self._config)
            return {group_key(group_id): document}
        found = {}
        for topic, partitions in value.items():
            for index, offset in partitions.items():
                document = json.dumps(offset).encode()
                _check_offset(unpack_offset(document))
                found[offset_key(group_id, TopicPartition(topic, int(index)))] = document
        return found

    def in_partition(self, partition: int) -> Sequence[str]:
        """The ids of the text groups of a coordinator partition."""
        return list(self._documents.get(partition, ()))

    def find(self, group_id: str) -> dict[str, bytes]:
        """A copy of a group's documents, by key; empty if it is no text group."""
        return dict(self._documents.get(partition_for(group_id), {}).get(group_id, {}))

    async def write(self, group_id: str, changes: Changes) -> None:
        """Change documents of one group, durably on return; without its own document the group is gone.

        Raises `StoreError` with the outcome unknown: the files may hold these changes until the next write.
        """
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._next.setdefault(group_id, {}).update(changes)
        self._waiting.append(done)
        if not self._writing:
            self._writing = True
            self._given.tasks.start(self._write_rounds())
        await done

    async def _write_rounds(self) -> None:
        try:
            while self._waiting:
                await self._gather_changes()
                changes, self._next = self._next, {}
                waiting, self._waiting = self._waiting, []
                failure: BaseException | None = None
                try:
                    await self._write_round(changes)
                except BaseException as error:  # noqa: BLE001  those who wait are told, whatever it was
                    failure = error
                for done in waiting:
                    if done.done():
                        continue
                    if failure is None:
                        done.set_result(None)
                    else:
                        done.set_exception(failure)
                if failure is not None and not isinstance(failure, StoreError):
                    raise failure
        finally:
            self._writing = False

    async def _gather_changes(self) -> None:
        """Large files are not written for each change: those of a moment share a write."""
        now, size = self._given.clock.monotonic(), self._groups.size + self._offsets.size
        if size > _SMALL and now < self._next_round:
            await self._given.clock.sleep(self._next_round - now)
        self._next_round = self._given.clock.monotonic() + size / RATE

    async def _write_round(self, changes: Mapping[str, Changes]) -> None:
        after = {group_id: self._merge(group_id, each) for group_id, each in changes.items()}
        kept = {group_id: found for group_id, found in after.items() if found}
        gone = dict.fromkeys(after.keys() - kept.keys())
        # Offsets of groups that were gone before are not kept: a group of that name may begin in this round.
        offsets: dict[str, bytes | None] = dict.fromkeys(self._unsettled - self._groups.lines.keys())
        self._unsettled.update(after)
        for group_id, found in kept.items():
            offsets[group_id] = await _offset_lines(group_id, found)
        await self._offsets.write(offsets)
        await self._groups.write({group_id: _group_line(group_id, found) for group_id, found in kept.items()} | gone)
        await self._offsets.write(gone)
        self._unsettled.clear()
        for group_id in gone:
            self._documents.get(partition_for(group_id), {}).pop(group_id, None)
        for group_id, found in kept.items():
            self._set_documents(group_id, found, anew=True)

    def _merge(self, group_id: str, changes: Changes) -> dict[str, bytes]:
        """A group's documents after these changes; empty if its own is not among them."""
        changed: dict[str, bytes | None] = {**self.find(group_id), **changes}
        found = {key: document for key, document in changed.items() if document is not None}
        return found if group_key(group_id) in found else {}

    def _set_documents(self, group_id: str, documents: dict[str, bytes], *, anew: bool = False) -> None:
        groups = self._documents.setdefault(partition_for(group_id), {})
        groups[group_id] = documents if anew else groups.get(group_id, {}) | documents


def _group_line(group_id: str, documents: Mapping[str, bytes]) -> bytes:
    return _name(group_id) + documents[group_key(group_id)]


def _name(group_id: str) -> bytes:
    return json.dumps(group_id).encode() + b": "


async def _offset_lines(group_id: str, documents: Mapping[str, bytes]) -> bytes:
    """The offsets of a group by topic and partition, a line for each."""
    pace = BackgroundPace()
    topics: dict[str, list[tuple[int, bytes]]] = {}
    for key, document in documents.items():
        _, partition = parse_key(key)
        if partition is not None:
            topics.setdefault(partition.topic, []).append((partition.partition, document))
        if pace.due():
            await pace.turn()
    parts = []
    for topic, rows in sorted(topics.items()):
        lines = [b'  "%d": %s' % row for row in sorted(rows)]
        parts.append(b' "%s": {\n%s\n }' % (topic.encode(), b",\n".join(lines)))  # its name needs no escapes
    return _name(group_id) + (b"{\n" + b",\n".join(parts) + b"\n}" if parts else b"{}")


async def _join(lines: Sequence[bytes]) -> bytes:
    """The content of a file. Others have their turn meanwhile."""
    pace, content = BackgroundPace(), BytesIO()  # unlike a bytearray, it gives its bytes away without a copy
    content.write(b"{")
    for start in range(0, len(lines), _MANY):
        content.write((b",\n" if start else b"\n") + b",\n".join(lines[start : start + _MANY]))
        if pace.due():
            await pace.turn()
    content.write(b"\n}\n")
    return content.getvalue()


def _check_offset(committed: OffsetAndMetadata) -> None:
    """Raises `TypeError` where a person has written a word, or a fraction, for a number."""
    numbers = (committed.offset, committed.leader_epoch, committed.committed_at, committed.expires_at)
    if {type(number) for number in numbers} != {int} or type(committed.metadata) is not str:
        raise TypeError


def _damaged(name: str, why: str) -> str:
    return (
        f"{name} in the data directory is not as this broker wrote it: {why}. Copy it back; or move {GROUPS} and "
        f"{OFFSETS} away, and the groups of the text protocol begin anew"
    )
