"""All stages together, without I/O and without a clock: what a driver, or a simulation, runs.

A driver passes messages in (`dispatcher.enqueue`), asks for work (`poll`) and when to ask again (`next_time`), does
it, and tells what came of it. `now` is in seconds on any clock that does not go back; all calls come from one thread.
Messages that have ended are in `ledger.ended`.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from random import Random
from typing import Any, NamedTuple

from korvet_fast.client.backoff import Backoff
from korvet_fast.client.producer.broker_producer import Connect, Disconnect, LinkState, Produce, ProduceRequest
from korvet_fast.client.producer.broker_producers import BrokerProducers
from korvet_fast.client.producer.config import ProducerConfig
from korvet_fast.client.producer.dispatcher import Dispatcher
from korvet_fast.client.producer.identity_request import IdentityRequest
from korvet_fast.client.producer.idle_topics import IdleTopics
from korvet_fast.client.producer.message import DeliveryFailed, ProducerBroken
from korvet_fast.client.producer.message_ledger import MessageLedger
from korvet_fast.client.producer.metadata_refresh import MetadataRefresh
from korvet_fast.client.producer.metrics import ProducerMetrics
from korvet_fast.client.producer.partition_producer import NEVER, PartitionProducer
from korvet_fast.client.producer.producer_identity import PartitionSequence, ProducerIdentity
from korvet_fast.client.producer.record_batch import ProducerBatch
from korvet_fast.client.producer.retry_handler import Answer, asks_for_metadata
from korvet_fast.client.producer.stall_watch import StallWatch
from korvet_fast.client.producer.topic_producer import TopicProducer
from korvet_fast.client.producer.transaction_state import Transaction
from korvet_fast.client.producer.wake_times import WakeTimes
from korvet_fast.client.protocol.errors import ClientError, is_fatal
from korvet_fast.client.protocol.metadata import TopicPartition
from korvet_fast.endpoint import Address


class FetchMetadata(NamedTuple):
    """Ask any broker for these topics; tell `metadata_received` or `metadata_failed`."""

    topics: list[str]


class InitProducerId(NamedTuple):
    """Ask any broker for a producer id; tell `producer_id_received` or `producer_id_failed`."""


class AddPartitions(NamedTuple):
    """Tell the transaction's coordinator of partitions; tell `partitions_added`, or that the transaction failed."""

    partitions: list[TopicPartition]


Action = AddPartitions | Connect | Disconnect | Produce | FetchMetadata | InitProducerId


class Pipeline:
    """`only`: the broker of a dialect without metadata. `identity`: the producer's id and epoch."""

    def __init__(self, config: ProducerConfig, random: Random, only: Address | None = None) -> None:
        self.config = config
        self.ledger = MessageLedger(config.memory)
        self.dispatcher = Dispatcher(config, self.ledger, self._make_topic)
        make_backoff = partial(Backoff, config.backoff, config.backoff_max, random)
        self.brokers = BrokerProducers(config, make_backoff, only)
        self._asks = only is None
        self._random = random
        self.transaction = Transaction() if config.transactional_id is not None else None
        self.identity = ProducerIdentity(fixed=self.transaction is not None)
        self._identity_request = IdentityRequest(self.identity, make_backoff())
        self._refresh = MetadataRefresh(make_backoff(), config.metadata_max_age)
        self._idle_topics = IdleTopics(self.dispatcher, self.brokers, self.identity, config.metadata_max_idle)
        self._wakes = WakeTimes()
        self.stalls = StallWatch(config, self.ledger, self.dispatcher.topics)

    def flush(self) -> int:
        """Send what is there without waiting for more. Returns a number for `ledger.is_flushed`."""
        self.dispatcher.runs.shut_all()
        number = self.ledger.flush()
        self.dispatcher.send_now()
        return number

    def close(self) -> None:
        """Take no more messages, and send those that are here without waiting for more."""
        self.dispatcher.runs.shut_all()
        self.ledger.closing = True
        self.dispatcher.send_now()

    def abandon(self, error: DeliveryFailed) -> None:
        """End every message at once: as unknown what may have been written. Nothing may be told afterwards."""
        self.ledger.closing = True
        self.dispatcher.abandon(error)

    def renew_identity(self, producer_id: int, epoch: int) -> None:
        """The coordinator gave a producer id and an epoch. Only when no message is here."""
        self.identity.give(producer_id, epoch)
        self._idle_topics.sequences.clear()
        for partition in self.dispatcher.partitions():
            partition.renew()

    def partitions_added(self) -> None:
        """The coordinator was told of partitions: messages may be sent to them."""
        assert self.transaction is not None, "for transactional producers"
        for name, index in self.transaction.added():
            topic = self.dispatcher.topics.get(name)
            if topic is not None:  # else it was forgotten meanwhile: its messages were withdrawn
                self.dispatcher.dirty[topic.partition(index)] = None

    def break_off(self, error: ProducerBroken) -> None:
        """A defect left the stages in a state that nobody knows: end every message, and use none of them again."""
        self.ledger.break_off(error)
        self.dispatcher.forget()

    def poll(self, now: float) -> list[Action]:
        """The driver's next actions, in the order to carry them out."""
        actions: list[Action] = []
        self.dispatcher.runs.shut_all()
        dirty = self.dispatcher.dirty
        dirty.update(dict.fromkeys(self._wakes.take_due(now)))
        self.dispatcher.expire(now)
        self.stalls.check_topics(now)
        busy = True
        while busy:
            if self.ledger.freed:
                self.ledger.freed = False
                self.dispatcher.allocate_waiting(now)
            while dirty:
                for partition in list(dirty):
                    del dirty[partition]
                    self._update(partition, now)
            busy = self.ledger.freed
            self._hold_back()
            for broker in self.brokers:
                action = broker.next_action(now)
                if action is not None:
                    actions.append(action)
                    busy = True
                if isinstance(action, Produce):
                    for each, _ in action.request.batches:
                        if each.queue.messages or len(each.batches) > each.in_flight:
                            dirty[each] = None
        self._ask(now, actions)
        return actions

    def next_time(self) -> float | None:
        """The time to call `poll` again if nothing happens before; None: not at all."""
        times = [self._wakes.next_time(), self.dispatcher.next_time(), self._identity_request.due()]
        times.append(self.stalls.next_time())
        times += [broker.next_time() for broker in self.brokers]
        if self.dispatcher.topics and self._asks:
            times.append(self._refresh.due())
        return min((each for each in times if each is not None), default=None)

    def metrics(self, now: float) -> ProducerMetrics:
        """The pipeline's figures at this moment. The call looks at every partition."""
        self.dispatcher.runs.shut_all()
        partitions = list(self.dispatcher.partitions())
        deadlines = [each.oldest_deadline() for each in partitions]
        deadlines += [topic.first_deadline() for topic in self.dispatcher.topics.values()]
        times = [at - self.config.delivery_timeout for at in deadlines if at is not None]
        counts, memory = self.ledger.counts, self.ledger.memory
        return ProducerMetrics(
            accepted=counts.accepted,
            delivered=counts.delivered,
            failed=counts.failed,
            unknown=counts.unknown,
            open=counts.open,
            buffer_bytes=memory.used,
            buffer_peak_bytes=memory.peak,
            waiting_for_memory=len(self.ledger.waiting),
            requests_in_flight=sum(len(broker.in_flight) for broker in self.brokers),
            retries=self._idle_topics.retries + sum(each.retries for each in partitions),
            oldest=now - min([*times, *self.ledger.waiting.values()], default=now),
            stalled=self.stalls.stalled(now),
        )

    # The results of the actions.

    def connected(self, address: Address, now: float) -> None:
        """A broker's connection is up."""
        self.brokers.get(address).connected(now)

    def lost(self, address: Address, error: ClientError, now: float) -> None:
        """A broker's connection broke, or could not be made. What was in flight there is in doubt."""
        broker = self.brokers.get(address)
        failed = bool(broker.in_flight) or not broker.proved
        for request in list(broker.in_flight):
            self._apply(broker.unanswered(request, error, uncertain=True), now)
        broker.state = LinkState.DOWN
        if failed:
            broker.backoff.fail(now)
            self._refresh.want()
            self.dispatcher.runs.shut_all()
            for partition in list(broker.ready):  # they waited for the connection
                partition.last_error = error
                if is_fatal(error):
                    partition.refuse(error, now)
                    self.dispatcher.dirty[partition] = None

    def not_sent(self, address: Address, request: ProduceRequest, error: ClientError, now: float) -> None:
        """The connection had failed before: nothing of the request was handed to it."""
        broker = self.brokers.get(address)
        if request in broker.in_flight:
            self._apply(broker.unanswered(request, error, uncertain=False), now)

    def answered(self, address: Address, request: ProduceRequest, values: Mapping[str, Any] | None, now: float) -> None:
        """A request was answered; `values` None with acks=0: it is on its way; or its rows were answered."""
        broker = self.brokers.get(address)
        if request in broker.in_flight:
            ended = broker.ended(request, now) if values is None else broker.answered(request, values, now)
            self._apply(ended, now)

    def metadata_received(self, answer: Mapping[str, Any], now: float) -> None:
        """A Metadata answer. What it leaves out stays as it was."""
        self.dispatcher.runs.shut_all()
        asked = [row for row in answer["topics"] if row["name"] in self.dispatcher.topics]  # others would pile up
        self.brokers.update({**answer, "topics": asked})
        for row in asked:
            self.dispatcher.update(row, now)
            if row["name"] not in self.dispatcher.topics:  # it was refused
                self.brokers.forget_topic(row["name"], ())
        complete = not self.dispatcher.incomplete
        for partition in self.dispatcher.partitions():
            self.brokers.follow_leader(partition)
            complete &= partition.idle or partition.broker is not None
            self.dispatcher.dirty[partition] = None
        self.brokers.forget_unused()
        self.ledger.note_room()  # messages in line may have another destination now
        self._refresh.received(now, complete)

    def metadata_failed(self, error: ClientError, now: float) -> None:
        """No broker answered."""
        self.dispatcher.runs.shut_all()
        for topic in self.dispatcher.topics.values():
            topic.last_error = error
        if is_fatal(error):
            self.dispatcher.refuse(error)
        self._refresh.failed(now)

    def producer_id_received(self, producer_id: int, epoch: int) -> None:
        """A broker gave a producer id and an epoch."""
        self.dispatcher.dirty.update(dict.fromkeys(self._identity_request.received(producer_id, epoch)))

    def producer_id_failed(self, error: ClientError, now: float) -> None:
        """No broker gave a producer id."""
        self.dispatcher.runs.shut_all()
        self._identity_request.failed(error, now)

    def _apply(self, ended: Iterable[tuple[PartitionProducer, ProducerBatch, Answer]], now: float) -> None:
        self.dispatcher.runs.shut_all()
        for partition, batch, answer in ended:
            if answer.error is not None and asks_for_metadata(answer):
                self._refresh.want()
            partition.answer(batch, answer, now)
            if answer.error is not None or answer.rows or not (partition.idle and partition.is_reachable):
                self.dispatcher.dirty[partition] = None  # of most, all is stored, and nothing follows from that

    def _update(self, partition: PartitionProducer, now: float) -> None:
        """Put a partition where it belongs now: at its broker, or asleep until something is due."""
        deadline = None if partition.idle else partition.expire(now)
        broker = self.brokers.broker_of(partition)  # metadata alone changes it, and has it followed then
        partition.is_reachable = broker is not None and not broker.backoff.failures
        if deadline is None and partition.idle:
            if broker is not None:
                broker.ready.pop(partition, None)
            return
        ready = partition.ready_at(now)
        if broker is None:
            self._refresh.want()
        elif ready is not None and ready <= now:
            broker.ready.setdefault(partition)
        else:
            broker.ready.pop(partition, None)
        if ready is None and partition.lacks_identity:
            self._identity_request.want(partition)
        wake = NEVER
        for at in (ready, deadline, self.stalls.watch(partition, now)):
            if at is not None and now < at < wake:
                wake = at
        self._wakes.wake(partition, wake)

    def _hold_back(self) -> None:
        """After the last epoch, partitions that were ready need a new producer id first."""
        if not self.identity.wanted:
            return
        for broker in self.brokers:
            for partition in [each for each in broker.ready if each.lacks_identity]:
                del broker.ready[partition]
                self._identity_request.want(partition)

    def _ask(self, now: float, actions: list[Action]) -> None:
        wanted = self.transaction.take_wanted() if self.transaction is not None else []
        if wanted:
            actions.append(AddPartitions(wanted))
        if self.dispatcher.incomplete:
            self._refresh.want()
        if not self._asks:
            self._idle_topics.forget_sometimes(now)
        due = self._refresh.due()
        if due is not None and due <= now and self.dispatcher.topics and self._asks:
            self._refresh.sent()
            self._idle_topics.forget(now)
            actions.append(FetchMetadata(list(self.dispatcher.topics)))
        due = self._identity_request.due()
        if due is not None and due <= now:
            self._identity_request.sent()
            actions.append(InitProducerId())

    def _make_topic(self, name: str) -> TopicProducer:
        return TopicProducer(name, self.config, self._make_partition, self.brokers.can_reach, self._random)

    def _make_partition(self, topic: str, index: int) -> PartitionProducer:
        on_stop = self.dispatcher.topics[topic].stopped.__setitem__
        known = self._idle_topics.sequences.pop((topic, index), None)
        sequence = known or PartitionSequence(self.identity, self.config.idempotent)
        partition = PartitionProducer(
            topic, index, self.config, sequence, self.ledger, on_stop, self._random, self.transaction
        )
        self.brokers.follow_leader(partition)
        return partition
