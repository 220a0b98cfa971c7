"""Copying the logs that another broker leads: ask where epochs end, truncate, fetch, append, flush, and again.

Fetched records are on this broker's disk before the next fetch confirms them.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from korvet_fast.core.clock import Clock
from korvet_fast.core.eager import gather_bounded
from korvet_fast.core.replication.peers import EpochRequest, FetchedLog, FetchPosition, Peers
from korvet_fast.core.replication.replica import Replica
from korvet_fast.errors import NONE, Errors, StoreError

logger = logging.getLogger(__name__)

LONGEST_WAIT_MS = 500  # ms that a leader may wait for more
_AGAIN = 0.1  # seconds after a failure

# The broker to ask, and the logs to ask for; an empty list: for nothing, at this moment.
FindLogs = Callable[[], tuple[int, Sequence[Replica]]]


class ReplicaFetcher:
    """Copies logs from one broker until it is stopped. `wait_ms`: that the broker may wait for more.

    `on_leader` is told of whom others say that they lead a log. `rate`: of logs that catch up, which it copies then,
    bytes a second. `reached`: whether the broker answered the last time.
    """

    def __init__(
        self,
        peers: Peers,
        clock: Clock,
        find: FindLogs,
        wait_ms: int = LONGEST_WAIT_MS,
        on_leader: Callable[[FetchedLog], None] = lambda _: None,
        rate: int | None = None,
    ) -> None:
        self.reached = False
        self._peers = peers
        self._clock = clock
        self._find = find
        self._wait_ms = wait_ms
        self._on_leader = on_leader
        self._rate = rate
        self._copied = 0  # bytes
        self._changed = asyncio.Event()
        self._complaint = ""
        self._failure: StoreError | None = None
        self._followed = False

    def change(self) -> None:
        """There may be other logs to copy."""
        self._changed.set()

    async def run(self) -> None:
        """Copy until cancelled."""
        while True:
            self._changed.clear()
            broker, replicas = self._find()
            if not replicas:
                await self._changed.wait()
                continue
            began, self._copied = self._clock.monotonic(), 0
            try:
                moved = await self.fetch(broker, replicas)
                self.reached, self._complaint = True, ""
            except StoreError as error:
                self.reached = moved = False
                if error.detail != self._complaint:
                    self._complaint = error.detail
                    logger.warning("broker %d: %s", broker, error.detail)
            if not moved:
                await self._clock.sleep(_AGAIN)
            elif self._rate is not None and self._copied:
                await self._clock.sleep(max(0.0, began + self._copied / self._rate - self._clock.monotonic()))

    async def fetch(self, broker: int, replicas: Sequence[Replica]) -> bool:
        """Copy once. Returns whether any of these logs was followed. Raises `StoreError`, after all had their turn."""
        asking = [one for one in replicas if one.state.asking is not None]
        if asking:
            await self._settle(broker, asking)
        ready = [one for one in replicas if one.state.asking is None and one.state.leader == broker]
        if not ready:
            return False
        positions = [FetchPosition(one.name, one.state.epoch, one.state.end) for one in ready]
        answers = await self._peers.fetch(broker, positions, self._wait_ms, catching_up=self._rate is not None)
        by_name = {one.log: one for one in answers}
        rows = [
            (replica, position, by_name[replica.name])
            for replica, position in zip(ready, positions, strict=True)
            if replica.name in by_name
        ]
        self._failure, self._followed = None, False
        await gather_bounded(rows, self._take)
        if self._failure is not None:
            raise self._failure
        return self._followed

    async def _settle(self, broker: int, replicas: Sequence[Replica]) -> None:
        """Truncate the records that the leader does not have."""
        asked = [
            EpochRequest(one.name, one.state.epoch, one.state.asking)
            for one in replicas
            if one.state.asking is not None
        ]
        answers = {
            one.log: one for one in await self._peers.find_epoch_ends(broker, asked, catching_up=self._rate is not None)
        }
        for replica, request in zip(replicas, asked, strict=True):
            answer = answers.get(request.log)
            if answer is not None and answer.error is NONE:
                await replica.settle_divergence(request.leader_epoch, request.epoch, answer.end)

    async def _take(self, row: tuple[Replica, FetchPosition, FetchedLog]) -> None:
        """Take one log's answer; a failure is kept, as it must not keep the others from theirs."""
        try:
            await self._apply(*row)
        except StoreError as error:
            self._failure = error

    async def _apply(self, replica: Replica, position: FetchPosition, answer: FetchedLog) -> None:
        if replica.progress is not None or (replica.state.epoch, replica.end) != (position.epoch, position.offset):
            return  # another leadership has begun meanwhile, or the other fetcher of this broker has the log now
        if answer.error == Errors.OFFSET_OUT_OF_RANGE:
            if answer.start > position.offset:
                await replica.restart(answer.start)
            elif replica.epochs.entries:
                replica.state.asking = replica.epochs.last
            else:
                await replica.restart(answer.start)
        elif answer.error is not NONE:
            self._on_leader(answer)
        else:
            for records in answer.records:
                if not await replica.copy(position.epoch, replica.state.end, records):
                    return
                self._copied += len(records)
            await replica.follow_leader_log(answer.start, answer.high_watermark)
            self._followed = True
