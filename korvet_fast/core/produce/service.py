"""Produce: one record batch of format v2 to each partition named, appended in the order of requests.

All partitions are appended to before the first wait. A batch whose check takes longer is put off. All batches
behind it, in this request and in later produces of the connection, are checked meanwhile and wait for their turn to
append. After a millisecond of work, other connections have their turn.
"""

from asyncio import Future, wait
from collections.abc import Awaitable, Sequence
from typing import Final, TypedDict

from korvet_fast._native import validate_batch
from korvet_fast.core.client_session import ClientSession, Refuse
from korvet_fast.core.partition.partition import Partition
from korvet_fast.core.produce.acks import NO_ERROR, Outcome, PendingAppend, PendingOutcome, settle_all
from korvet_fast.core.produce.check import (
    Records,
    begin_check,
    blame_records,
    check,
    find_light_size,
    is_heavy,
    is_light,
)
from korvet_fast.core.produce.order import ProduceTurn, remember_refusal
from korvet_fast.errors import CodecError, Errors, KorvetError, forget_frames
from korvet_fast.types import INLINE_EXPANDED, UNPACKS_TO_MUCH

ACKS: Final = (-1, 0, 1)
_OFTEN: Final = 16  # batches between two looks at the clock


class Batch(TypedDict):
    """A record batch for a partition. A row of Kafka's request, as it is decoded, is one."""

    index: int
    records: Records | None


def produce_one(
    session: ClientSession, topic: str, batch: Batch, acks: int, timeout_ms: int, zstd: bool = True
) -> Outcome | Awaitable[Outcome]:
    """As `produce` for one batch: returns the outcome where it is known at once; else await it.

    Await it right away: only then do produces keep their order.
    """
    broker = session.broker
    found, index, data = broker.leader_partitions(topic), batch["index"], batch["records"]
    if found is not None and session.last_produce is None and not session.refused and data and acks in ACKS:
        led = found.partitions
        partition = led[index] if 0 <= index < len(led) else None
        if partition is not None and partition.leadership.leads and is_light(found.config, data, zstd):
            try:
                summary = validate_batch(data, INLINE_EXPANDED)
            except CodecError:  # to be checked at length, or refused
                return _produce_one(session, topic, batch, acks, timeout_ms, zstd)
            try:
                appended = partition.append(data, summary, acks, broker.now())
            except KorvetError as error:
                remember_refusal(session, topic, index, data, error)
                return index, forget_frames(error), -1, -1, -1
            base, time, start, done = appended
            if done is None:
                return index, NO_ERROR, base, time, start
            return PendingOutcome(session, index, partition, data, appended, acks, timeout_ms)
    return _produce_one(session, topic, batch, acks, timeout_ms, zstd)


async def _produce_one(
    session: ClientSession, topic: str, batch: Batch, acks: int, timeout_ms: int, zstd: bool
) -> Outcome:
    ((outcome,),), _ = await produce(session, [(topic, [batch])], acks, timeout_ms, zstd)
    return outcome


async def produce(
    session: ClientSession,
    topics: Sequence[tuple[str, Sequence[Batch]]],
    acks: int,
    timeout_ms: int,
    zstd: bool = True,
    refuse: Refuse | None = None,
) -> tuple[list[list[Outcome]], bool]:
    """Append these batches, and wait until `acks` is reached.

    Returns for each topic the outcomes, in the order of batches, and whether there is an error among them. `acks` as in
    Kafka: 0, 1 or -1. `zstd`: whether clients of this protocol know it.
    """
    request = _Produce(session, acks, zstd, refuse if acks in ACKS else _refuse_acks)
    results: list[list[Outcome]] = [[] for _ in topics]
    try:
        await request.append_all(topics, results)
        if request.turn is not None:
            await request.append_in_turn(request.turn)
    finally:
        if request.turn is not None:
            request.turn.end()
    if request.pending:
        await settle_all(session, request.pending, acks, timeout_ms)
    return results, request.failed or any(one.failed for one in request.pending)


class _Produce:
    """One request. `turn`: its place among those of its connection, if it cannot append at once.

    `failed`: whether a partition failed at once. `pending` knows the outcomes of the others.
    """

    __slots__ = ("_acks", "_now", "_refuse", "_session", "_zstd", "failed", "pending", "turn")

    def __init__(self, session: ClientSession, acks: int, zstd: bool, refuse: Refuse | None) -> None:
        self._session = session
        self._acks = acks
        self._now = session.broker.now()
        self._zstd = zstd
        self._refuse = refuse
        self.failed = False
        self.pending: list[PendingAppend] = []
        # Earlier produces of the connection are appended first.
        self.turn = ProduceTurn(session) if session.last_produce is not None else None

    async def append_all(self, topics: Sequence[tuple[str, Sequence[Batch]]], results: list[list[Outcome]]) -> None:
        """Append to many partitions, and let others have their turn between."""
        broker, pace = self._session.broker, self._session.pace()
        for (topic, batches), outcomes in zip(topics, results, strict=True):
            found = broker.leader_partitions(topic)
            led, light = ((), 0) if found is None else (found.partitions, find_light_size(found.config, self._zstd))
            for start in range(0, len(batches), _OFTEN):
                if self.turn is not None:
                    light = 0
                self._append(topic, led, light, batches[start : start + _OFTEN], outcomes)
                if pace.due():
                    self.turn = self.turn or ProduceTurn(self._session)
                    await pace.turn()

    def _append(
        self, topic: str, led: Sequence[Partition], light: int, batches: Sequence[Batch], outcomes: list[Outcome]
    ) -> None:
        """Append the batches that can be appended at once, and put off the rest; adds an outcome for each.

        `led`: the topic's partitions, of which this broker leads some. `light`: see `find_light_size`; 0 where every
        batch waits for its turn.
        """
        session, acks, now, refuse = self._session, self._acks, self._now, self._refuse
        refused, many = session.refused, len(led)
        for batch in batches:
            index, data = batch["index"], batch["records"]
            try:
                if refuse is not None and (refusal := refuse(topic, index)) is not None:
                    raise refusal
                if not (0 <= index < many and (partition := led[index]).leadership.leads):
                    partition = session.broker.partition(topic, index)
                if data and len(data) <= light:
                    summary = validate_batch(data, INLINE_EXPANDED)
                else:
                    heavy = is_heavy(partition, data, self._zstd)
                    if heavy or self.turn is not None:
                        light = 0  # the requests behind this one wait for their turn too
                        self._put_off(index, partition, data, heavy, outcomes)
                        continue
                    assert data is not None
                    data, summary = check(data, partition)
                if refused:
                    refused.check(partition.name, partition.producers, summary[4])
                appended = partition.append(data, summary, acks, now)
                base, time, start, done = appended
                if done is None:
                    outcomes.append((index, NO_ERROR, base, time, start))
                else:
                    self.pending.append(PendingAppend(index, partition, outcomes, None, appended, data))
            except CodecError as error:
                if error.code == UNPACKS_TO_MUCH and self.turn is None:
                    light = 0
                    self._put_off(index, partition, data, True, outcomes)
                else:
                    outcomes.append((index, blame_records(error), -1, -1, -1))
                    self.failed = True
            except KorvetError as error:
                remember_refusal(session, topic, index, data, error)
                outcomes.append((index, forget_frames(error), -1, -1, -1))
                self.failed = True

    def _put_off(
        self, index: int, partition: Partition | None, data: Records | None, heavy: bool, outcomes: list[Outcome]
    ) -> None:
        """Append this batch, and those after it, when the connection's earlier produces have been appended."""
        assert partition is not None
        assert data is not None
        self.turn = self.turn or ProduceTurn(self._session)
        checked = begin_check(self._session, data, partition, heavy)
        self.pending.append(PendingAppend(index, partition, outcomes, checked))

    async def append_in_turn(self, turn: ProduceTurn) -> None:
        """Append the rest when the checks are done and every earlier produce of this connection has appended."""
        checking = [one.checked for one in self.pending if isinstance(one.checked, Future)]
        if checking:
            await wait(checking)
        if turn.before is not None:
            await turn.before
        now = self._session.broker.now()
        pace = self._session.pace()
        for one in self.pending:
            if one.appended is None:
                one.append(self._session, self._acks, now)
            if pace.due():
                await pace.turn()


def _refuse_acks(_: str, __: int) -> KorvetError:
    return KorvetError(Errors.INVALID_REQUIRED_ACKS)
