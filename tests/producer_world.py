"""The producer's stages, a cluster and a network under one virtual clock: what a driver does, without waiting."""

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any

from korvet_fast.client.producer.broker_producer import Connect, Disconnect, Produce, ProduceRequest
from korvet_fast.client.producer.config import read_config
from korvet_fast.client.producer.message import DeliveryFailed, Message, Outcome, QueuedRecords
from korvet_fast.client.producer.message_run import MessageRun
from korvet_fast.client.producer.pipeline import Action, FetchMetadata, InitProducerId, Pipeline
from korvet_fast.client.protocol.errors import ClientError, ConnectionLost, Unreachable
from korvet_fast.client.protocol.requests import check_producer_id
from korvet_fast.endpoint import Address
from producer_cluster import (
    INVALID_RECORD,
    NOT_LEADER,
    TIMED_OUT,
    TOO_FEW,
    TOO_FEW_AFTER,
    UNKNOWN_TOPIC,
    SimulatedCluster,
)
from producer_messages import SentMessage, SentMessages

Sent = QueuedRecords | SentMessage


class Fault(StrEnum):
    """The fate of one Produce request."""

    NONE = "none"
    NOT_SENT = "not sent"  # the connection was gone already
    LOST = "lost"  # it dies before the broker has the request
    DIES = "dies"  # the broker carries it out, the answer is lost with the connection
    LATE = "late"  # the connection dies, and the broker carries it out much later
    SILENT = "silent"  # carried out, never answered
    SLOW = "slow"  # answered late, but in time
    TOO_FEW = "too few replicas"
    TOO_FEW_AFTER = "too few replicas after append"
    TIMED_OUT = "timed out after append"
    NOT_LEADER_AFTER = "not leader after append"
    INVALID = "invalid record"
    UNEXPECTED = "unknown server error after append"
    MISSING = "the answer leaves the partitions out"
    TWICE = "the answer names the partitions twice"
    STRANGERS = "the answer names partitions nobody asked for"
    THROTTLED = "throttled"


_BEFORE = {Fault.TOO_FEW: TOO_FEW, Fault.INVALID: INVALID_RECORD}
_AFTER = {
    Fault.TOO_FEW_AFTER: TOO_FEW_AFTER,
    Fault.TIMED_OUT: TIMED_OUT,
    Fault.NOT_LEADER_AFTER: NOT_LEADER,
    Fault.UNEXPECTED: -1,
}
LATENCY = 0.002  # seconds one way


class ProducerWorld:
    """`now`: the virtual time. `sent`: all messages accepted, in order. `faults`: of the next Produce requests."""

    def __init__(self, seed: int = 0, cluster: SimulatedCluster | None = None, **settings: Any) -> None:
        self.random = Random(seed)
        self.cluster = cluster or SimulatedCluster()
        self.pipeline = Pipeline(read_config(settings), Random(seed))
        self.config = self.pipeline.config
        self.now = 1000.0
        self.messages = SentMessages(self.pipeline)
        self.sent: list[Sent] = []
        self.ended: list[Sent] = []
        self.ended_at: dict[Sent, float] = {}
        self.faults: deque[Fault] = deque()
        self.control_fails = 0  # so many of the next Metadata and InitProducerId requests get no answer
        self.control_error: ClientError = ConnectionLost("no answer")
        self.connect_error: ClientError | None = None  # of every connection to a leader
        self.down: set[int] = set()
        self.requests: list[tuple[float, Address, ProduceRequest]] = []
        self.bytes_of: dict[tuple[str, int, int, int, int], bytes] = {}  # by partition and identity -> batch
        self.actions: list[Action] = []
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._generation: dict[Address, int] = {}  # of connections
        self._busy_until: dict[Address, float] = {}
        self._values = count()

    # What a test does.

    def send(
        self, topic: str = "t", partition: int = -1, key: bytes | None = None, size: int = 0, wait: bool = False
    ) -> QueuedRecords:
        """Offer one message with a value of its own. Raises as `Dispatcher.enqueue`."""
        value = b"%d:" % next(self._values)
        records = QueuedRecords(topic, (value + b"." * size,), None if key is None else (key,), (), partition, 1)
        self.pipeline.dispatcher.enqueue(records, self.now, wait)
        self.sent.append(records)
        self.pump()
        return records

    def send_together(self, topic: str, partition: int, times: int) -> None:
        """Send messages in one turn of the loop, with and without keys; the pipeline runs when `pump` is called."""
        for _ in range(times):
            value = b"%d:" % next(self._values)
            value += b"." * self.random.choice([0, 0, 0, 30])
            key = b"k%d" % self.random.randrange(4) if self.random.random() < 0.3 else None
            headers = [("h", b"v")] if self.random.random() < 0.1 else ()
            named = None if partition < 0 else partition
            message = Message(topic, value, key, headers, named, self.random.randrange(1 << 40))
            wait = self.random.random() < 0.5
            with suppress(DeliveryFailed):  # no memory, or the partition is stopped: it was not accepted
                self.sent.append(self.messages.send(message, self.now, wait))

    def run(self, seconds: float) -> None:
        """Let time pass."""
        end = self.now + seconds
        self.pump()
        while True:
            times = [self._events[0][0]] if self._events else []
            wake = self.pipeline.next_time()
            if wake is not None:
                times.append(max(wake, self.now))
            if not times or min(times) > end:
                break
            self.now = max(self.now, min(times))
            while self._events and self._events[0][0] <= self.now:
                heappop(self._events)[2]()
                self.pump()
            self.pump()
        self.now = end
        self.pump()

    def run_until_ended(self, within: float) -> None:
        """Let time pass until every message has ended."""
        end = self.now + within
        while self.pipeline.ledger.counts.open:
            assert self.now < end, [(each.state, each.topic, each.partition) for each in self.sent if not each.outcome]
            self.run(min(0.25, end - self.now))

    def kill(self, node: int) -> None:
        """A broker goes away, and its connections with it."""
        self.down.add(node)
        self.cut(node)

    def cut(self, node: int) -> None:
        """A broker's connections break."""
        address = self.cluster.addresses[node]
        if address in self._generation:
            self._lose(address, self._generation[address])
        self.pump()

    def heal(self) -> None:
        """Everything works from now on."""
        self.down.clear()
        self.faults.clear()
        self.control_fails = 0
        self.cluster.hidden.clear()
        self.cluster.throttle = 0
        for (topic, index), leader in self.cluster.leaders.items():
            if leader is None:
                self.cluster.leaders[topic, index] = index % len(self.cluster.addresses)

    def log(self, topic: str, partition: int) -> list[bytes]:
        return self.cluster.logs[topic, partition].values

    # What a driver does.

    def pump(self) -> None:
        for action in self.pipeline.poll(self.now):
            self.actions.append(action)
            if isinstance(action, Connect):
                self._connect(action.broker)
            elif isinstance(action, Disconnect):
                self._generation.pop(action.broker, None)
            elif isinstance(action, Produce):
                self._produce(action.broker, action.request)
            else:
                self._control(action)
        ledger = self.pipeline.ledger
        assert ledger.memory.used <= ledger.memory.total
        while ledger.ended:
            records = ledger.ended.popleft()
            for each in self.messages.end(records) if isinstance(records, MessageRun) else [records]:
                assert each not in self.ended_at, "a message ends once"
                self.ended_at[each] = self.now
                self.ended.append(each)

    def _at(self, delay: float, event: Callable[[], None]) -> None:
        heappush(self._events, (self.now + delay, next(self._numbers), event))

    def _node(self, address: Address) -> int:
        return self.cluster.addresses.index(address)

    def _connect(self, address: Address) -> None:
        def connected() -> None:
            if self._node(address) in self.down or self.connect_error is not None:
                error = self.connect_error or Unreachable(f"{address} refuses")
                self.pipeline.lost(address, error, self.now)
            else:
                self._generation[address] = next(self._numbers)
                self._busy_until[address] = self.now
                self.pipeline.connected(address, self.now)

        self._at(2 * LATENCY, connected)

    def _lose(self, address: Address, generation: int) -> None:
        if self._generation.get(address) == generation:
            del self._generation[address]
            self.pipeline.lost(address, ConnectionLost(f"{address} went away"), self.now)

    def _control(self, action: FetchMetadata | InitProducerId) -> None:
        fails = self.control_fails > 0
        self.control_fails -= fails

        def answer() -> None:
            if isinstance(action, FetchMetadata):
                if fails:
                    self.pipeline.metadata_failed(self.control_error, self.now)
                else:
                    self.pipeline.metadata_received(self.cluster.metadata(action.topics), self.now)
            elif fails:
                self.pipeline.producer_id_failed(self.control_error, self.now)
            else:
                given = self.cluster.init_producer_id()
                try:
                    check_producer_id(given)
                except ClientError as error:
                    self.pipeline.producer_id_failed(error, self.now)
                else:
                    self.pipeline.producer_id_received(given["producer_id"], given["producer_epoch"])

        self._at(self.random.uniform(1, 3) * LATENCY, answer)

    def _produce(self, address: Address, request: ProduceRequest) -> None:
        self.requests.append((self.now, address, request))
        self._check_bytes(request)
        fault = self.faults.popleft() if self.faults else Fault.NONE
        generation = self._generation.get(address)
        if fault is Fault.NOT_SENT or generation is None:
            self.pipeline.not_sent(address, request, ConnectionLost("gone before"), self.now)
            if generation is not None:
                self._lose(address, generation)
            return
        if self.config.acks == 0:
            self.pipeline.answered(address, request, None, self.now)
        deadline = self.now + self.config.request_timeout
        self._at(self.config.request_timeout, lambda: self._time_out(address, generation, request))
        turn = max(self._busy_until[address], self.now + LATENCY)  # a broker takes a connection's requests in order
        turn += self.random.uniform(0, LATENCY)
        self._busy_until[address] = turn
        if fault is Fault.LATE:
            turn = self.now + self.random.uniform(0.01, 20)
            self._at(LATENCY, lambda: self._lose(address, generation))
        elif fault in (Fault.LOST, Fault.DIES):
            self._at(turn - self.now, lambda: self._lose(address, generation))
        if fault is not Fault.LOST:
            self._at(turn - self.now, lambda: self._serve(address, generation, request, fault, deadline))

    def _time_out(self, address: Address, generation: int, request: ProduceRequest) -> None:
        if request in self.pipeline.brokers.get(address).in_flight:
            self._lose(address, generation)

    def _serve(self, address: Address, generation: int, request: ProduceRequest, fault: Fault, deadline: float) -> None:
        """The broker carries a request out, whether or not its connection is still there, and answers."""
        node = self._node(address)
        if node in self.down:
            return
        broken = self._generation.get(address) != generation and fault not in (Fault.LATE, Fault.DIES)
        if broken and self.random.random() < 0.5:  # the request had not come that far
            return
        rows = []
        for partition, batch in request.batches:
            where = partition.topic, partition.index
            row = self.cluster.produce(node, where, batch.data, _BEFORE.get(fault, 0), _AFTER.get(fault, 0))
            rows.append((partition.topic, row))
        if fault is Fault.MISSING:
            rows = []
        elif fault is Fault.TWICE:
            rows += [(topic, row | {"error_code": UNKNOWN_TOPIC}) for topic, row in rows]
        elif fault is Fault.STRANGERS:
            rows += [("stranger", rows[0][1]), (rows[0][0], rows[0][1] | {"index": -7})]
        answer = self.cluster.answer(rows)
        if fault is Fault.THROTTLED:
            answer["throttle_time_ms"] = 500
        delay = LATENCY
        if fault is Fault.SLOW:
            delay = max(LATENCY, deadline - self.now - LATENCY) * self.random.random()
        if fault in (Fault.SILENT, Fault.DIES, Fault.LATE):
            return

        def answered() -> None:
            if self._generation.get(address) == generation and self.config.acks:
                self.pipeline.answered(address, request, answer, self.now)

        delay = max(delay, self._busy_until.get(address, 0.0) - self.now)
        self._busy_until[address] = self.now + delay  # answers come in order
        self._at(delay, answered)

    def _check_bytes(self, request: ProduceRequest) -> None:
        """P13: a batch that is sent again is sent as it was, and no sequence number is used for other bytes."""
        for partition, batch in request.batches:
            assert 0 < batch.count <= (self.config.batch_messages or batch.count), "batch.num.messages"
            if batch.sequence < 0:
                continue
            identity = batch.data[43:53]  # producer id and epoch
            key = (partition.topic, partition.index, batch.sequence, *map(int, (identity[7], identity[9])))
            if batch.attempts > 1:
                assert self.bytes_of[key] == batch.data
            self.bytes_of[key] = batch.data


def outcomes(world: ProducerWorld, topic: str, partition: int, outcome: Outcome) -> list[Sent]:
    found = [each for each in world.sent if (each.topic, each.partition) == (topic, partition)]
    return [each for each in found if each.outcome is outcome]
