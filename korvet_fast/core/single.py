"""A partition whose log takes records of other programs too (layout `entries`).

Offsets follow the clock. Another program's record may come to lie where a batch on its way was to go: the store refuses
the batch, and it is put behind that record, with those after it, in their order. Clients only wait a little longer.
"""

import asyncio
from functools import partial
from typing import Any

from korvet_fast.core.partition import Appended, Facts, Partition, Placed
from korvet_fast.errors import KorvetError, StoreError
from korvet_fast.store.interface import Stale

TRIES = 8  # places for one batch; each time further ahead of the clock, which the other programs follow
_AHEAD = 2  # ms, after the first time


class Pending:
    """A batch on its way. `done` ends with its `Placed`, or with a failure for `Partition.explain`.

    `refused`: another program was in its place.
    """

    __slots__ = ("acks", "data", "done", "facts", "placed", "refused", "tries")

    def __init__(self, data: bytearray | memoryview, facts: Facts, acks: int) -> None:
        self.data = data
        self.facts = facts
        self.acks = acks
        self.done: asyncio.Future[Placed] = asyncio.get_running_loop().create_future()
        self.placed = Placed(-1, -1)
        self.refused = False
        self.tries = 0

    def fail(self, failure: BaseException) -> None:
        self.done.set_exception(failure)
        self.done.exception()  # nobody has to be waiting


class SinglePartition(Partition):
    """As any other partition, but what an `Appended` waits for has a result: where the batch went in the end."""

    __slots__ = ("_ahead", "_aside", "_sent")

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._ahead = 0  # ms between the clock and the next batch's place
        self._sent: list[Pending] = []  # in order, until their outcome is known
        self._aside: list[Pending] | None = None  # those that have to wait while earlier ones are placed anew

    def append(self, data: bytearray | memoryview, facts: Facts, acks: int, now: int) -> Appended:
        """See `Partition.append`. Where the batch has to wait for its place, its base offset is -1."""
        pending = Pending(data, facts, acks)
        if self._aside is not None and self._refusal is None:
            self._aside.append(pending)
        else:
            self._place(pending, now)
        return *pending.placed, self.start, None if pending.done.done() else pending.done

    def _place(self, pending: Pending, now: int) -> None:
        pending.refused = False
        base, time, _, done = super().append(pending.data, pending.facts, pending.acks, now)
        pending.placed = Placed(base, time)
        if done is None:
            pending.done.set_result(pending.placed)
        else:
            self._sent.append(pending)
            done.add_done_callback(partial(self._conclude, pending))

    def _next(self, end: int, now: int) -> int:
        return max(end, (now + self._ahead) << self.config.form.bits)

    def _conclude(self, pending: Pending, ended: "asyncio.Future[Any]") -> None:
        failure = ended.exception()
        if failure is None:
            pending.done.set_result(pending.placed)
        elif isinstance(failure, Stale) and not failure.fenced and pending.tries < TRIES:
            pending.refused = True
            pending.tries += 1
            self._doubt(failure)
            return
        else:
            pending.fail(failure)
        self._sent.remove(pending)

    def _doubt(self, failure: BaseException) -> KorvetError:
        if not isinstance(failure, Stale) or failure.fenced:
            return super()._doubt(failure)
        if self._aside is None:
            self._aside = []
            self._host.start(self._go_behind())
        return self.explain(failure)

    async def _go_behind(self) -> None:
        """Place what was refused, and what came since, after what another program put there."""
        mark = self._mark
        await mark.wait()  # what was sent after the first one refused is refused as well
        if self._refusal is None:
            mark.forget_rounds()
            self.end = mark.stored
            self._state.producers.forget(self.end)
            try:
                self._see(await self._host.store.bounds(self.log))
            except StoreError as error:
                super()._doubt(error)
        waiting = [pending for pending in self._sent if pending.refused] + (self._aside or [])
        self._sent = [pending for pending in self._sent if not pending.refused]
        self._aside = None
        self._ahead = max((_AHEAD << pending.tries for pending in waiting), default=0)
        for pending in waiting:
            try:
                self._place(pending, self._host.clock.wall())
            except KorvetError as error:
                pending.fail(error)
        self._ahead = 0
