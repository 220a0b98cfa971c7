"""Saving a partition's snapshot: when everything that the snapshot knows is durable."""

import asyncio

from korvet_fast.core.partition.collaborators import PartitionCollaborators
from korvet_fast.core.partition.leadership import Leadership, Operation
from korvet_fast.core.partition.log import PartitionLog
from korvet_fast.core.partition.snapshot import PartitionSnapshot


class SnapshotSaver:
    """`unsaved`: bytes appended since the snapshot was saved; the next leader reads them after a crash."""

    __slots__ = ("_leadership", "_log", "_saving", "_snapshot", "_store", "_tasks", "unsaved")

    def __init__(
        self, log: PartitionLog, leadership: Leadership, snapshot: PartitionSnapshot, given: PartitionCollaborators
    ) -> None:
        self.unsaved = 0
        self._log = log
        self._leadership = leadership
        self._snapshot = snapshot
        self._store = given.store
        self._tasks = given.tasks
        self._saving: asyncio.Task[None] | None = None

    @property
    def is_saved(self) -> bool:
        """Whether the registry knows the present state."""
        return self._snapshot.saved_end == self._log.last_record_end

    async def save(self) -> None:
        """Put producers and epochs into the registry, so that the next leader reads only the batches after them.

        Does nothing where this broker does not lead. Raises `StoreError`.
        """
        if self._leadership.leads:
            await self.write()

    async def write(self) -> None:
        """As `save`, also while the log is being acquired."""
        log = self._log
        end, records_end = log.end, log.last_record_end
        packed = self._snapshot.pack(records_end)
        self.unsaved = 0
        await log.high_watermark.wait()
        if end <= log.high_watermark.offset and self._leadership.may(Operation.SAVE):
            await self._snapshot.save(self._store, packed, records_end)

    def save_soon(self) -> None:
        """Save in the background, unless that is being done."""
        if self._saving is None or self._saving.done():
            self._saving = self._tasks.start(self.save())

    async def wait(self) -> None:
        """Wait until no save is under way in the background."""
        if self._saving is not None and not self._saving.done():
            await asyncio.wait([self._saving])
