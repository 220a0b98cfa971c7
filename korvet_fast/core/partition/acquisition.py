"""Acquiring a partition's log: this finds the end of the log, its producers' last batches, and its leader epochs.

An offset that was acknowledged is never used again: the next append goes above it, even if the record is lost.
"""

import asyncio

from korvet_fast.core.partition.collaborators import PartitionCollaborators
from korvet_fast.core.partition.leadership import Leadership
from korvet_fast.core.partition.log import PartitionLog
from korvet_fast.core.partition.snapshot import PartitionSnapshot
from korvet_fast.core.partition.snapshot_saver import SnapshotSaver
from korvet_fast.errors import StoreError, TooFewCopies
from korvet_fast.store.types import LeadershipGrant

_NEVER = -1  # in place of a store generation


class LogAcquisition:
    """Acquires the log for the first time (`acquire`), and again when its end is uncertain (`recover`)."""

    __slots__ = (
        "_acquired_in",
        "_clock",
        "_examined_in",
        "_generation",
        "_knows_records",
        "_leadership",
        "_log",
        "_losses",
        "_metadata",
        "_saver",
        "_snapshot",
        "_store",
    )

    def __init__(
        self,
        log: PartitionLog,
        leadership: Leadership,
        snapshot: PartitionSnapshot,
        saver: SnapshotSaver,
        given: PartitionCollaborators,
    ) -> None:
        self._log = log
        self._leadership = leadership
        self._snapshot = snapshot
        self._saver = saver
        self._store = given.store
        self._clock = given.clock
        self._generation = given.generation
        self._metadata = given.metadata
        self._losses = given.losses
        self._acquired_in = _NEVER  # the store generation in which this broker acquired the log
        self._examined_in = _NEVER  # the store generation in which this broker last read the bounds of the log
        self._knows_records = False  # the snapshot has the producers and epochs of all records

    @property
    def is_history_unknown(self) -> bool:
        """Whether the store's history has changed since this broker read the bounds of the log."""
        return self._examined_in not in (_NEVER, self._generation.number)

    def forget(self) -> None:
        """Forget the acquisition: `recover` will acquire the log again."""
        self._acquired_in = self._examined_in = _NEVER
        self._knows_records = False

    async def acquire(self, saved: bytes | None) -> None:
        """Acquire the log: the store refuses appends of other programs from now on. Raises `StoreError`.

        `saved`: the snapshot in the registry; None: there is none.
        """
        log, stored, number = self._log, self._log.acknowledged_end, self._generation.number
        self._snapshot.load(saved, self._clock.monotonic())
        known = self._snapshot.saved_end
        # All records that the saved snapshot covers were durable when it was saved.
        granted = await self._acquire_log(max(log.high_watermark.stored, known), durable=known)
        await self._begin(granted, max(stored, known), known)
        self._acquired_in = number

    async def _acquire_log(self, floor: int, durable: int) -> LeadershipGrant:
        log, shared = self._log, self._store.shared
        self._acquired_in = _NEVER
        log.opened = self._store.open_log(log.name)
        if shared is None:  # no other program can acquire the log: epochs count the starts of the broker
            bounds = await self._store.bounds(log.name)
            return LeadershipGrant(bounds, max(self._generation.lowest_epoch, 0), bounds.end)
        epoch = max(self._generation.lowest_epoch, self._leadership.epoch + 1, log.epochs.last + 1)
        durable = max(durable, log.high_watermark.offset)
        return await shared.acquire(log.name, log.config.log_format, epoch=epoch, floor=floor, durable=durable)

    async def _begin(self, granted: LeadershipGrant, stored: int, known: int) -> None:
        """Begin at the end that the store granted.

        `stored`: all below it was acknowledged. `known`: the snapshot has the producers of all below it.
        """
        log, snapshot, producers = self._log, self._snapshot, self._snapshot.producers
        bounds, epoch, records_end, epochs = granted
        others_told = log.is_shared or self._examined_in == _NEVER  # another broker may have had the log before
        told = bounds.end if others_told else max(log.told_end, log.high_watermark.offset)
        self._knows_records = False  # until all that follows has worked
        self._examined_in = self._generation.number
        lost = max(bounds.lost, stored if records_end < stored else 0)
        first = max(log.start, bounds.removed, 0 if bounds.lost else records_end)
        if first < lost:
            self._losses.report(log.name, first, lost)
        bounds = bounds._replace(removed=max(bounds.removed, bounds.lost))
        if known < bounds.start:
            producers.clear()  # the records between were deleted, and their producers are unknown
        if bounds.end < known:
            producers.forget(records_end)  # offsets from there on are given out again
        # Otherwise no offset is used again. A batch that was acknowledged counts for its producer even if it is lost:
        # the producer goes on with the next one.
        self._leadership.epoch = epoch
        if records_end < stored <= bounds.end and not bounds.size:
            # Nothing is left: a consumer below gets OFFSET_OUT_OF_RANGE, and does not pass over the loss unawares.
            bounds = bounds._replace(start=max(bounds.start, stored), removed=max(bounds.removed, stored))
        log.begin(bounds, records_end, told)
        headers = self._store.producers if log.entries_layout else None
        if headers is not None and records_end >= known:
            snapshot.replace_producers(headers.recent_headers(log.name), self._clock.monotonic())
        elif known < records_end:
            start, now = max(known, bounds.start), self._clock.monotonic()
            self._saver.unsaved = await snapshot.catch_up(log.opened, start, records_end, now)
        if log.entries_layout:
            log.epochs.replace(epochs)  # records of layout `entries` carry no epoch
        else:
            log.epochs.add(epoch, bounds.end)
        self._metadata.advance()
        self._knows_records = True
        if snapshot.saved_end > records_end:
            # The saved snapshot covers lost records. Once the log has grown past its end, it would look valid.
            await self._saver.write()

    async def recover(self) -> None:
        """Find the end of the log, and make all of the log durable.

        Raises `StoreError` (the end is still uncertain), or `OffsetConflict` (another program has acquired the log, or
        has written to it).
        """
        log, high_watermark = self._log, self._log.high_watermark
        await high_watermark.wait()
        high_watermark.forget_flushes()
        if not self._knows_records:
            await self.acquire(await self._store.load(self._snapshot.key))
        elif self._acquired_in == self._generation.number and log.end <= max(high_watermark.stored, log.inherited_end):
            await self.flush()
        else:
            # Batches that were not acknowledged may be in the log or not: the store knows.
            stored, known = log.acknowledged_end, min(high_watermark.offset, log.last_record_end)
            self._snapshot.producers.forget(known)
            number = self._generation.number
            await self._begin(await self._acquire_log(high_watermark.stored, durable=known), stored, known)
            self._acquired_in = number
        await high_watermark.wait()
        if high_watermark.offset < log.end:
            raise StoreError(f"{log.name}: records from offset {high_watermark.offset} on cannot be made durable")

    async def flush(self) -> None:
        """Make the log durable; all batches that were appended are in it.

        Raises `StoreError` or `OffsetConflict`.
        """
        log = self._log
        log.high_watermark.forget_uncopied()
        if (why := self._store.durability_error(log.name, log.config.sync, log.config.copies)) is not None:
            raise TooFewCopies(why)
        acquired_in, self._acquired_in = self._acquired_in, _NEVER
        durable = log.flush()  # fails if another program has acquired the log, or its end is elsewhere
        self._acquired_in = acquired_in
        await asyncio.wait([durable])
        durable.result()
