"""The stage of one broker (Sarama's brokerProducer): puts batches of its partitions into requests, pipelined."""

from collections import Counter
from collections.abc import Mapping
from enum import Enum, auto
from itertools import islice
from typing import Any, NamedTuple

from korvet_fast.client.backoff import Backoff
from korvet_fast.client.producer.config import ProducerConfig
from korvet_fast.client.producer.partition_producer import PartitionProducer
from korvet_fast.client.producer.record_batch import ProducerBatch
from korvet_fast.client.producer.retry_handler import Answer, RowAnswer, Verdict, judge
from korvet_fast.client.producer.settings import NO_RESPONSE
from korvet_fast.client.protocol.errors import ClientError
from korvet_fast.client.protocol.metadata import TopicPartition
from korvet_fast.client.protocol.requests import produce_request, read_produce
from korvet_fast.endpoint import Address

MOST_THROTTLE = 60.0  # seconds that a broker can ask for


class ProduceRequest:
    """Batches on their way to a broker, one of each partition.

    `rows`: answers to their records so far, in order, in a dialect that has such answers.
    """

    __slots__ = ("batches", "rows")

    def __init__(self, batches: list[tuple[PartitionProducer, ProducerBatch]]) -> None:
        self.batches = batches
        self.rows: list[RowAnswer] = []

    def values(self, config: ProducerConfig) -> dict[str, Any]:
        """The values of the Produce request. Their bytes are those of the batches, and are never changed."""
        rows = (((partition.topic, partition.index), batch.data) for partition, batch in self.batches)
        values = produce_request(rows, config.acks, min(config.acks_timeout, config.request_timeout))
        return values | {"transactional_id": config.transactional_id}


class Connect(NamedTuple):
    """Connect to a broker; tell `connected` or `lost`."""

    broker: Address


class Disconnect(NamedTuple):
    """No partition needs the broker any more, and nothing is in flight."""

    broker: Address


class Produce(NamedTuple):
    """Hand a request to the broker's connection; tell `answered`, `not_sent`, or `lost`."""

    broker: Address
    request: ProduceRequest


class LinkState(Enum):
    """A broker's connection."""

    DOWN = auto()
    CONNECTING = auto()
    UP = auto()


class BrokerProducer:
    """`ready`: partitions with a batch that may be sent, the one that waits longest first. `references`: partitions
    that the broker leads, as far as is known; without any, the connection is closed (Sarama's unrefBrokerProducer).
    `proved`: the connection was of use, as an answer shows. One that ends before that counts as a failed attempt.
    """

    def __init__(self, address: Address, config: ProducerConfig, backoff: Backoff) -> None:
        self.address = address
        self.state = LinkState.DOWN
        self.references = 0
        self.ready: dict[PartitionProducer, None] = {}
        self.in_flight: dict[ProduceRequest, None] = {}
        self.backoff = backoff
        self.proved = False
        self._lasts_at = 0.0  # without answers, a connection that is up until then is of use
        self._throttled_until = 0.0
        self._config = config

    def next_action(self, now: float) -> Connect | Disconnect | Produce | None:
        """The next request to send, or None if there is nothing to do now."""
        if self.state is LinkState.UP:
            if self.ready and len(self.in_flight) < self._config.in_flight and now >= self._throttled_until:
                return Produce(self.address, self._collect())
            if not self.references and not self.in_flight:
                self.state = LinkState.DOWN
                return Disconnect(self.address)
        elif self.state is LinkState.DOWN and self.ready and now >= self.backoff.until:
            self.state = LinkState.CONNECTING
            self.proved = False
            return Connect(self.address)
        return None

    def connected(self, now: float) -> None:
        """The connection is up, which proves nothing: a broker may accept and close at once."""
        self.state = LinkState.UP
        self._lasts_at = now + self._config.backoff_max

    def next_time(self) -> float | None:
        """The time of the next action, if nothing else happens before."""
        if not self.ready or self.state is LinkState.CONNECTING:
            return None
        if self.state is LinkState.DOWN:
            return self.backoff.until
        return self._throttled_until if len(self.in_flight) < self._config.in_flight else None

    def answered(
        self, request: ProduceRequest, values: Mapping[str, Any], now: float
    ) -> list[tuple[PartitionProducer, ProducerBatch, Answer]]:
        """An answer came: how each batch of the request ended.

        A partition that the answer leaves out, or names twice, is in doubt: its batch is sent again.
        """
        del self.in_flight[request]
        self.proved = True
        self.backoff.succeed()
        throttle = min(max(values["throttle_time_ms"], 0) / 1000, MOST_THROTTLE)
        self._throttled_until = max(self._throttled_until, now + throttle)
        rows = read_produce(values)
        named: Counter[TopicPartition] = Counter()  # how often, if any is named more than once
        if sum(len(topic["partition_responses"]) for topic in values["responses"]) > len(rows):
            named.update(
                (each["name"], row["index"]) for each in values["responses"] for row in each["partition_responses"]
            )
        ended = []
        for partition, batch in request.batches:
            place = partition.topic, partition.index
            row = rows.get(place)
            if row is None or (named and named[place] > 1):
                error = ClientError(f"{self.address} named the partition {named[place]} times in its answer")
                answer = Answer(Verdict.RETRY, uncertain=True, error=error)
            else:
                answer = judge(batch.count, row)
            ended.append((partition, batch, answer))
        return ended

    def unanswered(
        self, request: ProduceRequest, error: ClientError, uncertain: bool
    ) -> list[tuple[PartitionProducer, ProducerBatch, Answer]]:
        """No answer will come. `uncertain`: some of the request may have reached the broker."""
        if uncertain and not self._config.dialect.resends:
            return self._end_by_row(request, error)
        del self.in_flight[request]
        return [(*each, Answer(Verdict.RETRY, uncertain, error=error)) for each in request.batches]

    def ended(self, request: ProduceRequest, now: float) -> list[tuple[PartitionProducer, ProducerBatch, Answer]]:
        """A request with acks=0 is on its way: no answer will come. Or each of its rows has an answer."""
        if self._config.acks != NO_RESPONSE:
            return self._end_by_row(request, ClientError(f"{self.address} left rows without an answer"))
        del self.in_flight[request]
        if now >= self._lasts_at:
            self.proved = True
            self.backoff.succeed()
        return [(*each, Answer(Verdict.STORED)) for each in request.batches]

    def _end_by_row(
        self, request: ProduceRequest, error: ClientError
    ) -> list[tuple[PartitionProducer, ProducerBatch, Answer]]:
        """Each record ends with its answer; those without one are in doubt, because of `error`, and stay so."""
        del self.in_flight[request]
        rows = iter(request.rows)
        ended = []
        for partition, batch in request.batches:
            found = list(islice(rows, batch.count))
            missing = batch.count - len(found)
            found += [RowAnswer(error=error, uncertain=True)] * missing
            if not missing:
                self.proved = True
                self.backoff.succeed()
            ended.append((partition, batch, Answer(Verdict.BY_ROW, rows=found)))
        return ended

    def _collect(self) -> ProduceRequest:
        """One batch of each partition that is ready, as many as fit into a request; the rest comes first next time."""
        batches: list[tuple[PartitionProducer, ProducerBatch]] = []
        room = float("inf")  # one batch goes in any case
        size = 0
        for partition in list(self.ready):
            batch = partition.take(room)
            if batch is None:
                break
            del self.ready[partition]
            batches.append((partition, batch))
            size += len(batch.data)
            room = self._config.message_bytes - size
        request = ProduceRequest(batches)
        self.in_flight[request] = None
        return request
