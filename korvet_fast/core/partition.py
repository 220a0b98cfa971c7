"""One partition: what a batch must be to be taken, which offset it gets, and when it may be acknowledged.

Appends start in the order of the calls and end in any order.
"""

import asyncio
from typing import Any, Final, NamedTuple

from korvet_fast import _native
from korvet_fast.core.producers import Stored
from korvet_fast.core.tenure import Tenure
from korvet_fast.core.topic_config import TopicConfig
from korvet_fast.errors import KorvetError, StoreError
from korvet_fast.store.interface import Entry, Stale

SAVE_EVERY = 64 << 20  # bytes appended between two saves of the state: what an opening after a crash reads again
_make: Final = tuple.__new__  # of a NamedTuple, in half the time: this is once a partition of each produce


class Placed(NamedTuple):
    """Where a batch went. `log_append_time` in ms, -1 if the records keep their own times."""

    base_offset: int
    log_append_time: int


class Appended(NamedTuple):
    """Where a batch is to go, as `Placed`.

    `done` is None if what `acks` asked for is reached already; else it ends with None, with a `Placed` that says where
    the batch went instead, or with a failure that `Partition.explain` puts into a client's words. It is shared with
    other requests: never cancel it (await it through `asyncio.wait` or `asyncio.shield`).
    """

    base_offset: int
    log_append_time: int
    log_start_offset: int
    done: "asyncio.Future[Any] | None"


class Partition(Tenure):
    """What `Extent` (reading) and `Tenure` (leading) say of it, and appending."""

    __slots__ = ()

    def configure(self, config: TopicConfig) -> None:
        """The topic has other settings from now on."""
        if config.form != self.config.form:
            self._host.store.declare(self.log, config.form)
        self.config = config

    def wants(self, batch: _native.Batch) -> int | None:
        """The compression this batch is to be brought to before `append`, or None if it can stay as it is."""
        wanted = self.config.compression
        return None if wanted is None or wanted == batch.compression else wanted

    def append(self, data: bytearray | memoryview, batch: _native.Batch, acks: int, now: int) -> Appended:
        """Put one checked batch at the end of the log; `data` is stamped in place.

        `acks` as in Kafka: 0, 1 or -1. `now`: the time in ms. Raises `StoreError`, or `KorvetError`: MESSAGE_TOO_LARGE,
        INVALID_RECORD, INVALID_TIMESTAMP, NOT_ENOUGH_REPLICAS, NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_OR_PARTITION
        (deleted meanwhile), and what `Producers.check` raises. Nothing is stored then, as far as is known.
        """
        if self._refusal is not None:
            self._refuse()
        host, config = self._host, self.config
        size, count, time, plain, numbers = batch.facts
        if size > config.max_message_bytes:
            raise KorvetError("MESSAGE_TOO_LARGE", f"{size} bytes, but {self.topic} takes {config.max_message_bytes}")
        if not plain:
            raise _object(batch)
        if acks == -1 and config.strict:
            self._check_copies()
        producers = self._state.producers
        if numbers is not None and (before := producers.check(numbers)) is not None:
            return self._repeat(before, acks)
        at = self.end
        base = self._next(at, now) if self.single else at
        if config.log_append_time:
            time = now
            _native.restamp(data, base, self.leader_epoch, None, now)
        elif time <= now + config.after_max_ms:
            _native.restamp(data, base, self.leader_epoch, time, None)
        else:
            raise KorvetError("INVALID_TIMESTAMP", f"{time} is more than {config.after_max_ms} ms ahead of {now}")
        end = base + count
        mark = self._mark
        try:
            stored, durable = host.store.append(
                self.log,
                (_make(Entry, (data, base, end - 1, time)),),
                at,
                sync=config.sync,
                copies=config.copies,
                piece=config.piece,
            )
            if stored.done():
                stored.result()
                mark.stored = end
            else:
                mark.expect(end, stored)
            if durable.done():
                durable.result()
        except (Stale, StoreError) as failure:
            raise self._doubt(failure) from None
        if base != at and self.start == at:
            self.start = base  # the log was empty
        self.end = end
        self.size += size
        self._unsaved += size
        if numbers is not None:
            producers.add(numbers, base, time, host.clock.monotonic())
        mark.add(base, end, size, durable)
        if self._unsaved >= SAVE_EVERY and (self._saving is None or self._saving.done()):
            self._saving = host.start(self.save())
        awaited = durable if acks == -1 else stored
        stamp = now if config.log_append_time else -1
        return _make(Appended, (base, stamp, self.start, None if awaited.done() else awaited))

    def _next(self, end: int, now: int) -> int:
        """The offset of a batch for a log that ends at `end`, at `now` ms, where offsets are not dense."""
        return max(end, now << self.config.form.bits)

    def _check_copies(self) -> None:
        why = self._host.store.refusal(self.log, self.config.sync, self.config.copies)
        if why is not None:
            raise KorvetError("NOT_ENOUGH_REPLICAS", why)

    def _repeat(self, before: Stored, acks: int) -> Appended:
        """Answer a repetition as the first time: same offset, and not before what acks asks for is reached."""
        reached = acks != -1 and before.last_offset < self._mark.stored
        done = None if reached else self._mark.find_round(before.last_offset)
        time = before.timestamp if self.config.log_append_time else -1
        return Appended(before.base_offset, time, self.start, done)


def _object(batch: _native.Batch) -> KorvetError:
    """Why a batch with such attributes is not taken."""
    if batch.log_append_time:
        return KorvetError("INVALID_TIMESTAMP", "a producer may not mark its times as the broker's")
    return KorvetError("INVALID_RECORD", "control and transactional batches are not taken")
