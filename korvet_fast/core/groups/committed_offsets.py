"""The committed offsets of a group. Commits that arrive while the store writes are written together afterwards."""

import asyncio
from collections.abc import Mapping, Sequence

from korvet_fast.core.fair_queue import BackgroundPace
from korvet_fast.core.groups.budget import OFFSET, memory_of, size_of
from korvet_fast.core.groups.collaborators import GroupCollaborators
from korvet_fast.core.groups.documents import OffsetAndMetadata, TopicPartition, offset_key, unpack_offset
from korvet_fast.core.groups.store import CoordinatorFenced, GroupStore
from korvet_fast.errors import StoreError


class CommittedOffsets:
    """`stored`: the durable offsets, by partition. `texts`: the bytes of memory that their metadata take."""

    def __init__(
        self, given: GroupCollaborators, group_id: str, store: GroupStore, packed: Mapping[TopicPartition, bytes]
    ) -> None:
        self.stored = {partition: unpack_offset(document) for partition, document in packed.items()}
        self.texts = sum(map(_memory_of_text, self.stored.values()))
        self._given = given
        self._group_id = group_id
        self._store = store
        self._next: dict[TopicPartition, OffsetAndMetadata | None] = {}
        self._waiting: list[asyncio.Future[None]] = []  # until `_next` is written
        self._writing = False
        self._failure: BaseException | None = None  # the last write's: the stored offsets are unknown since then

    @property
    def memory(self) -> int:
        """The bytes that the offsets take, with their metadata."""
        return self.texts + OFFSET * len(self.stored)

    def put(self, changes: Mapping[TopicPartition, OffsetAndMetadata | None]) -> "asyncio.Future[None]":
        """Commit offsets, or (None) remove them. The future ends as `GroupStore.write` does."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._next |= changes
        self._waiting.append(done)
        if not self._writing:
            self._writing = True
            self._given.tasks.start(self._write())
        return done

    def growth(self, changes: Mapping[TopicPartition, OffsetAndMetadata | None]) -> int:
        """Bytes of memory that these changes would take more than now."""
        more = 0
        for partition, offset in changes.items():
            before = self.stored.get(partition)
            if before is None or offset is None or offset.metadata != before.metadata:
                more += _memory_of(offset) - _memory_of(before)
        return more

    def forget(self) -> None:
        """Drop all offsets: the registry has removed them together with the group."""
        gone = list(self.stored)
        self.stored.clear()
        self.texts = 0
        for partition in gone:
            self._mirror(partition)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being written."""
        return not (self._writing or self._waiting)

    async def wait_until_idle(self) -> None:
        """Wait until each commit is durable, or has failed."""
        if not self.is_idle:
            done = self.put({})
            done.add_done_callback(_retrieve_exception)
            await asyncio.wait([done])

    def _mirror(self, partition: TopicPartition) -> None:
        mirror = self._given.store.groups
        if mirror is not None:
            offset = self.stored.get(partition)
            log = f"{partition.topic}:{partition.partition}"
            mirror.mirror_offset(log, self._group_id, offset.offset if offset is not None else None)

    async def _write(self) -> None:
        try:
            while self._waiting:
                changes, self._next = self._next, {}
                waiting, self._waiting = self._waiting, []
                await self._write_round(changes, waiting)
        finally:
            self._writing = False

    async def _write_round(
        self, changes: Mapping[TopicPartition, OffsetAndMetadata | None], waiting: Sequence["asyncio.Future[None]"]
    ) -> None:
        pace = BackgroundPace()
        try:
            if self._failure is not None:
                raise self._failure
            documents: dict[str, bytes | None] = {}
            for partition, offset in changes.items():
                documents[offset_key(self._group_id, partition)] = offset.pack() if offset is not None else None
                if pace.due():
                    await pace.turn()
            await self._store.write(documents)
        except BaseException as failure:
            self._failure = failure
            for done in waiting:
                if not done.done():
                    done.set_exception(failure)
            if not isinstance(failure, CoordinatorFenced | StoreError):
                raise
            return
        for partition, offset in changes.items():
            before = self.stored.get(partition)
            if before is None or offset is None or offset.metadata != before.metadata:
                self.texts += _memory_of_text(offset) - _memory_of_text(before)
            if offset is None:
                self.stored.pop(partition, None)
            else:
                self.stored[partition] = offset
            self._mirror(partition)
            if pace.due():
                await pace.turn()
        for done in waiting:
            if not done.done():
                done.set_result(None)


def _memory_of(offset: OffsetAndMetadata | None) -> int:
    return OFFSET + _memory_of_text(offset) if offset is not None else 0


def _memory_of_text(offset: OffsetAndMetadata | None) -> int:
    return memory_of(size_of(offset.metadata)) if offset is not None else 0


def _retrieve_exception(future: "asyncio.Future[None]") -> None:
    future.exception()  # the callers of `put` get it
