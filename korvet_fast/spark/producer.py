"""Sends record batches to the leaders of their partitions, several requests at a time, until all are stored.

A batch of an idempotent producer may be sent again: the broker stores it once and keeps the order. After any error the
producer does the same: it takes all answers that are still to come, asks for leaders again, and sends the batches that
are not stored again in their old order.
"""

import time
from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter
from types import TracebackType
from typing import Any, NamedTuple, Self

from korvet_fast.client.protocol.errors import (
    BrokerError,
    ClientError,
    ConnectionLost,
    broker_error,
    check_error_code,
    is_retriable,
)
from korvet_fast.client.protocol.metadata import TopicPartition
from korvet_fast.client.protocol.requests import produce_request, read_produce
from korvet_fast.errors import Errors
from korvet_fast.spark.cluster import RETRY_BACKOFF, BlockingCluster
from korvet_fast.spark.connection import BlockingConnection
from korvet_fast.wire.kafka.shapes.produce import PRODUCE
from korvet_fast.wire.kafka.shapes.producers import INIT_PRODUCER_ID

IN_FLIGHT = 5  # requests to one leader: a broker remembers so many batches of a producer
SEQUENCES = 1 << 31  # after the last sequence number comes 0


class Delivery(NamedTuple):
    """The producer's promise, and for how long it tries. `acks`: 1, or -1 for all.

    `request_bytes`: the largest request of several batches. `patience`: seconds that a broker has for one request;
    `timeout`: seconds until a batch must be stored, however often it is sent.
    """

    acks: int
    idempotent: bool
    request_bytes: int
    patience: float
    timeout: float


@dataclass(slots=True, eq=False)
class PartitionBatch:
    """A record batch on its way to a partition. `number`: its place in the order of `Producer.send`."""

    number: int
    topic_partition: TopicPartition
    records: int
    data: bytearray
    deadline: float = field(default=0.0)  # set when it is first sent
    again: bool = field(default=False)  # it is sent for another time

    def __str__(self) -> str:
        noun = "record" if self.records == 1 else "records"
        return f"{self.records:,} {noun} for partition {self.topic_partition[1]} of topic {self.topic_partition[0]!r}"


class Producer:
    """`with Producer(cluster, delivery) as producer:`, then `send` and at the end `flush`. For one thread.

    `records` and `bytes` count what is stored. All methods raise `ClientError`; the producer is unusable afterwards.
    """

    def __init__(self, cluster: BlockingCluster, delivery: Delivery) -> None:
        self.records = 0
        self.bytes = 0
        self.id = -1
        self.epoch = -1
        self.sequences: dict[str, list[int]] = {}  # topic -> the next sequence number of each partition
        self._numbered = 0
        self._cluster = cluster
        self._delivery = delivery
        self._waiting: dict[TopicPartition, deque[PartitionBatch]] = defaultdict(deque)
        self._in_flight: dict[BlockingConnection, deque[list[PartitionBatch]]] = {}
        self._unstored: list[PartitionBatch] = []  # were sent, and have to be sent again
        self._error: ClientError | None = None  # why they have to be sent again
        self._begun: set[TopicPartition] = set()  # partitions that store a batch of this producer
        self._alone: set[TopicPartition] = set()  # partitions with a batch in flight that no other one follows yet

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._in_flight:  # the next task would take these answers for its own
            self._cluster.forget()

    def fetch_metadata(self, topics: Iterable[str]) -> None:
        """Ask how many partitions topics have; a missing topic is created if the broker's settings allow it."""
        new = [topic for topic in topics if topic not in self.sequences]
        if not new:
            return
        for topic, partitions in self._cluster.partitions(new, create=True).items():
            self.sequences[topic] = [0] * partitions
        if self._delivery.idempotent and self.id < 0:
            self._cluster.retry(lambda: self._init_producer_id(new[0]))

    def send(self, batches: Iterable[tuple[str, int, int, bytearray]]) -> None:
        """Send (topic, partition, records, batch), with sequence numbers that continue `sequences`; waits for room."""
        for topic, partition, records, data in batches:
            self._numbered += 1
            self._waiting[topic, partition].append(PartitionBatch(self._numbered, (topic, partition), records, data))
            row = self.sequences[topic]
            row[partition] = (row[partition] + records) % SEQUENCES
        self._send_all()

    def flush(self) -> None:
        """Wait until all batches are stored."""
        while self._in_flight or self._waiting:
            self._take_all()
            self._send_all()

    def _init_producer_id(self, topic: str) -> None:
        request = {"transactional_id": None, "transaction_timeout_ms": 0}
        answer = self._cluster.leader(topic, 0).request(INIT_PRODUCER_ID, request)
        check_error_code("the broker gave no producer id", answer["error_code"])
        self.id, self.epoch = answer["producer_id"], answer["producer_epoch"]

    def _send_all(self) -> None:
        while self._waiting or self._error is not None:
            if self._error is not None:
                self._take_all()
                self._repeat(self._error)
            try:
                for partitions in list(self._cluster.by_leader(list(self._waiting)).values()):
                    self._send_round(self._cluster.leader(*partitions[0]), partitions)
            except ClientError as error:
                if not is_retriable(error, unknown_topics=True):  # not every broker knows a new topic at once
                    raise
                self._error = error

    def _send_round(self, leader: BlockingConnection, partitions: list[TopicPartition]) -> None:
        """Send one batch of each partition: a request must not have two batches of a partition."""
        sent: list[PartitionBatch] = []
        size = 0
        for each in partitions:
            while each in self._alone and self._error is None:
                self._take(next(iter(self._in_flight)))
            batch = self._waiting[each][0]
            if sent and size + len(batch.data) > self._delivery.request_bytes:
                self._request(leader, sent)
                sent, size = [], 0
            sent.append(batch)
            size += len(batch.data)
        self._request(leader, sent)

    def _request(self, leader: BlockingConnection, batches: list[PartitionBatch]) -> None:
        # The search for a leader closes connections. The batches in flight there go first: a broker does not recognize
        # a batch any more once five later ones are stored.
        if any(each.closed for each in self._in_flight):
            self._take_all()
        while len(self._in_flight.get(leader, ())) >= (1 if leader.login_ends else IN_FLIGHT):
            self._take(leader)
        if self._error is not None:
            return
        for batch in batches:
            batch.deadline = batch.deadline or time.monotonic() + self._delivery.timeout
        rows = ((batch.topic_partition, batch.data) for batch in batches)
        leader.send(PRODUCE, produce_request(rows, self._delivery.acks, self._delivery.patience))
        self._in_flight.setdefault(leader, deque()).append(batches)
        # A broker that does not know a producer accepts any first sequence number: a later batch must not come first.
        # A batch that is sent again may have been stored before some that are: five later ones, and it is not known.
        self._alone.update(
            batch.topic_partition for batch in batches if batch.again or batch.topic_partition not in self._begun
        )
        for batch in batches:
            self._waiting[batch.topic_partition].popleft()
            if not self._waiting[batch.topic_partition]:
                del self._waiting[batch.topic_partition]

    def _take_all(self) -> None:
        for leader in list(self._in_flight):
            while leader in self._in_flight:
                self._take(leader)

    def _take(self, leader: BlockingConnection) -> None:
        """Take the oldest answer of a leader."""
        batches = self._in_flight[leader].popleft()
        self._alone.difference_update(batch.topic_partition for batch in batches)
        if not self._in_flight[leader]:
            del self._in_flight[leader]
        try:
            answer = leader.receive()
        except ConnectionLost as error:
            self._error = error
            self._unstored += batches
            return
        rows = read_produce(answer)
        for batch in batches:
            self._settle(batch, rows[batch.topic_partition])

    def _settle(self, batch: PartitionBatch, row: dict[str, Any]) -> None:
        error = broker_error(str(batch), row["error_code"], row["error_message"]) if row["error_code"] else None
        if error is None or error.error == Errors.DUPLICATE_SEQUENCE_NUMBER:  # stored when it was sent before
            self.records += batch.records
            self.bytes += len(batch.data)
            self._begun.add(batch.topic_partition)
        elif error.retriable or self._follows_unstored(batch, error):
            self._error = error
            self._unstored.append(batch)
        elif error.error == Errors.MESSAGE_TOO_LARGE:
            raise ClientError(
                f"{batch}: {len(batch.data):,} bytes in one batch are more than max.message.bytes of the topic; "
                "raise that, or lower the option kafka.batch.size if the batch has several records"
            )
        else:
            raise error

    def _follows_unstored(self, batch: PartitionBatch, error: BrokerError) -> bool:
        """Whether the broker refused a batch only because an earlier one is not stored."""
        if error.error != Errors.OUT_OF_ORDER_SEQUENCE_NUMBER:
            return False
        open_ones = chain(self._unstored, *chain.from_iterable(self._in_flight.values()))
        return any(each.topic_partition == batch.topic_partition and each.number < batch.number for each in open_ones)

    def _repeat(self, error: ClientError) -> None:
        """Put the batches that are not stored in front again, in their old order. Raises after a batch's timeout."""
        for batch in sorted(self._unstored, key=attrgetter("number"), reverse=True):
            batch.again = True
            self._waiting[batch.topic_partition].appendleft(batch)
        self._unstored.clear()
        self._error = None
        now = time.monotonic()
        for batch, *_ in self._waiting.values():
            batch.deadline = batch.deadline or now + self._delivery.timeout
            if now + RETRY_BACKOFF > batch.deadline:
                limit = f"kafka.delivery.timeout.ms ({self._delivery.timeout:g} s)"
                raise ClientError(f"{batch}: not stored within {limit}; {error}")
        self._cluster.forget()
        time.sleep(RETRY_BACKOFF)
