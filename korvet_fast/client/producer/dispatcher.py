"""The first stage (the dispatcher of Sarama's asyncProducer): takes messages in, and fans them out to their topics.

It is also where a message waits for memory, and where it can be taken back.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from korvet_fast.client.producer.config import ProducerConfig
from korvet_fast.client.producer.memory_waiters import MemoryWaiters
from korvet_fast.client.producer.message import (
    BufferFull,
    Cancelled,
    DeliveryFailed,
    Expired,
    Outcome,
    QueuedRecords,
    RecordState,
)
from korvet_fast.client.producer.message_ledger import MessageLedger
from korvet_fast.client.producer.message_run import MessageRun
from korvet_fast.client.producer.open_runs import OpenRuns, destination_of
from korvet_fast.client.producer.partition_producer import PartitionProducer
from korvet_fast.client.producer.topic_producer import TopicProducer
from korvet_fast.client.protocol.errors import ClientError, broker_error
from korvet_fast.errors import Errors
from korvet_fast.wire.kafka.errors import CODES, TOPIC_AUTHORIZATION_FAILED

# A later attempt gets the same answer.
_REFUSED_TOPIC = frozenset({CODES[Errors.INVALID_TOPIC_EXCEPTION], TOPIC_AUTHORIZATION_FAILED})
_LONGEST_TOPIC = 249  # characters (Kafka's Topic.MAX_NAME_LENGTH)


class Dispatcher:
    """`topics`: the stages behind. `runs`: those that messages join. `dirty`: partitions that got something.
    `incomplete`: a topic's partitions are not known.
    """

    def __init__(
        self, config: ProducerConfig, ledger: MessageLedger, make_topic: Callable[[str], TopicProducer]
    ) -> None:
        self.topics: dict[str, TopicProducer] = {}
        self.dirty: dict[PartitionProducer, None] = {}
        self._config = config
        self._ledger = ledger
        self._make_topic = make_topic
        self._line = MemoryWaiters()
        self.runs = OpenRuns(config, ledger, self.topics, self._enqueue)

    @property
    def incomplete(self) -> bool:
        """Whether the partitions of a topic have to be found out."""
        return any(
            topic.pending or topic.outdated or (topic.awaited and not topic.count) for topic in self.topics.values()
        )

    def partitions(self) -> Iterator[PartitionProducer]:
        """All partitions that messages were sent to."""
        for topic in self.topics.values():
            yield from topic.partitions.values()

    def enqueue(self, records: QueuedRecords, now: float, wait: bool) -> None:
        """Take a message. Without memory for it: `wait` in line, up to `max.block.ms`; or raise `BufferFull`.

        Raises `DeliveryFailed` for what cannot be sent at all; then the message was not taken.
        """
        self._ledger.refuse()
        self.runs.shut_unplaced(records.topic)  # its messages come before this one
        partition = self._choose(records)
        if not self._line.blocks(records.topic, records.partition):
            destination = destination_of(records, partition)
            charged = self._ledger.charge(records, destination)
            if not charged and self.runs:
                self.runs.shut_all()  # they hold memory for messages that may not come
                charged = self._ledger.charge(records, destination)
            if charged:
                self._ledger.add(records)
                self._accept(records, partition, now)
                return
        self.runs.shut_all()  # nothing overtakes those that wait
        if not wait or not self._ledger.memory.take_line(records.topic, records.charge):
            memory = self._ledger.memory
            raise BufferFull(
                f"no memory for {records.charge:,} bytes: messages hold {memory.used:,} of buffer.memory="
                f"{memory.total:,}, and one destination may not take all of it; await deliveries, or raise it"
            )
        self._ledger.add(records)
        self._line.append(records, now + self._config.max_block)
        self._ledger.waiting[records] = now
        if len(self._ledger.waiting) == 1:
            self.send_now()

    def begin(self, run: MessageRun, now: float) -> bool:
        """Take a message that names its partition in the short way: this is known and takes messages, nobody waits for
        memory, and there is some. False: one of these is not so; then the run may have room for others all the same.
        """
        topic = self.topics.get(run.topic)
        partition = topic.partitions.get(run.partition) if topic is not None else None
        if topic is None or partition is None or topic.stopped or topic.unplaced is not None:
            return False
        return not (self._ledger.closing or len(self._line)) and self.runs.begin(run, partition, now)

    def collect(self, run: MessageRun, now: float) -> bool:
        """Take a message with a key, which gets its partition later. False: not in this way. Raises as `enqueue`."""
        self._ledger.refuse()
        self.topic(run.topic)
        return not len(self._line) and self.runs.collect(run, now)

    def withdraw_message(self, run: MessageRun, index: int) -> tuple[MessageRun, int] | None:
        """Take one message of a run back, as a run of its own with its index there. None if it is in a batch."""
        self.runs.shut_all()
        if run.parts is not None:
            run, index = run.parts.find(run.position(index))
        if not run.is_withdrawable:
            return None
        if run.count > 1:
            own = run.take_out(index)
            if run.state is RecordState.QUEUED:
                self.topics[run.topic].partition(run.partition).queue.resize(-own.size, -1)
            self._finish_withdrawn(own)
            return own, 0
        return (run, index) if self.withdraw(run) else None

    def withdraw(self, records: QueuedRecords) -> bool:
        """Take records back, all of them. False if they are in a batch, or have ended: their outcome says more."""
        if records.state is RecordState.LINE:
            self._line.remove(records)
        elif records.state is RecordState.PENDING:
            del self.topics[records.topic].pending[records]
        elif records.state is RecordState.QUEUED:
            partition = self.topics[records.topic].partition(records.partition)
            partition.queue.remove(records)
            self.dirty[partition] = None
        else:
            return False
        self._finish_withdrawn(records)
        return True

    def send_now(self) -> None:
        """No batch waits for more messages now: look at all partitions that hold some."""
        for partition in self.partitions():
            if not partition.idle:
                self.dirty[partition] = None

    def allocate_waiting(self, now: float) -> None:
        """Memory was given back: messages that wait for it get it, each partition's in order."""
        for key in self._line.places():
            while (records := self._line.first(key)) is not None:
                try:
                    partition = self._choose(records)
                except DeliveryFailed as error:
                    self._line.remove(records)
                    self._ledger.finish(records, error.outcome, error)
                    continue
                if not self._ledger.move_from_line(records, destination_of(records, partition)):
                    break
                self._line.remove(records)
                self._accept(records, partition, now)

    def expire(self, now: float) -> None:
        """End what waited too long for memory, or for its topic."""
        self.runs.shut_all()
        while (records := self._line.expired(now)) is not None:
            self._line.remove(records)
            self._ledger.finish(records, Outcome.NOT_WRITTEN, BufferFull.after(self._config.max_block))
        for topic in self.topics.values():
            while (deadline := topic.first_deadline()) is not None and deadline <= now:
                what = f"the partitions of topic {topic.name!r} were not found"
                error = Expired.within(what, "delivery.timeout.ms", self._config.delivery_timeout, topic.last_error)
                if self._config.on_failure == "continue":
                    self._ledger.finish(topic.pending.popitem(last=False)[0], Outcome.NOT_WRITTEN, error)
                else:
                    self._fail_pending(topic, error)

    def next_time(self) -> float | None:
        """The time when `expire` has something to do."""
        times = [self._line.next_time(), *(topic.first_deadline() for topic in self.topics.values())]
        return min((at for at in times if at is not None), default=None)

    def update(self, row: Mapping[str, Any], now: float) -> None:
        """Take over a topic's row of a Metadata answer. What it does not say stays as it was."""
        topic = self.topics.get(row["name"])
        if topic is None:
            return
        error = broker_error(f"topic {topic.name!r}", row["error_code"]) if row["error_code"] else None
        topic.last_error = error
        topic.refused = row["error_code"] in _REFUSED_TOPIC
        if error is not None and topic.refused:
            self._fail_pending(topic, DeliveryFailed(str(error), cause=error))
            if not (topic.partitions or topic.awaited or topic.stopped):
                del self.topics[topic.name]
        elif row["partitions"] and error is None:
            topic.count = len(row["partitions"])
            waiting, topic.pending = topic.pending, OrderedDict()
            self._dispatch(topic, waiting, now)
        topic.outdated = False

    def refuse(self, error: ClientError) -> None:
        """Metadata is refused for good: end what waits for its topic's partitions."""
        for topic in self.topics.values():
            topic.refused = True
            sentence = f"the partitions of topic {topic.name!r} were not found: {error}"
            self._fail_pending(topic, DeliveryFailed(sentence, cause=error))

    def abandon(self, error: DeliveryFailed) -> None:
        """End every message at once: as unknown what may have been written."""
        self.end_unsent(error)
        for partition in self.partitions():
            partition.abandon(error)

    def end_unsent(self, error: DeliveryFailed) -> None:
        """End every message that is not on its way."""
        self.runs.shut_all()
        for records in self._line:
            self._line.remove(records)
            self._ledger.finish(records, Outcome.NOT_WRITTEN, error)
        for topic in self.topics.values():
            self._fail_pending(topic, error)
            for partition in topic.partitions.values():
                partition.end_unsent(error)
                self.dirty[partition] = None  # its broker may have nothing to take from it any more

    def forget(self) -> None:
        """All messages have ended, whatever the stages behind say."""
        self.topics.clear()
        self.dirty.clear()
        self.runs = OpenRuns(self._config, self._ledger, self.topics, self._enqueue)

    def topic(self, name: str) -> TopicProducer:
        """The stage of a topic. Raises `DeliveryFailed` for what cannot be a name."""
        found = self.topics.get(name)
        if found is None:
            if not 0 < len(name) <= _LONGEST_TOPIC or not name.isprintable():
                raise DeliveryFailed(f"{name[:20]!r} is no topic's name; it has 1 to {_LONGEST_TOPIC} characters")
            found = self.topics[name] = self._make_topic(name)
        return found

    def _finish_withdrawn(self, records: QueuedRecords) -> None:
        error = Cancelled("the caller withdrew the message before it was sent")
        self._ledger.finish(records, Outcome.NOT_WRITTEN, error)

    def _choose(self, records: QueuedRecords) -> PartitionProducer | None:
        return self.topic(records.topic).choose(records)

    def _accept(self, records: QueuedRecords, partition: PartitionProducer | None, now: float) -> None:
        records.deadline = now + self._config.delivery_timeout
        if partition is None:
            self.topics[records.topic].wait_for_partitions(records)
        else:
            self._enqueue(records, partition, now)

    def _enqueue(self, records: QueuedRecords, partition: PartitionProducer, now: float) -> None:
        self.runs.shut_at(partition)
        partition.enqueue(records, now)
        self.dirty[partition] = None

    def _dispatch(self, topic: TopicProducer, waiting: Iterable[QueuedRecords], now: float) -> None:
        """Send messages that waited for their topic on to their partitions."""
        for records in waiting:
            collected = isinstance(records, MessageRun) and records.partition < 0 and records.count > 1
            for each in self.runs.place(records) if collected else (records,):  # type: ignore[arg-type]
                try:
                    partition = self._choose(each)
                except DeliveryFailed as error:
                    self._ledger.finish(each, error.outcome, error)
                    continue
                assert partition is not None, "the partitions are known now"
                self._enqueue(each, partition, now)

    def _fail_pending(self, topic: TopicProducer, error: DeliveryFailed) -> None:
        while topic.pending:
            records, _ = topic.pending.popitem(last=False)
            if self._config.on_failure == "stop" and records.partition >= 0:
                topic.stopped[records.partition] = error
            self._ledger.finish(records, Outcome.NOT_WRITTEN, error)
