"""One partition: what a batch must be to be taken, which offset it gets, and when it may be acknowledged.

Appends start in the order of the calls and end in any order.
"""

import asyncio
from typing import Any, Final, NamedTuple, TypeAlias

from korvet_fast import _native
from korvet_fast.core.producers import Numbers, Stored
from korvet_fast.core.tenure import Tenure
from korvet_fast.core.topic_config import TopicConfig
from korvet_fast.errors import KorvetError, StoreError
from korvet_fast.store.interface import Entry, Stale

SAVE_EVERY = 64 << 20  # bytes appended between two saves of the state: what an opening after a crash reads again
_make: Final = tuple.__new__  # of a NamedTuple, in half the time: once for each partition of each produce


class Placed(NamedTuple):
    """Where a batch went. `log_append_time` in ms, -1 if the records keep their own times."""

    base_offset: int
    log_append_time: int


# What is asked of a batch, as `_native.admit` gives it: bytes, records, largest time in ms, special flags, numbers.
Facts: TypeAlias = tuple[int, int, int, int, Numbers | None]

# Where a batch is to go, as `Placed`, then the start of the log, then what is done when `acks` asks for more.
#
# That is None if what `acks` asked for is reached already; else it ends with None, with a `Placed` that says where the
# batch went instead, or with a failure that `Partition.explain` puts into a client's words. It is shared with other
# requests: never cancel it (await it through `asyncio.wait` or `asyncio.shield`).
Appended: TypeAlias = "tuple[int, int, int, asyncio.Future[Any] | None]"

_BROKERS_TIME: Final = 8  # the special flag of a batch whose records have the time of append


class Partition(Tenure):
    """What `Extent` (reading) and `Tenure` (leading) say of it, and appending."""

    __slots__ = ()

    def configure(self, config: TopicConfig) -> None:
        """The topic has other settings from now on."""
        if config.form != self.config.form:
            self._host.store.declare(self.log, config.form)
        self.config = config

    def append(self, data: bytearray | memoryview, facts: Facts, acks: int, now: int) -> Appended:
        """Put one checked batch, in the topic's compression, at the end of the log; `data` is stamped in place.

        `acks` as in Kafka: 0, 1 or -1. `now`: the time in ms. Raises `StoreError`, or `KorvetError`: MESSAGE_TOO_LARGE,
        INVALID_RECORD, INVALID_TIMESTAMP, NOT_ENOUGH_REPLICAS, NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_OR_PARTITION
        (deleted meanwhile), and what `Producers.check` raises; where several copies are asked for, what is waited for
        ends with that. Nothing is stored then, as far as is known.
        """
        if self._refusal is not None:
            self._refuse()
        config = self.config
        size, count, time, flags, numbers = facts
        if size > config.max_message_bytes:
            raise KorvetError("MESSAGE_TOO_LARGE", f"{size} bytes, but {self.topic} takes {config.max_message_bytes}")
        if flags:
            raise _object(flags)
        if acks == -1 and config.strict:
            self._check_copies()
        if numbers is not None:
            try:
                before = self._state.producers.check(numbers)
            except KorvetError as error:
                if config.copies == 1:
                    raise
                return -1, -1, self.start, self._deny(error)
            if before is not None:
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
            stored, durable = self._host.store.append(
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
                at_once = durable is stored
            else:
                mark.expect(end, stored)
                at_once = False
            if not at_once and durable.done():
                durable.result()
        except (Stale, StoreError) as failure:
            raise self._doubt(failure) from None
        start = self.start
        if base != at and start == at:
            start = self.start = base  # the log was empty
        self.end = end
        self.size += size
        self._unsaved += size
        if numbers is not None:
            self._state.producers.add(numbers, base, time, self._host.clock.monotonic())
        if self._unsaved >= SAVE_EVERY and (self._saving is None or self._saving.done()):
            self._saving = self._host.start(self.save())
        mark.add(base, end, size, None if at_once else durable)
        stamp = now if config.log_append_time else -1
        awaited = durable if acks == -1 else stored
        return base, stamp, start, None if at_once or awaited.done() else awaited

    def _next(self, end: int, now: int) -> int:
        """The offset of a batch for a log that ends at `end`, at `now` ms, where offsets are not dense."""
        return max(end, now << self.config.form.bits)

    def _check_copies(self) -> None:
        why = self._host.store.refusal(self.log, self.config.sync, self.config.copies)
        if why is not None:
            raise KorvetError("NOT_ENOUGH_REPLICAS", why)

    def _deny(self, error: KorvetError) -> "asyncio.Future[Any]":
        """Ends with `error` once it is confirmed, or with why it is not: what came before may be known elsewhere."""

        async def work() -> None:
            await self.confirm()
            raise error

        denying = asyncio.get_running_loop().create_task(work())
        denying.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # nobody has to be waiting
        return denying

    def _repeat(self, before: Stored, acks: int) -> Appended:
        """Answer a repetition as the first time: same offset, and not before what acks asks for is reached."""
        reached = acks != -1 and before.last_offset < self._mark.stored
        done = None if reached else self._mark.find_round(before.last_offset)
        time = before.timestamp if self.config.log_append_time else -1
        return before.base_offset, time, self.start, done


def _object(flags: int) -> KorvetError:
    """Why a batch with such flags is not taken."""
    if flags & _BROKERS_TIME:
        return KorvetError("INVALID_TIMESTAMP", "a producer may not mark its times as the broker's")
    return KorvetError("INVALID_RECORD", "control and transactional batches are not taken")
