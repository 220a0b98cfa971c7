"""Record batches to the partitions' leaders: several requests on their way to each, repeated until they are stored.

An idempotent producer's batch may be sent again as it is: the broker stores it once and keeps the order. Any trouble
is met in one way: every answer still to come is taken, leaders are asked anew, and what was not stored goes out again
in the order it had.
"""

import time
from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter
from types import TracebackType
from typing import Any, NamedTuple, Self

from korvet_fast.client.connection import ClientError
from korvet_fast.client.refusal import Refused, check, refusal
from korvet_fast.spark.cluster import PAUSE, Cluster, Place, passes
from korvet_fast.spark.connection import Connection, Lost
from korvet_fast.wire.kafka.shapes.produce import PRODUCE
from korvet_fast.wire.kafka.shapes.producers import INIT_PRODUCER_ID

IN_FLIGHT = 5  # requests to one leader: so many batches of a producer a broker remembers
SEQUENCES = 1 << 31  # then from 0 again


class Delivery(NamedTuple):
    """How hard to try. `acks`: 1, or -1 for all. `request_bytes`: the most of several batches in one request.

    `patience`: seconds a broker has for one request, `timeout`: seconds for a batch, however often it is sent.
    """

    acks: int
    idempotent: bool
    request_bytes: int
    patience: float
    timeout: float


@dataclass(slots=True, eq=False)
class _Batch:
    number: int  # in the order given
    place: Place
    records: int
    data: bytearray
    deadline: float = field(default=0.0)  # from when it was first sent

    def __str__(self) -> str:
        noun = "record" if self.records == 1 else "records"
        return f"{self.records:,} {noun} for partition {self.place[1]} of topic {self.place[0]!r}"


class Producer:
    """`with Producer(cluster, delivery) as producer:`, then `send` and at the end `flush`. For one thread.

    `records` and `bytes` count what is stored. All methods raise `ClientError`; nothing may be sent after that.
    """

    def __init__(self, cluster: Cluster, delivery: Delivery) -> None:
        self.records = 0
        self.bytes = 0
        self.id = -1
        self.epoch = -1
        self.sequences: dict[str, list[int]] = {}  # topic -> the next sequence number of each partition
        self._numbered = 0
        self._cluster = cluster
        self._delivery = delivery
        self._waiting: dict[Place, deque[_Batch]] = defaultdict(deque)
        self._flying: dict[Connection, deque[list[_Batch]]] = {}
        self._unstored: list[_Batch] = []  # sent, and to be sent again
        self._trouble: ClientError | None = None  # why
        self._begun: set[Place] = set()  # something of this producer is stored there
        self._opening: set[Place] = set()  # the first batch is on its way

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._flying:  # answers that nobody takes any more would be taken for those of the next task
            self._cluster.forget()

    def learn(self, topics: Iterable[str]) -> None:
        """Find out how many partitions topics have; one that there is not is made, if the broker makes topics."""
        new = [topic for topic in topics if topic not in self.sequences]
        if not new:
            return
        for topic, partitions in self._cluster.partitions(new, create=True).items():
            self.sequences[topic] = [0] * partitions
        if self._delivery.idempotent and self.id < 0:
            self._cluster.retry(lambda: self._introduce(new[0]))

    def send(self, batches: Iterable[tuple[str, int, int, bytearray]]) -> None:
        """Send (topic, partition, records, batch), whose sequence numbers continue `sequences`; waits for room."""
        for topic, partition, records, data in batches:
            self._numbered += 1
            self._waiting[topic, partition].append(_Batch(self._numbered, (topic, partition), records, data))
            row = self.sequences[topic]
            row[partition] = (row[partition] + records) % SEQUENCES
        self._send_all()

    def flush(self) -> None:
        """Wait until everything sent is stored."""
        while self._flying or self._waiting:
            self._take_all()
            self._send_all()

    def _introduce(self, topic: str) -> None:
        asked = {"transactional_id": None, "transaction_timeout_ms": 0}
        answer = self._cluster.leader(topic, 0).request(INIT_PRODUCER_ID, asked)
        check("the broker gave no producer id", answer["error_code"])
        self.id, self.epoch = answer["producer_id"], answer["producer_epoch"]

    def _send_all(self) -> None:
        while self._waiting or self._trouble is not None:
            if self._trouble is not None:
                self._take_all()
                self._repeat(self._trouble)
            try:
                for places in list(self._cluster.by_leader(list(self._waiting)).values()):
                    self._send_round(self._cluster.leader(*places[0]), places)
            except ClientError as error:
                if not passes(error, unknown_topics=True):  # one just made may not be known to every broker
                    raise
                self._trouble = error

    def _send_round(self, leader: Connection, places: list[Place]) -> None:
        """One batch of each partition, as a broker takes no two of a partition in one request."""
        sent: list[_Batch] = []
        size = 0
        for place in places:
            while place in self._opening and self._trouble is None:
                self._take(next(iter(self._flying)))
            batch = self._waiting[place][0]
            if sent and size + len(batch.data) > self._delivery.request_bytes:
                self._request(leader, sent)
                sent, size = [], 0
            sent.append(batch)
            size += len(batch.data)
        self._request(leader, sent)

    def _request(self, leader: Connection, batches: list[_Batch]) -> None:
        # The search for a leader closes connections. What was on its way there goes first: once five later batches are
        # stored, a broker need not know it again.
        if any(each.closed for each in self._flying):
            self._take_all()
        while len(self._flying.get(leader, ())) >= IN_FLIGHT:
            self._take(leader)
        if self._trouble is not None:
            return
        topics: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for batch in batches:
            topic, partition = batch.place
            batch.deadline = batch.deadline or time.monotonic() + self._delivery.timeout
            topics[topic].append({"index": partition, "records": batch.data})
        leader.send(
            PRODUCE,
            {
                "acks": self._delivery.acks,
                "timeout_ms": int(self._delivery.patience * 1000),
                "topic_data": [{"name": topic, "partition_data": rows} for topic, rows in topics.items()],
            },
        )
        self._flying.setdefault(leader, deque()).append(batches)
        # A broker that knows nothing of a producer takes any sequence number for its first: it must not be a later one.
        self._opening.update(batch.place for batch in batches if batch.place not in self._begun)
        for batch in batches:
            self._waiting[batch.place].popleft()
            if not self._waiting[batch.place]:
                del self._waiting[batch.place]

    def _take_all(self) -> None:
        for leader in list(self._flying):
            while leader in self._flying:
                self._take(leader)

    def _take(self, leader: Connection) -> None:
        """The oldest answer of a leader."""
        batches = self._flying[leader].popleft()
        self._opening.difference_update(batch.place for batch in batches)
        if not self._flying[leader]:
            del self._flying[leader]
        try:
            answer = leader.receive()
        except Lost as error:
            self._trouble = error
            self._unstored += batches
            return
        rows = {
            (topic["name"], row["index"]): row for topic in answer["responses"] for row in topic["partition_responses"]
        }
        for batch in batches:
            self._settle(batch, rows[batch.place])

    def _settle(self, batch: _Batch, row: dict[str, Any]) -> None:
        refused = refusal(str(batch), row["error_code"], row["error_message"]) if row["error_code"] else None
        if refused is None or refused.name == "DUPLICATE_SEQUENCE_NUMBER":  # stored when it was sent before
            self.records += batch.records
            self.bytes += len(batch.data)
            self._begun.add(batch.place)
        elif refused.retriable or self._follows_unstored(batch, refused):
            self._trouble = refused
            self._unstored.append(batch)
        elif refused.name == "MESSAGE_TOO_LARGE":
            raise ClientError(
                f"{batch}: {len(batch.data):,} bytes in one batch are more than max.message.bytes of the topic; "
                "raise that, or lower the option kafka.batch.size if the batch has several records"
            )
        else:
            raise refused

    def _follows_unstored(self, batch: _Batch, refused: Refused) -> bool:
        """Whether it was refused only because one before it is not stored."""
        if refused.name != "OUT_OF_ORDER_SEQUENCE_NUMBER":
            return False
        open_ones = chain(self._unstored, *chain.from_iterable(self._flying.values()))
        return any(each.place == batch.place and each.number < batch.number for each in open_ones)

    def _repeat(self, trouble: ClientError) -> None:
        """Put what was not stored in front again, in its old order. Raises once a batch's time is over."""
        for batch in sorted(self._unstored, key=attrgetter("number"), reverse=True):
            self._waiting[batch.place].appendleft(batch)
        self._unstored.clear()
        self._trouble = None
        now = time.monotonic()
        for batch, *_ in self._waiting.values():
            batch.deadline = batch.deadline or now + self._delivery.timeout
            if now + PAUSE > batch.deadline:
                limit = f"kafka.delivery.timeout.ms ({self._delivery.timeout:g} s)"
                raise ClientError(f"{batch}: not stored within {limit}; {trouble}")
        self._cluster.forget()
        time.sleep(PAUSE)
