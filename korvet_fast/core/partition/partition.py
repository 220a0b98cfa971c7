"""One partition: the rules for a batch that is appended, its offset, and when it may be acknowledged.

Appends start in the order of the calls and end in any order.
"""

import asyncio
import weakref
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias

from korvet_fast._native import assign_offsets
from korvet_fast.core.partition.collaborators import PartitionCollaborators
from korvet_fast.core.partition.high_watermark import HighWatermark
from korvet_fast.core.partition.leader import PartitionLeader
from korvet_fast.core.partition.leader_epochs import EpochOffset, epoch_error
from korvet_fast.core.partition.leadership import ERRORS, Leadership, LeadershipState, Operation
from korvet_fast.core.partition.legacy_segments import LegacySegments
from korvet_fast.core.partition.log import NOWHERE, PartitionLog
from korvet_fast.core.partition.producer_state import BatchMetadata, ProducerSequence
from korvet_fast.core.partition.snapshot import PartitionSnapshot
from korvet_fast.core.partition.snapshot_saver import SnapshotSaver
from korvet_fast.core.topic_config import TopicConfig
from korvet_fast.errors import Errors, KorvetError, StoreError
from korvet_fast.store.types import Appending, OffsetConflict, ReadResult, RecordBatch
from korvet_fast.types import LATEST

SAVE_EVERY = 64 << 20  # bytes appended between two saves of the snapshot
_make: Final = tuple.__new__  # makes a NamedTuple in half the time: once for each partition of each produce


class AssignedOffset(NamedTuple):
    """The result of an append. `log_append_time` in ms, -1 if the records keep their own times."""

    base_offset: int
    log_append_time: int


# The result of `_native.validate_batch` for a batch: bytes, records, largest time in ms, special flags, sequence.
BatchSummary: TypeAlias = tuple[int, int, int, int, ProducerSequence | None]

# The two fields of `AssignedOffset`, the start of the log, and a future.
#
# The future is None if what `acks` asked for is reached already. Else it ends with None, with an `AssignedOffset` where
# the batch went elsewhere, or with a failure that `PartitionLeader.explain` puts into a client's words. Other requests
# wait for the same future: never cancel it (await it through `asyncio.wait` or `asyncio.shield`).
AppendResult: TypeAlias = "tuple[int, int, int, asyncio.Future[Any] | None]"

_BROKERS_TIME: Final = 8  # the special flag of a batch whose records have the time of append


class FailureHandler:
    """Reports the failures of a partition's parts to the partition, without keeping it alive.

    So a deleted partition is freed at once: a full garbage collection takes long, and is rare (`net.memory`).
    """

    __slots__ = ("_partition",)

    def __init__(self, partition: "Partition") -> None:
        self._partition = weakref.ref(partition)

    def __call__(self, failure: BaseException) -> KorvetError | None:
        """The error that `PartitionLeader.fail` returns; None if the partition was deleted and freed."""
        partition = self._partition()
        return partition.fail(failure) if partition is not None else None


class Partition:
    """A partition: its log, its producers, its leadership. Callers append and read here, and look at the parts.

    `name`: topic and index, as the store names the log. `leadership`: whether this broker leads; `leader` changes it.
    `saver` saves the snapshot of producers and epochs. `segment_limits`: of the next append.
    """

    __slots__ = (
        "__weakref__",
        "_clock",
        "_store",
        "_tasks",
        "config",
        "high_watermark",
        "index",
        "leader",
        "leadership",
        "log",
        "name",
        "producers",
        "saver",
        "segment_limits",
        "topic",
    )

    def __init__(
        self,
        given: PartitionCollaborators,
        topic: str,
        index: int,
        config: TopicConfig,
        segments: LegacySegments | None = None,
    ) -> None:
        self.topic = topic
        self.index = index
        self.name = name = f"{topic}:{index}"
        self.config = config
        self.segment_limits = config.segment_limits
        self.leadership = Leadership(name)
        on_failure = FailureHandler(self)
        self.high_watermark = HighWatermark(on_failure)
        snapshot = PartitionSnapshot(name, given.producer_limit, segments)
        self.producers = snapshot.producers
        self.log = PartitionLog(name, config, self.leadership, self.high_watermark, snapshot.epochs, given)
        self.saver = SnapshotSaver(self.log, self.leadership, snapshot, given)
        self.leader = PartitionLeader(self.log, self.leadership, snapshot, self.saver, on_failure, given)
        self._store = given.store
        self._clock = given.clock
        self._tasks = given.tasks

    def configure(self, config: TopicConfig) -> None:
        """Take the topic's new settings."""
        if config.log_format != self.config.log_format and self._store.shared is not None:
            self._store.shared.declare(self.name, config.log_format)
        self.config = self.log.config = config
        self.segment_limits = config.segment_limits

    @property
    def is_catching_up(self) -> bool:
        """Whether clients may have been told of a later end than the high watermark (KIP-207).

        Former leaders told them of it. This broker first has to find out how far the log that they left is durable.
        """
        return self.leadership.epoch < 0 or self.high_watermark.offset < self.log.told_end

    @property
    def told_high_watermark(self) -> int:
        """The high watermark, as readers are told it; -1, Kafka's for unknown, while `is_catching_up`.

        They were told a higher one by the former leader, and it never goes back.
        """
        return -1 if self.is_catching_up else self.high_watermark.offset

    # -- appending -----------------------------------------------------------------------------------------------

    def append(self, data: bytearray | memoryview, summary: BatchSummary, acks: int, now: int) -> AppendResult:
        """Put one checked batch, in the topic's compression, at the end of the log; `data` is stamped in place.

        `acks` as in Kafka: 0, 1 or -1. `now`: the time in ms. Raises `StoreError`, or `KorvetError`: MESSAGE_TOO_LARGE,
        INVALID_RECORD, INVALID_TIMESTAMP, NOT_ENOUGH_REPLICAS, NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_OR_PARTITION
        (deleted meanwhile), KAFKA_STORAGE_ERROR (no offsets are left), and what `ProducerState.check` raises; where
        several copies are asked for, the future ends with that error instead. Nothing is stored then, as far as is
        known.
        """
        leadership = self.leadership
        if leadership.refusal is not None:
            self.leader.refuse_append(acks)
        config, log = self.config, self.log
        size, count, time, flags, sequence = summary
        if size > config.max_batch_bytes:
            raise KorvetError(
                Errors.MESSAGE_TOO_LARGE, f"{size} bytes, but {self.topic} takes {config.max_message_bytes}"
            )
        if flags:
            raise _refuse_flags(flags)
        if acks == -1 and config.strict:
            self._check_copies()
        if sequence is not None:
            try:
                before = self.producers.check(sequence)
            except KorvetError as error:
                if self._store.shared is None:
                    raise
                return -1, -1, log.start, self._verify_refusal(error)
            if before is not None:
                return self._repeat(before, acks)
        at = log.end
        base = self._next_offset(at, now) if log.entries_layout else at
        end = base + count
        if end >= NOWHERE:  # another program used the last ids there are
            raise KorvetError(Errors.KAFKA_STORAGE_ERROR, f"{self.name} has no offsets left: it ends at {at}")
        stamp = -1
        if config.log_append_time:
            stamp = time = now
            assign_offsets(data, base, leadership.epoch, None, now)
        elif time <= now + config.after_max_ms:
            assign_offsets(data, base, leadership.epoch, time, None)
        else:
            why = f"{time} is more than {config.after_max_ms} ms ahead of {now}"
            self.leader.tell_timestamp(why)
            raise KorvetError(Errors.INVALID_TIMESTAMP, why)
        high_watermark = self.high_watermark
        try:
            appending = log.opened.append(
                (_make(RecordBatch, (data, base, end - 1, time)),),
                at,
                config.sync,
                config.copies,
                self.segment_limits,
            )
            if appending.at_once:
                high_watermark.stored = end
            else:
                self._note_stored(appending, end)
        except (OffsetConflict, StoreError) as failure:
            raise self.fail(failure) from None
        start = log.start
        if base != at and start == at:
            start = log.start = base  # the log was empty
        log.end = end
        log.size += size
        saver = self.saver
        unsaved = saver.unsaved = saver.unsaved + size
        if sequence is not None:
            self.producers.add(sequence, base, time, self._clock.monotonic())
        if unsaved >= SAVE_EVERY:
            saver.save_soon()
        if appending.at_once:
            high_watermark.add(base, end, size, None)
            return base, stamp, start, None
        high_watermark.add(base, end, size, appending.durable)
        awaited = appending.durable if acks == -1 else appending.stored
        return base, stamp, start, None if awaited.done() else awaited

    def _note_stored(self, appending: Appending, end: int) -> None:
        """Note that the store has the append that ends at `end`, or will have it. Raises the error of a failed one."""
        if appending.stored.done():
            appending.stored.result()
            self.high_watermark.stored = end
        else:
            self.high_watermark.expect(end, appending.stored)
        if appending.durable.done():
            appending.durable.result()

    def _next_offset(self, end: int, now: int) -> int:
        """The offset of a batch for a log that ends at `end`, at `now` ms, where offsets are not dense."""
        return max(end, now << self.config.log_format.bits)

    def _check_copies(self) -> None:
        why = self._store.durability_error(self.name, self.config.sync, self.config.copies)
        if why is not None:
            self.leader.tell_refusal(why)
            raise KorvetError(Errors.NOT_ENOUGH_REPLICAS, why)

    def explain_delay(self, base: int, timeout_ms: int) -> KorvetError:
        """The error of an append that has not reached what acks asks for within so many ms; it may yet.

        `base`: its offset; -1 for a batch that is refused as soon as this broker is known to lead.
        """
        error = Errors.REQUEST_TIMED_OUT
        why = self._store.durability_error(self.name, self.config.sync, self.config.copies)
        if base < 0:
            late = f"not stored, and not known within {timeout_ms} ms whether this broker leads {self.name}"
            error = error if why is None else Errors.NOT_ENOUGH_REPLICAS
        elif base < self.high_watermark.stored:
            late = f"stored, but not as acks asks for within {timeout_ms} ms"
            error = error if why is None else Errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        else:
            late = f"not known within {timeout_ms} ms to be stored"
        return KorvetError(error, late if why is None else f"{late}: {why}")

    def _verify_refusal(self, error: KorvetError) -> "asyncio.Future[Any]":
        """A future that ends with `error` once this broker is known to lead, or with the reason why that is not known.

        Another leader may know of batches that came before.
        """

        async def work() -> None:
            await self.leader.verify_leadership()
            raise error

        verifying = asyncio.get_running_loop().create_task(work())
        verifying.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # nobody has to be waiting
        return verifying

    def _repeat(self, before: BatchMetadata, acks: int) -> AppendResult:
        """Answer a repetition as the first time: same offset, and not before what acks asks for is reached."""
        reached = acks != -1 and before.last_offset < self.high_watermark.stored
        done = None if reached else self.high_watermark.find_flush(before.last_offset)
        time = before.timestamp if self.config.log_append_time else -1
        return before.base_offset, time, self.log.start, done

    def fail(self, failure: BaseException) -> KorvetError:
        """Note that an append failed; returns the error to raise."""
        return self.leader.fail(failure)

    # -- reading -------------------------------------------------------------------------------------------------

    def check_offset(self, offset: int) -> None:
        """Raises `KorvetError` unless a consumer may stand at this offset here.

        OFFSET_OUT_OF_RANGE, NOT_LEADER_OR_FOLLOWER (also above an end that is uncertain), UNKNOWN_TOPIC_OR_PARTITION
        (deleted meanwhile).
        """
        if not self.leadership.leads or not self.log.removed <= offset <= self.log.end:
            self._refuse_offset(offset)

    async def check_above_end(self, offset: int) -> None:
        """As `check_offset`, for an offset at or above the end that this broker knows. Raises `StoreError` too.

        Other programs may have written; and another broker may lead by now, and have gone on above that end.
        """
        await self.log.refresh_bounds()
        if offset > self.log.end and self.leadership.knows_end:
            await self.leader.verify_end()
        self.check_offset(offset)

    async def read(self, offset: int, max_bytes: int, copy: bool = False) -> ReadResult:
        """Whole durable batches from the one that holds `offset`, or the next one; at least one if there is one.

        That one is given however small `max_bytes` is, 0 and less included. `copy`: see `store.interface.Read`.
        Raises `StoreError`, or `KorvetError` as `check_offset`.
        """
        log = self.log
        if not self.leadership.leads or not log.removed <= offset <= log.end:
            self._refuse_offset(offset)
        limit = self.high_watermark.offset
        if offset >= limit:
            return ReadResult([], offset)
        page = await log.opened.read(offset, max_bytes if max_bytes > 0 else 1, limit, copy=copy)
        if not page.data:
            log.gap_start, log.gap_end = offset, limit
        return page

    async def read_copied(self, offset: int, max_bytes: int) -> ReadResult:
        """As `read`, for a caller that looks into the bytes. An offset from the high watermark on reads empty.

        `max_bytes` is 1 at least.
        """
        self.check_offset(offset)
        limit = self.high_watermark.offset
        if offset >= limit:
            return ReadResult([], offset)
        return await self.log.opened.read(offset, max_bytes, limit, copy=True)

    def _refuse_offset(self, offset: int) -> NoReturn:
        if self.leadership.state is LeadershipState.DELETED:
            raise KorvetError(ERRORS[LeadershipState.DELETED], f"{self.name} was deleted")
        if not self.leadership.leads:
            raise KorvetError(ERRORS[LeadershipState.NOT_LEADER], f"this broker does not lead {self.name}")
        if offset > self.log.end and not self.leadership.knows_end:
            # Others may have led it since this broker knew its end: OFFSET_OUT_OF_RANGE would make a consumer begin
            # anew.
            raise KorvetError(ERRORS[LeadershipState.NOT_LEADER], f"it is not known where {self.name} ends")
        raise KorvetError(
            Errors.OFFSET_OUT_OF_RANGE, f"{offset}, but {self.name} holds {self.log.start} to {self.log.end}"
        )

    def check_epoch(self, given: int) -> None:
        """Raises `KorvetError` FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH unless this is the present leader epoch.

        -1 names none and is always right (KIP-320).
        """
        if given != -1 and given != (known := self.leadership.epoch):
            raise KorvetError(epoch_error(given, known), f"epoch {given} was given, the partition is at {known}")

    def find_epoch_end(self, epoch: int) -> EpochOffset:
        """(epoch, end offset) of the largest leader epoch up to `epoch`; (-1, -1) if it is newer than the present.

        Raises `KorvetError` NOT_LEADER_OR_FOLLOWER while the log is being acquired: its epochs are not known yet, and a
        client would take an answer for a loss.
        """
        leadership, log = self.leadership, self.log
        if not leadership.may(Operation.TELL_EPOCHS):
            self.leader.refuse()
        if log.epochs.last < leadership.epoch or leadership.epoch < 0:
            raise KorvetError(ERRORS[LeadershipState.ACQUIRING], f"{self.name} is being taken over")
        return log.epochs.find_end(epoch, log.start, log.end)

    def find_epoch(self, offset: int) -> int:
        """The leader epoch of the record at `offset`; -1 where none is known, or `find_epoch_end` refuses to answer.

        A client would ask where that epoch ends: one that is too old would look like a loss (KIP-320).
        """
        leadership, epochs = self.leadership, self.log.epochs
        known = leadership.may(Operation.TELL_EPOCHS) and 0 <= leadership.epoch <= epochs.last
        return epochs.find_epoch(offset) if known else -1

    async def delete_records(self, offset: int) -> int:
        """Delete the records below `offset` (`LATEST`: below the high watermark); returns the new start.

        Raises `KorvetError` OFFSET_OUT_OF_RANGE for an offset that is negative or above the high watermark.
        """
        if offset == LATEST:
            offset = self.high_watermark.offset
        if not self.leadership.leads or not 0 <= offset <= self.high_watermark.offset:
            self._refuse_offset(offset)
        await self.log.delete_records(offset)
        return self.log.start


def _refuse_flags(flags: int) -> KorvetError:
    """The error for a batch with special flags that may not be appended."""
    if flags & _BROKERS_TIME:
        return KorvetError(Errors.INVALID_TIMESTAMP, "a producer may not mark its times as the broker's")
    return KorvetError(Errors.INVALID_RECORD, "control and transactional batches are not taken")
