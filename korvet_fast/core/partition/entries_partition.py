"""A partition whose log takes records of other programs too (layout `entries`).

Offsets follow the clock. Another program may write a record at the place of a batch that is under way. The store then
refuses the batch, and this broker appends it behind that record, with the batches after it, in their order. Clients
only wait a little longer.
"""

import asyncio
from functools import partial
from typing import Any

from korvet_fast.core.partition.collaborators import PartitionCollaborators
from korvet_fast.core.partition.leadership import Operation
from korvet_fast.core.partition.partition import AppendResult, AssignedOffset, BatchSummary, Partition
from korvet_fast.core.topic_config import TopicConfig
from korvet_fast.errors import KorvetError, StoreError
from korvet_fast.store.shared_future import SharedFuture
from korvet_fast.store.types import OffsetConflict

TRIES = 8  # attempts to place a batch; each goes further ahead of the clock, as others' records follow the clock
_AHEAD = 2  # ms, after the first time


class Pending:
    """A batch under way. `done` ends with its `AssignedOffset`, or with a failure for `PartitionLeader.explain`.

    `refused`: another program was in its place.
    """

    __slots__ = ("acks", "data", "done", "placed", "refused", "summary", "tries")

    def __init__(self, data: bytearray | memoryview, summary: BatchSummary, acks: int) -> None:
        self.data = data
        self.summary = summary
        self.acks = acks
        self.done: SharedFuture[AssignedOffset] = SharedFuture(loop=asyncio.get_running_loop())
        self.placed = AssignedOffset(-1, -1)
        self.refused = False
        self.tries = 0


class EntriesPartition(Partition):
    """As any other partition, but the future of an `AppendResult` has a result: where the batch went in the end."""

    __slots__ = ("_ahead", "_aside", "_sent")

    def __init__(self, given: PartitionCollaborators, topic: str, index: int, config: TopicConfig) -> None:
        super().__init__(given, topic, index, config)
        self._ahead = 0  # ms between the clock and the next batch's place
        self._sent: list[Pending] = []  # in order, until their outcome is known
        self._aside: list[Pending] | None = None  # appends that wait while earlier ones are placed anew

    def append(self, data: bytearray | memoryview, summary: BatchSummary, acks: int, now: int) -> AppendResult:
        """See `Partition.append`. Where the batch has to wait for its place, its base offset is -1."""
        pending = Pending(data, summary, acks)
        if self._aside is not None and self._may_append(acks):
            self._aside.append(pending)
        else:
            self._place(pending, now)
        return *pending.placed, self.log.start, None if pending.done.done() else pending.done

    def _may_append(self, acks: int) -> bool:
        return self.leadership.may(Operation.APPEND if acks == -1 else Operation.APPEND_HERE)

    def _place(self, pending: Pending, now: int) -> None:
        pending.refused = False
        base, time, _, done = super().append(pending.data, pending.summary, pending.acks, now)
        pending.placed = AssignedOffset(base, time)
        if done is None:
            pending.done.set_result(pending.placed)
        else:
            self._sent.append(pending)
            done.add_done_callback(partial(self._conclude, pending))

    def _next_offset(self, end: int, now: int) -> int:
        return max(end, (now + self._ahead) << self.config.log_format.bits)

    def _conclude(self, pending: Pending, ended: "asyncio.Future[Any]") -> None:
        failure = ended.exception()
        if isinstance(failure, OffsetConflict) and not failure.fenced and pending.tries < TRIES:
            pending.refused = True
            pending.tries += 1
            self.fail(failure)
            return
        self._sent.remove(pending)
        if failure is None:
            pending.done.end(pending.placed)
        else:
            pending.done.fail(failure)

    def fail(self, failure: BaseException) -> KorvetError:
        """See `Partition.fail`. Where another program was in the way, nothing has failed yet."""
        if not isinstance(failure, OffsetConflict) or failure.fenced:
            return super().fail(failure)
        if self._aside is None:
            self._aside = []
            self._tasks.start(self._go_behind())
        return self.leader.explain(failure)

    async def _go_behind(self) -> None:
        """Append the refused batches, and those that came since, behind the other program's records."""
        log, high_watermark = self.log, self.high_watermark
        await high_watermark.wait()  # appends sent after the first refused one are refused as well
        if self.leadership.knows_end:
            high_watermark.forget_flushes()
            log.end = high_watermark.stored
            self.producers.forget(log.end)
            try:
                log.observe(await self._store.bounds(self.name))
            except StoreError as error:
                super().fail(error)
        waiting = [pending for pending in self._sent if pending.refused] + (self._aside or [])
        self._sent = [pending for pending in self._sent if not pending.refused]
        self._aside = None
        self._ahead = max((_AHEAD << pending.tries for pending in waiting), default=0)
        for pending in waiting:
            try:
                self._place(pending, self._clock.wall())
            except KorvetError as error:
                pending.done.fail(error)
        self._ahead = 0
