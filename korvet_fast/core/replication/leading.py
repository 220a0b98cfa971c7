"""The leader's side of replication: answers followers' fetches, and tells where leader epochs end."""

import asyncio
from collections.abc import Callable, Sequence

from korvet_fast.core.clock import Clock
from korvet_fast.core.fair_queue import BackgroundPace
from korvet_fast.core.partition.leader_epochs import epoch_error
from korvet_fast.core.replication.peers import EpochEnd, EpochRequest, FetchedLog, FetchPosition, split_qualified
from korvet_fast.core.replication.replica import OutOfRange, Replica
from korvet_fast.errors import Errors, StoreError
from korvet_fast.rate_limited_log import RateLimitedLog

_LOG_BYTES = 1 << 20  # bytes of one log in an answer, about; more where few logs are asked for
ANSWER_BYTES = 8 << 20  # bytes of records in an answer, about


class NotLed(Exception):
    """This broker does not lead the log under the named epoch; `leader` and `epoch`: the present ones, if known."""

    def __init__(self, error: Errors, leader: int, epoch: int) -> None:
        super().__init__(error)
        self.error = error
        self.leader = leader
        self.epoch = epoch


class LeaderSide:
    """`find` gives this broker's copy of a log, if it has one; `find_leader` its leader, and the leader epoch.

    `on_fetch` is told of a log's follower that has fetched.
    """

    def __init__(
        self,
        find: Callable[[str], Replica | None],
        clock: Clock,
        find_leader: Callable[[str], tuple[int, int]],
        on_fetch: Callable[[Replica], None],
    ) -> None:
        self._find_replica = find
        self._clock = clock
        self._find_leader = find_leader
        self._on_fetch = on_fetch
        self._log = RateLimitedLog(clock.monotonic)
        self._first: dict[int, str] = {}  # by follower: the log that its next answer begins with

    async def fetch(
        self,
        follower: int,
        positions: Sequence[FetchPosition],
        wait_ms: int,
        room: int = ANSWER_BYTES,
        *,
        copy: bool = False,
    ) -> list[FetchedLog]:
        """Answer a fetch: at once if there is anything to tell, else when there is. Raises `StoreError`.

        `room`: bytes of records in the answer, about; a log that has any gives one batch at least, if there is room.
        `copy`: see `store.interface.Read`.
        """
        until = self._clock.monotonic() + wait_ms / 1000
        refused: dict[str, FetchedLog] = {}
        led: list[tuple[Replica, FetchPosition]] = []
        pace = BackgroundPace()
        for position in positions:
            if pace.due():
                await pace.turn()
            try:
                replica = self._note(follower, position)
            except NotLed as error:
                refused[position.log] = FetchedLog(position.log, error.error, leader=error.leader, epoch=error.epoch)
            except OutOfRange as error:
                refused[position.log] = FetchedLog(position.log, Errors.OFFSET_OUT_OF_RANGE, start=error.start)
            else:
                led.append((replica, position))
        if (
            wait_ms > 0
            and not refused
            and not any(self._has_news(follower, replica, position) for replica, position in led)
        ):
            await self._await_more([replica for replica, _ in led], until)
        answers, share = list(refused.values()), max(_LOG_BYTES, room // max(1, len(led)))
        for replica, position in self._rotate(follower, led):
            if pace.due():
                await pace.turn()
            if room <= 0:
                self._first.setdefault(follower, position.log)
            answer = await self._read(follower, replica, position, min(room, share), copy=copy)
            room -= sum(len(records) for records in answer.records)
            answers.append(answer)
        return answers

    def _rotate(self, follower: int, led: list[tuple[Replica, FetchPosition]]) -> list[tuple[Replica, FetchPosition]]:
        """Begin with the first log that had no room in the answer before, as Kafka's fetch sessions do."""
        first = self._first.pop(follower, None)
        at = next((at for at, (_, position) in enumerate(led) if position.log == first), 0)
        return led[at:] + led[:at]

    def _note(self, follower: int, position: FetchPosition) -> Replica:
        """Note how far a follower is. Raises `NotLed` and `OutOfRange`."""
        replica = self._find(position.log, position.epoch)
        progress = replica.progress
        if progress is None or not progress.knows(follower):
            raise NotLed(Errors.NOT_LEADER_OR_FOLLOWER, -1, -1)
        replica.note_fetch(follower, position.offset, self._clock.monotonic())
        self._on_fetch(replica)
        return replica

    def _find(self, log: str, epoch: int) -> Replica:
        """The log, if this broker leads it under `epoch`. Raises `NotLed`.

        What a follower has of a deleted topic says nothing of the log of a new one, though their epochs are the same.
        """
        name, topic = split_qualified(log)
        replica = self._find_replica(name)
        if replica is None or replica.progress is None or topic not in ("", replica.topic):
            raise NotLed(Errors.NOT_LEADER_OR_FOLLOWER, *self._find_leader(name))
        present = replica.progress.epoch
        if epoch != present:
            raise NotLed(epoch_error(epoch, present), *self._find_leader(name))
        return replica

    def _has_news(self, follower: int, replica: Replica, position: FetchPosition) -> bool:
        if replica.end > position.offset:
            return True
        return replica.tells_watermark and replica.told.get(follower) != _find_told(replica)

    async def _await_more(self, replicas: Sequence[Replica], until: float) -> None:
        """Wait until one of these logs has more, or has another leader, or the time is over."""
        more: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        for replica in replicas:
            replica.await_more(more)

        def end() -> None:
            if not more.done():
                more.set_result(None)

        timer = self._clock.call_later(max(0.0, until - self._clock.monotonic()), end)
        try:
            await more
        finally:
            timer.cancel()
            for replica in replicas:
                replica.forget(more)

    async def _read(
        self, follower: int, replica: Replica, position: FetchPosition, room: int, *, copy: bool
    ) -> FetchedLog:
        try:
            self._find(position.log, position.epoch)  # while it waited, another broker may have become the leader
        except NotLed as error:
            return FetchedLog(position.log, error.error, leader=error.leader, epoch=error.epoch)
        records: Sequence[bytes | bytearray | memoryview] = ()
        if room > 0 and position.offset < replica.end:
            try:
                records = (await replica.opened.read(position.offset, room, replica.end, copy=copy)).data
            except StoreError as error:  # the other logs can be read
                self._log.fail("read", f"{replica.name} cannot be copied: {error.detail}")
                return FetchedLog(position.log, Errors.KAFKA_STORAGE_ERROR)
        told = replica.told[follower] = _find_told(replica)
        return FetchedLog(position.log, high_watermark=told, start=replica.start, records=records)

    def find_epoch_ends(self, asked: Sequence[EpochRequest]) -> list[EpochEnd]:
        """The ends of epochs in the logs that this broker leads."""
        return [self._find_epoch_end(one) for one in asked]

    def _find_epoch_end(self, asked: EpochRequest) -> EpochEnd:
        try:
            replica = self._find(asked.log, asked.leader_epoch)
        except NotLed as error:
            return EpochEnd(asked.log, error.error)
        return EpochEnd(asked.log, Errors.NONE, replica.epochs.find_end(asked.epoch, replica.start, replica.end))


def _find_told(replica: Replica) -> int:
    return replica.progress.told_high_watermark if replica.progress is not None else -1
