"""The stage of one partition (Sarama's partitionProducer): its queue, its batches on their way, their sequence numbers.

Order has one source: the queue. Batches leave it in order, and end in order. After any failure of a batch nothing more
is sent until all requests of the partition are answered or dead; then the first batch goes alone, with the same bytes,
and the others follow once it is stored. So no chaser and no retry levels are needed, and a batch never overtakes
another, not even at a broker that has forgotten the producer and would accept any first sequence number.
"""

from collections.abc import Callable, Sequence
from itertools import islice
from random import Random

from korvet_fast.client.backoff import Backoff
from korvet_fast.client.producer.config import ProducerConfig
from korvet_fast.client.producer.message import ANY_PARTITION, DeliveryFailed, Expired, Outcome, QueuedRecords
from korvet_fast.client.producer.producer_identity import PartitionSequence
from korvet_fast.client.producer.record_batch import ProducerBatch, Stages, count_messages
from korvet_fast.client.producer.record_queue import RecordQueue
from korvet_fast.client.producer.retry_handler import Answer, Verdict
from korvet_fast.client.producer.transaction_state import Transaction
from korvet_fast.client.protocol.errors import ClientError
from korvet_fast.endpoint import Address

NEVER = float("inf")
_STORED = Verdict.STORED, Verdict.BY_ROW


class PartitionProducer:
    """A partition that messages are sent to. `sequence`: its numbers, which may outlive it (`IdleTopics`). `broker`:
    where its leader is, None while nobody knows.

    `in_flight`: its batches without an answer, all of them at `sent_to`. `on_stop`:
    told of the failure after which no message may be taken any more (`on.failure` = stop). `last_error`: why
    nothing could be stored the last time, None since something was.
    """

    def __init__(
        self,
        topic: str,
        index: int,
        config: ProducerConfig,
        sequence: PartitionSequence,
        stages: Stages,
        on_stop: Callable[[int, DeliveryFailed], None],
        random: Random,
        transaction: Transaction | None = None,
    ) -> None:
        self.topic = topic
        self.index = index
        self.sequence = sequence
        self.broker: Address | None = None
        self.sent_to: Address | None = None
        self.in_flight = 0
        self.queue = RecordQueue()
        self.batches: list[ProducerBatch] = []
        self.progress = 0.0  # when the partition last ended a batch, or got its first message
        self.is_reachable = True  # as the pipeline saw it last
        self.last_error: ClientError | None = None
        self.backoff = Backoff(config.backoff, config.backoff_max, random)
        self.retries = 0
        self.wakes_at = NEVER  # the pipeline looks at the partition then
        self.stalled = False
        self._config = config
        self._stages = stages
        self._on_stop = on_stop
        self._transaction = transaction
        self._careful = True  # one batch at a time, until one is stored
        self._draining = False
        self._ending: DeliveryFailed | None = None  # why everything here ends when nothing is on its way any more

    def __str__(self) -> str:
        place = f"partition {self.index} of " if self.index != ANY_PARTITION else ""
        return f"{place}topic {self.topic!r}"

    @property
    def idle(self) -> bool:
        """Whether nothing is left to be sent or answered."""
        return not (self.batches or self.queue.messages)

    @property
    def lacks_identity(self) -> bool:
        """Whether the next batch needs a producer id that no broker gave yet."""
        return self.sequence.is_missing

    def enqueue(self, records: QueuedRecords, now: float) -> None:
        """Take a message to the end of the queue."""
        if self.idle:
            self.progress = now
        self.queue.append(records)

    def ready_at(self, now: float) -> float | None:
        """The time when this stage lets the next batch go; None: not before something happens here."""
        if self.broker is None or self._draining or self.sequence.is_missing:
            return None
        if self._transaction is not None and not self._transaction.includes((self.topic, self.index)):
            return None
        if self.in_flight and (self._careful or self.sent_to != self.broker or self.in_flight >= self._config.window):
            return None
        soonest = now if now > self.backoff.until else self.backoff.until
        if self._next_unsent() is not None:
            return soonest
        if not self.queue.messages:
            return None
        if self._is_full():
            return soonest
        accepted = self.queue.first.deadline - self._config.delivery_timeout
        return max(soonest, accepted + self._config.linger)

    def take(self, room: float) -> ProducerBatch | None:
        """The next batch, to be handed to the broker's connection now; None if it has, about, more than `room` bytes.

        Only when `ready_at` is not later than now.
        """
        assert self.broker is not None, "ready"
        batch = self._next_unsent()
        size = min(self.queue.bytes, self._config.batch_limit) if batch is None else len(batch.data)
        if size > room:
            return None
        batch = batch or self._seal()
        batch.attempts += 1
        batch.in_flight = True
        self.retries += batch.attempts > 1
        self.in_flight += 1
        self.sent_to = self.broker
        return batch

    def answer(self, batch: ProducerBatch, answer: Answer, now: float) -> None:
        """An attempt ended. What follows from a failure is decided when all requests of the partition have ended."""
        batch.in_flight = False
        batch.uncertain |= answer.uncertain
        self.in_flight -= 1
        rows = answer.rows
        if answer.verdict in _STORED:
            batch.stored, batch.rows = (answer.offset, answer.timestamp), rows
            self._end_stored(now)
            failure = next((row.error for row in rows if row.error is not None), None) if rows else None
            if failure is not None and self._config.on_failure != "continue":  # it failed for good; so do those behind
                self._fail(DeliveryFailed(f"{self}: {failure}", cause=failure), now)
        else:
            self._draining = True
            if self.batches[0] is batch:  # any other may have failed only because an earlier one did
                batch.failure = answer
                self.last_error = answer.error
        if self._draining and not self.in_flight:
            self._draining = False
            self._careful = True
            self._settle(now)

    def renew(self) -> None:
        """The producer has another identity: begin anew with it. Only when nothing is here."""
        self.sequence.renew()
        self._careful = True

    def refuse(self, error: ClientError, now: float) -> None:
        """End what is here: its broker, or a producer id, is refused for good. What is on its way is waited for."""
        while not (self.idle or self.in_flight):  # with on.failure=continue each message fails for itself
            self._fail(DeliveryFailed(f"{self}: {error}", cause=error), now)

    def end_unsent(self, error: DeliveryFailed) -> None:
        """End what is not on its way, behind what is. What is in doubt ends as unknown."""
        if self.in_flight:
            self._draining = True
            self._ending = error
        else:
            self.abandon(error)

    def abandon(self, error: DeliveryFailed) -> None:
        """End everything here at once, answers or not; no more answers may be given to this stage."""
        while self.batches:
            self.batches.pop(0).end(self._stages, error)
        self._end_queue(error)

    def expire(self, now: float) -> float | None:
        """End what is past its deadline. What is on its way is waited for: its answer tells its outcome.

        Returns the next deadline that this partition has.
        """
        while (deadline := self.next_deadline()) is not None and deadline <= now:
            if self.in_flight:
                self._draining = True
                break
            timeout = self._config.delivery_timeout
            what = f"{self}: not delivered"
            last_error = self.last_error
            if last_error is None and self.broker is None:
                last_error = ClientError("no broker is known to lead it")
            self._fail(Expired.within(what, "delivery.timeout.ms", timeout, last_error), now)
        return deadline

    def next_deadline(self) -> float | None:
        """The time when `expire` would end something."""
        if len(self.batches) > self.in_flight and (batch := self._next_unsent()) is not None:
            return batch.deadline
        return self.queue.first.deadline if self.queue.messages else None

    def oldest_deadline(self) -> float | None:
        """The deadline of the oldest message here."""
        return self.batches[0].deadline if self.batches else self.next_deadline()

    def _is_full(self) -> bool:
        """Whether the queue waits for no more messages."""
        queue, config = self.queue, self._config
        enough = queue.bytes >= config.full_bytes or queue.messages >= config.full_messages
        return enough or self._stages.hurried

    def _next_unsent(self) -> ProducerBatch | None:
        if len(self.batches) == self.in_flight:  # most often
            return None
        return next((batch for batch in self.batches if not batch.in_flight and not batch.stored), None)

    def _seal(self) -> ProducerBatch:
        """Make a batch of the first messages of the queue. From here on its bytes do not change."""
        records = self.queue.take(self._config.batch_limit, self._config.batch_messages)
        count = count_messages(records)
        batch = self._encode(records, count, self.sequence.take(count))
        self.batches.append(batch)
        return batch

    def _encode(self, records: Sequence[QueuedRecords], count: int, sequence: int) -> ProducerBatch:
        config = self._config
        data = config.dialect.encode(records, config.acks, config.batch_kind, self.sequence.identity, sequence)
        return ProducerBatch(records, count, data, sequence)

    def _end_stored(self, now: float) -> None:
        while self.batches and self.batches[0].stored:
            batch = self.batches.pop(0)
            batch.end(self._stages, None)
            self.progress = now
            self.last_error = None
            if self.backoff.failures:
                self.backoff.succeed()
            self._careful = self._draining

    def _settle(self, now: float) -> None:
        """Nothing is on its way: decide what becomes of the first batch after its failure."""
        ending, self._ending = self._ending, None
        if ending is not None:
            self.abandon(ending)
            return
        first = self.batches[0] if self.batches else None
        if first is not None and first.failure is not None:
            self._settle_first(first, first.failure, now)
        self.expire(now)

    def _settle_first(self, batch: ProducerBatch, failure: Answer, now: float) -> None:
        batch.failure = None
        sentence = f"{self}: {failure.error}"
        if failure.verdict is Verdict.RETRY:
            batch.failures += 1
            if self._config.retries is None or batch.failures <= self._config.retries:
                self.backoff.fail(now)
                return
            sentence += f"; it was sent {batch.attempts} times"
        elif failure.verdict is Verdict.TOO_LARGE and batch.count > 1 and not batch.uncertain:
            self._split(batch)
            return
        self._fail(DeliveryFailed(sentence, cause=failure.error), now, lost=failure.verdict is Verdict.OUT_OF_ORDER)

    def _split(self, batch: ProducerBatch) -> None:
        """Two batches with half of the records each, and the same sequence numbers (Java's split)."""
        self.batches.pop(0)
        records = batch.records
        if len(records) == 1:
            records = batch.records[0].halves()
            self._stages.divide(batch.records[0], records)
        half = len(records) // 2
        count = count_messages(records[:half])
        first = self._encode(records[:half], count, batch.sequence)
        following = self.sequence.advance(batch.sequence, count)
        self.batches[:0] = first, self._encode(records[half:], batch.count - count, following)

    def _fail(self, error: DeliveryFailed, now: float, *, lost: bool = False) -> None:
        """End the first batch, or the first message of the queue, and by `on.failure` those behind it.

        `lost`: the broker does not know the sequence any more. Nothing is in flight. What may be stored is never sent
        again in another batch.
        """
        policy = self._config.on_failure
        first = self.batches[0] if self.batches else None
        kept = [each for each in self.batches if not (each is first or each.uncertain or each.stored)]
        kept = kept if policy == "continue" else []
        doomed = [each for each in self.batches if each not in kept]
        if first is not None:
            certain = not lost and not any(each.uncertain or each.stored for each in self.batches)
            self.sequence.restart(first.sequence if certain else None)
        self.batches.clear()
        for batch in doomed:
            batch.end(self._stages, error)
        if policy != "continue":
            self._end_queue(error)
        elif first is None:
            self._end_queue(error, most=1)
        for batch in reversed(kept):
            for each in reversed(batch.records):
                self.queue.put_back(each)
        self.progress = now
        if policy == "stop":
            self._on_stop(self.index, error)

    def _end_queue(self, error: DeliveryFailed, most: int | None = None) -> None:
        for records in list(islice(self.queue.records, most)):
            self.queue.remove(records)
            self._stages.finish(records, Outcome.NOT_WRITTEN, error)
