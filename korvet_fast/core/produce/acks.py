"""The outcomes of a produce, one for each partition: known when `acks` is reached, or the time is over."""

import asyncio
from collections.abc import Generator
from time import monotonic
from typing import Final, Literal, TypeAlias

from korvet_fast.core.client_session import ClientSession
from korvet_fast.core.partition.partition import AppendResult, Partition
from korvet_fast.core.produce.check import Checked, Records, blame_records
from korvet_fast.core.produce.order import remember_refusal
from korvet_fast.core.signal import Signal
from korvet_fast.core.timing_wheel import TimingWheel
from korvet_fast.errors import CodecError, KorvetError, forget_frames

NO_ERROR: Final = 0
_MANY = 200  # partitions between two looks at the clock
_BESIDE = 8 << 10  # bytes that an append under way takes at most beside its batch

# One partition's result: index, error, base offset, log append time in ms, log start offset; -1 where unknown.
#
# `NO_ERROR` is what Kafka writes for success, so that its rows are outcomes as they are.
Outcome: TypeAlias = tuple[int, KorvetError | Literal[0], int, int, int]


class PendingAppend:
    """A partition whose outcome is still open: its place among the outcomes, and the results so far."""

    __slots__ = ("_at", "_index", "_outcomes", "appended", "checked", "data", "partition")

    def __init__(
        self,
        index: int,
        partition: Partition,
        outcomes: list[Outcome],
        checked: "Checked | asyncio.Future[Checked] | None" = None,
        appended: "AppendResult | None" = None,
        data: Records | None = None,
    ) -> None:
        self.partition = partition
        self.checked = checked
        self.appended = appended
        self.data = data
        self._index = index
        self._outcomes = outcomes
        self._at = len(outcomes)
        outcomes.append((index, NO_ERROR, -1, -1, -1))

    def append(self, session: ClientSession, acks: int, now: int) -> None:
        """Append the batch: its check is done, and its turn has come."""
        assert self.checked is not None
        data: Records | None = None
        try:
            data, summary = self.checked.result() if isinstance(self.checked, asyncio.Future) else self.checked
            if session.refused:
                session.refused.check(self.partition.name, self.partition.producers, summary[4])
            self.appended = self.partition.append(data, summary, acks, now)
            self.data = data
        except CodecError as error:
            self._outcomes[self._at] = self._index, blame_records(error), -1, -1, -1
        except KorvetError as error:
            remember_refusal(session, self.partition.topic, self.partition.index, data, error)
            self._outcomes[self._at] = self._index, forget_frames(error), -1, -1, -1

    def settle(self, acks: int, timeout_ms: int) -> None:
        """Set the outcome; nothing is waited for any longer."""
        if self.appended is not None:
            self._outcomes[self._at] = find_outcome(self._index, self.partition, self.appended, acks, timeout_ms)

    @property
    def awaited(self) -> "asyncio.Future[None] | None":
        """The future of the append; None: it has ended, or failed at once."""
        return None if self.appended is None else self.appended[3]

    @property
    def failed(self) -> bool:
        """Whether there is an error."""
        return bool(self._outcomes[self._at][1])


def find_outcome(index: int, partition: Partition, appended: "AppendResult", acks: int, timeout_ms: int) -> Outcome:
    """The outcome of an append whose future has ended, or whose time is over: no error with acks=0, as in Kafka."""
    base, time, start, done = appended
    if done is None:
        return index, NO_ERROR, base, time, start
    if not done.done():
        if acks == 0:
            return index, NO_ERROR, -1, -1, -1
        return index, partition.explain_delay(base, timeout_ms), -1, -1, -1
    if (failure := done.exception()) is not None:
        return index, partition.leader.explain(failure), -1, -1, -1
    base, time = done.result() or (base, time)
    return index, NO_ERROR, base, time, start


class PendingOutcome(Signal):
    """The outcome of one append whose future has not ended; await it, once. `appended`: with a future."""

    __slots__ = ("_acks", "_appended", "_data", "_deadline", "_index", "_partition", "_session", "_timeout_ms")

    def __init__(
        self,
        session: ClientSession,
        index: int,
        partition: Partition,
        data: Records,
        appended: "AppendResult",
        acks: int,
        timeout_ms: int,
    ) -> None:
        super().__init__()
        self._session = session
        self._data = data
        self._index = index
        self._partition = partition
        self._appended = appended
        self._acks = acks
        self._timeout_ms = timeout_ms
        self._deadline = session.broker.deadlines.add(self, max(timeout_ms, 0) / 1000)
        done = appended[3]
        assert done is not None
        done.add_done_callback(self.note_end)

    def __await__(self) -> Generator[Signal, None, Outcome]:
        try:
            yield from super().__await__()
        finally:
            self._session.broker.deadlines.remove(self, self._deadline)
        done = self._appended[3]
        if done is not None and not done.done():
            _hold_late(self._session, [(self._data, done)])
        return find_outcome(self._index, self._partition, self._appended, self._acks, self._timeout_ms)


def _hold_late(session: ClientSession, late: "list[tuple[Records, asyncio.Future[None]]]") -> None:
    """Count what the store still has of a request whose time is over: else a client could fill the memory with them.

    A batch is mostly a part of its request, which stays in memory as a whole.
    """
    if session.client is None or not late:
        return
    whole = {id(data): data for data in (data.obj if isinstance(data, memoryview) else data for data, _ in late)}
    size = sum(memoryview(data).nbytes for data in whole.values()) + len(late) * _BESIDE
    session.client.hold(size, late[-1][1])


async def settle_all(session: ClientSession, pending: list[PendingAppend], acks: int, timeout_ms: int) -> None:
    """Wait until `acks` is reached everywhere, and fill in the outcomes."""
    seconds = max(timeout_ms, 0) / 1000
    deadlines = session.broker.deadlines
    if len(pending) <= _MANY:
        await _wait_for(pending, seconds, deadlines)
        for one in pending:
            one.settle(acks, timeout_ms)
        _hold_late(session, _find_late(pending))
        return
    pace, until = session.pace(), monotonic() + seconds
    for start in range(0, len(pending), _MANY):
        left = until - monotonic()
        if start and left <= 0:
            break  # for the others too: a deadline that is over takes a tick of the wheel
        await _wait_for(pending[start : start + _MANY], max(0.0, left), deadlines)
        if pace.due():
            await pace.turn()
    for start in range(0, len(pending), _MANY):
        for one in pending[start : start + _MANY]:
            one.settle(acks, timeout_ms)
        if pace.due():
            await pace.turn()
    _hold_late(session, _find_late(pending))


def _find_late(pending: list[PendingAppend]) -> "list[tuple[Records, asyncio.Future[None]]]":
    late = []
    for one in pending:
        if (done := one.awaited) is not None and not done.done():
            assert one.data is not None
            late.append((one.data, done))
    return late


async def _wait_for(pending: list[PendingAppend], seconds: float, deadlines: TimingWheel) -> None:
    waiting = [done for one in pending if (done := one.awaited) is not None]
    if waiting:
        await _wait(waiting, seconds, deadlines)


async def _wait(futures: list["asyncio.Future[None]"], seconds: float, deadlines: TimingWheel) -> None:
    """Wait until all are done or the time is over. `asyncio.wait` without its sets: this is once a produce.

    The futures are not awaited themselves: they are shared, and a cancellation must not reach them.
    """
    over, left = Signal(), len(futures)

    def count(_: "asyncio.Future[None]") -> None:
        nonlocal left
        left -= 1
        if left == 0:
            over.set()

    deadline = deadlines.add(over, seconds)
    for future in futures:
        future.add_done_callback(count)
    try:
        await over
    finally:
        deadlines.remove(over, deadline)
