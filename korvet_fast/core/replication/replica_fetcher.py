"""Copying the logs that another broker leads: ask where epochs end, truncate, fetch, append, flush, and again.

Fetched records are on this broker's disk before the next fetch confirms them. A log that cannot be written here is
left out for a while, and for good once its store takes nothing more (Kafka's offline replica): the leader hears no more
of it, and takes it out of the in-sync replicas.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from math import inf

from korvet_fast.core.clock import Clock
from korvet_fast.core.eager import gather_bounded
from korvet_fast.core.replication import copying
from korvet_fast.core.replication.peers import EpochRequest, FetchedLog, FetchPosition, Peers
from korvet_fast.core.replication.replica import Replica
from korvet_fast.errors import NONE, Errors, StoreError

logger = logging.getLogger(__name__)

LONGEST_WAIT_MS = 500  # ms that a leader may wait for more
_AGAIN = 0.1  # seconds after a failure
_BACKOFF = 1.0  # seconds until a log is tried again that could not be written; as Kafka's replica.fetch.backoff.ms

# The broker to ask, and the logs to ask for; an empty list: for nothing, at this moment.
FindLogs = Callable[[], tuple[int, Sequence[Replica]]]


class ReplicaFetcher:
    """Copies logs from one broker until it is stopped. `wait_ms`: that the broker may wait for more.

    `on_leader` is told of whom others say that they lead a log. `rate`: of logs that catch up, which it copies then,
    bytes a second. `reached`: whether the broker answered the last time.
    `silent` is shared by all fetchers of this broker: the brokers that did not answer the last time, and what the log
    says of each ("": nothing yet).
    """

    def __init__(
        self,
        peers: Peers,
        clock: Clock,
        find: FindLogs,
        silent: dict[int, str],
        wait_ms: int = LONGEST_WAIT_MS,
        on_leader: Callable[[FetchedLog], None] = lambda _: None,
        rate: int | None = None,
    ) -> None:
        self.reached = False
        self._peers = peers
        self._clock = clock
        self._find = find
        self._silent = silent
        self._wait_ms = wait_ms
        self._on_leader = on_leader
        self._rate = rate
        self._copied = 0  # bytes
        self._changed = asyncio.Event()
        self._complaint = ""

    def change(self) -> None:
        """There may be other logs to copy."""
        self._changed.set()

    async def run(self) -> None:
        """Copy until cancelled."""
        while True:
            self._changed.clear()
            broker, replicas = self._find()
            began, self._copied = self._clock.monotonic(), 0
            due = [one for one in replicas if one.retry_at <= began]
            if not due:
                await self._await_change(min((one.retry_at for one in replicas), default=inf))
                continue
            try:
                moved = await self.fetch(broker, due)
                self.reached, self._complaint = True, ""
                self._silent.pop(broker, None)
            except StoreError as error:
                self._complain(broker, error.detail)
                self.reached = moved = False
            if not moved:
                await self._clock.sleep(_AGAIN)
            elif self._rate is not None and self._copied:
                await self._clock.sleep(max(0.0, began + self._copied / self._rate - self._clock.monotonic()))

    def _complain(self, broker: int, reason: str) -> None:
        """Log why a broker does not answer, unless this fetcher or another one has logged the same of it."""
        told = self._silent.setdefault(broker, "")
        if self.reached:  # a connection that broke: the next attempt, which comes at once, says why
            logger.debug("broker %d: %s", broker, reason)
            return
        if reason not in (self._complaint, told):
            name = f"broker {broker}: "  # what was asked of the broker names it, as a rule
            logger.warning("%s%s", name, reason.removeprefix(name))
            self._silent[broker] = reason
        self._complaint = reason

    async def _await_change(self, until: float) -> None:
        """Until there may be other logs to copy, or it is this late."""
        if until == inf:
            await self._changed.wait()
            return
        timer = self._clock.call_later(until - self._clock.monotonic(), self.change)
        try:
            await self._changed.wait()
        finally:
            timer.cancel()

    async def fetch(self, broker: int, replicas: Sequence[Replica]) -> bool:
        """Copy once. Returns whether any of these logs was followed. Raises `StoreError` if the broker says nothing."""
        asking = [one for one in replicas if one.state.asking is not None]
        if asking:
            await self._settle(broker, asking)
        ready = [one for one in replicas if one.state.asking is None and one.state.leader == broker]
        return bool(ready) and await self._copy(broker, ready)

    def _put_off(self, replica: Replica, failure: Exception) -> None:
        """A log could not be copied. Where its store has logged that, nothing is written before a restart."""
        known = failure if isinstance(failure, StoreError) else None
        text, logged = (known.detail, known.logged) if known is not None else (repr(failure), False)
        replica.retry_at = inf if logged else self._clock.monotonic() + _BACKOFF
        if not logged and text != replica.failure:
            trace = failure if known is None else None
            logger.warning("%s is not copied, and tried again: %s", replica.name, text, exc_info=trace)
        replica.failure = text

    async def _settle(self, broker: int, replicas: Sequence[Replica]) -> None:
        """Truncate the records that the leader does not have."""
        asked = [
            EpochRequest(one.qualified_name, one.state.epoch, one.state.asking)
            for one in replicas
            if one.state.asking is not None
        ]
        answers = {
            one.log: one for one in await self._peers.find_epoch_ends(broker, asked, catching_up=self._rate is not None)
        }
        for replica, request in zip(replicas, asked, strict=True):
            answer = answers.get(request.log)
            if answer is not None and answer.error is NONE:
                try:
                    await copying.settle_divergence(replica, request.leader_epoch, request.epoch, answer.end)
                except Exception as error:  # noqa: BLE001  (logged; the other logs are copied)
                    self._put_off(replica, error)

    async def _copy(self, broker: int, ready: Sequence[Replica]) -> bool:
        """Copy these logs. Returns whether any was followed."""
        positions = [FetchPosition(one.qualified_name, one.state.epoch, one.state.end) for one in ready]
        answers = await self._peers.fetch(broker, positions, self._wait_ms, catching_up=self._rate is not None)
        by_name = {one.log: one for one in answers}
        rows = [
            (replica, position, by_name[position.log])
            for replica, position in zip(ready, positions, strict=True)
            if position.log in by_name
        ]
        applied: list[bool] = []

        async def take(row: tuple[Replica, FetchPosition, FetchedLog]) -> None:
            replica = row[0]
            try:
                applied.append(await self._apply(*row))
            except Exception as error:  # noqa: BLE001  (logged; the other logs are copied)
                self._put_off(replica, error)
            else:
                if applied[-1] and replica.failure:
                    logger.info("%s is copied again", replica.name)
                    replica.failure = ""

        await gather_bounded(rows, take)
        return any(applied)

    async def _apply(self, replica: Replica, position: FetchPosition, answer: FetchedLog) -> bool:
        """Take what the leader said of one log. Returns whether the log was followed."""
        if replica.progress is not None or (replica.state.epoch, replica.end) != (position.epoch, position.offset):
            return False  # another leadership has begun meanwhile, or the other fetcher of this broker has the log now
        if answer.error == Errors.OFFSET_OUT_OF_RANGE:
            if answer.start > position.offset:
                await copying.restart(replica, answer.start)
            elif replica.epochs.entries:
                replica.state.asking = replica.epochs.last
            else:
                await copying.restart(replica, answer.start)
        elif answer.error is not NONE:
            self._on_leader(answer)
        else:
            for records in answer.records:
                if not await copying.copy(replica, position.epoch, replica.state.end, records):
                    return False
                self._copied += len(records)
            await copying.follow_leader_log(replica, answer.start, answer.high_watermark)
            return True
        return False
