"""Transactions in the producer's virtual world: a coordinator, and callers whose coroutines run without an event loop.

The cluster is Apache Kafka's from 3.6 on: a leader asks the coordinator whether a batch belongs to an open transaction
(KIP-890), so what comes late is refused, and the end of a transaction is seen at all its partitions at once.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from korvet_fast._native import batch_headers
from korvet_fast.client.producer.message import Cancelled
from korvet_fast.client.producer.pipeline import Action, AddPartitions
from korvet_fast.client.producer.transaction_coordinator import CoordinatorRefused
from korvet_fast.client.producer.transactions import Transactions
from korvet_fast.client.protocol.errors import Unreachable, explain
from korvet_fast.client.protocol.transactions import ADD_PARTITIONS_TO_TXN, END_TXN
from korvet_fast.wire.kafka.shapes.message import Message
from korvet_fast.wire.kafka.shapes.producers import INIT_PRODUCER_ID
from producer_cluster import SimulatedCluster, TopicPartition
from producer_world import LATENCY, ProducerWorld

INVALID_TXN_STATE, PRODUCER_FENCED = 48, 90
TRANSACTIONAL = 0x10  # of a batch's attributes


class Fate(StrEnum):
    """The fate of one request to the coordinator."""

    NONE = "none"
    LOST = "it never comes"
    UNANSWERED = "carried out, never answered"
    LATE = "carried out when the producer has given up"
    REPEATED = "carried out twice, since the first answer was lost"


class _Until:
    """Waits until something is so."""

    def __init__(self, reached: Callable[[], bool]) -> None:
        self._reached = reached

    def __await__(self) -> Generator[Callable[[], bool], None, None]:
        if not self._reached():
            yield self._reached


@dataclass
class _Task:
    work: Coroutine[Any, Any, None]
    reached: Callable[[], bool] = lambda: True


class Open(NamedTuple):
    """A transaction at the coordinator."""

    number: int
    partitions: set[TopicPartition]


@dataclass
class SimulatedCoordinator:
    """One transactional id. `ends`: of transactions by number, True: committed."""

    producer_id: int = 1
    epoch: int = -1
    open: Open | None = None
    ends: dict[int, bool] = field(default_factory=dict)
    began: int = 0
    _replaced: int | None = None  # the epoch that its own producer asked to have replaced
    _last: tuple[int, bool] | None = None  # epoch and end of the last transaction that a producer ended

    def handle(self, message: Message, values: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        """An error code and the answer."""
        epoch = values.get("producer_epoch")
        if message is INIT_PRODUCER_ID:
            return self._init(epoch)
        if epoch != self.epoch:
            return PRODUCER_FENCED, {}
        if message is ADD_PARTITIONS_TO_TXN:
            return self._add((row["name"], index) for row in values["topics"] for index in row["partitions"])
        assert message is END_TXN
        return self._end(values["committed"])

    def init(self) -> None:
        """Another producer begins."""
        self._end_open(committed=False)
        self.epoch += 1
        self._replaced = self._last = None

    def _init(self, epoch: int | None) -> tuple[int, dict[str, Any]]:
        if epoch is not None and epoch not in (self.epoch, self._replaced):
            return PRODUCER_FENCED, {}
        if epoch is None or epoch == self.epoch:
            self.init()
            self._replaced = epoch
        return 0, {"error_code": 0, "producer_id": self.producer_id, "producer_epoch": self.epoch}

    def _add(self, partitions: Any) -> tuple[int, dict[str, Any]]:
        if self.open is None:
            self.began += 1
            self.open = Open(self.began, set())
        self.open.partitions.update(partitions)
        return 0, {"results": []}

    def _end(self, committed: bool) -> tuple[int, dict[str, Any]]:
        if self.open is None and self._last != (self.epoch, committed):
            return INVALID_TXN_STATE, {}
        self._end_open(committed)
        self._last = self.epoch, committed
        return 0, {"error_code": 0}

    def _end_open(self, committed: bool) -> None:
        if self.open is not None:
            self.ends[self.open.number] = committed
        self.open = None


class TransactionCluster(SimulatedCluster):
    """`owners`: the number of the transaction that each record of a log belongs to."""

    def __init__(self, coordinator: SimulatedCoordinator, **given: Any) -> None:
        super().__init__(**given)
        self.producer_ids = 1
        self.coordinator = coordinator
        self.owners: dict[TopicPartition, list[int]] = {where: [] for where in self.logs}

    def committed(self, where: TopicPartition) -> list[bytes]:
        """The values that a consumer with isolation.level=read_committed sees."""
        rows = zip(self.logs[where].values, self.owners[where], strict=True)
        return [value for value, number in rows if self.coordinator.ends[number]]

    def _append(self, node: int, where: TopicPartition, data: bytes) -> tuple[int, int]:
        (header,) = batch_headers(data, True)
        assert int.from_bytes(data[21:23], "big") & TRANSACTIONAL, "every batch of such a producer says so"
        current, epoch = self.coordinator.open, self.coordinator.epoch
        if current is None or where not in current.partitions or header.producer_epoch != epoch:
            return INVALID_TXN_STATE, -1
        log = self.logs[where].values
        before = len(log)
        answer = super()._append(node, where, data)
        self.owners[where] += [current.number] * (len(log) - before)
        return answer


class TransactionWorld(ProducerWorld):
    """`fates`: of the next requests to the coordinator."""

    def __init__(self, seed: int, topics: tuple[str, ...], **settings: Any) -> None:
        self._tasks: list[_Task] = []
        self._told = 0  # messages that ended and were looked at
        self.coordinator = SimulatedCoordinator()
        self.transactional = TransactionCluster(self.coordinator, topics=topics)
        super().__init__(seed, self.transactional, transactional_id="simulated", **settings)
        self.fates: deque[Fate] = deque()
        asker: Any = self
        self.transactions = Transactions(self.config, self.pipeline, asker, _Until, lambda: None)

    @property
    def idle(self) -> bool:
        """Whether every caller has come to its end."""
        return not self._tasks

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Have a caller's coroutine go on whenever what it waits for is so."""
        self._tasks.append(_Task(work))

    def sleep(self, seconds: float) -> Awaitable[None]:
        """Wait in virtual time."""
        until = self.now + seconds
        self._at(seconds, lambda: None)
        return _Until(lambda: self.now >= until)

    def soon(self, work: Callable[[], None]) -> None:
        """Do something when no caller's coroutine is at work."""
        self._at(0.0, work)

    def pump(self) -> None:
        busy = True
        while busy:
            super().pump()
            for each in self.ended[self._told :]:
                if each.error is not None and not isinstance(each.error, Cancelled):
                    self.transactions.state.fail(each.error)
            self._told = len(self.ended)
            busy = self._advance()

    async def ask(
        self, message: Message, values: Mapping[str, Any], codes: Callable[[Mapping[str, Any]], Sequence[int]]
    ) -> dict[str, Any]:
        """The transaction's coordinator, in place of `TransactionCoordinator`."""
        fate = self.fates.popleft() if self.fates else Fate.NONE
        await self.sleep(self.random.uniform(1, 5) * LATENCY)
        if fate is Fate.LATE:
            self._at(self.random.uniform(1, 100), lambda: self.coordinator.handle(message, values))
        code, answer = (0, {}) if fate in (Fate.LOST, Fate.LATE) else self.coordinator.handle(message, values)
        if fate is Fate.REPEATED:
            code, answer = self.coordinator.handle(message, values)
        if fate in (Fate.LOST, Fate.LATE, Fate.UNANSWERED):
            await self.sleep(self.config.delivery_timeout)
            raise Unreachable("the coordinator did not answer")
        await self.sleep(LATENCY)
        if code:
            raise CoordinatorRefused(f"{message.name}: {explain(code)}", code)
        return answer

    def _control(self, action: Action) -> None:  # type: ignore[override]
        if isinstance(action, AddPartitions):
            self.start(self.transactions.add(action.partitions))
        else:
            super()._control(action)  # type: ignore[arg-type]

    def _advance(self) -> bool:
        """Let the callers go on that can. Whether any could."""
        ready = [task for task in self._tasks if task.reached()]
        for task in ready:
            try:
                task.reached = task.work.send(None)
            except StopIteration:
                self._tasks.remove(task)
        return bool(ready)
