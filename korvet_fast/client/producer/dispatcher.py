"""The first stage (the dispatcher of Sarama's asyncProducer): takes messages in, and fans them out to their topics.

It is also where a message waits for memory, and where it can be taken back.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from korvet_fast.client.producer.admission_line import AdmissionLine
from korvet_fast.client.producer.config import ProducerConfig
from korvet_fast.client.producer.memory_budget import Destination
from korvet_fast.client.producer.message import (
    BufferFull,
    Cancelled,
    DeliveryFailed,
    Expired,
    Headers,
    Outcome,
    ProducerClosed,
    QueuedRecords,
    RecordState,
    records_size,
)
from korvet_fast.client.producer.message_ledger import MessageLedger
from korvet_fast.client.producer.message_run import MessageRun
from korvet_fast.client.producer.partition_producer import PartitionProducer
from korvet_fast.client.producer.topic_producer import TopicProducer
from korvet_fast.client.protocol.errors import broker_error

_REFUSED_TOPIC = frozenset({17, 29})  # INVALID_TOPIC_EXCEPTION, TOPIC_AUTHORIZATION_FAILED: they do not heal
_LONGEST_TOPIC = 249  # characters (Kafka's Topic.MAX_NAME_LENGTH)


class Dispatcher:
    """`topics`: the stages behind. `dirty`: partitions that got something. `incomplete`: a topic's partitions are not
    known.
    """

    def __init__(
        self, config: ProducerConfig, ledger: MessageLedger, make_topic: Callable[[str], TopicProducer]
    ) -> None:
        self.topics: dict[str, TopicProducer] = {}
        self.dirty: dict[PartitionProducer, None] = {}
        self._config = config
        self._ledger = ledger
        self._make_topic = make_topic
        self._line = AdmissionLine()
        self._open: dict[MessageRun, None] = {}  # runs that messages join

    @property
    def incomplete(self) -> bool:
        """Whether somebody waits for the partitions of a topic to be known."""
        return any(topic.pending or (topic.awaited and not topic.count) for topic in self.topics.values())

    def partitions(self) -> Iterator[PartitionProducer]:
        """All partitions that messages were sent to."""
        for topic in self.topics.values():
            yield from topic.partitions.values()

    def offer(self, records: QueuedRecords, now: float, wait: bool) -> None:
        """Take a message. Without memory for it: `wait` in line, up to `max.block.ms`; or raise `BufferFull`.

        Raises `DeliveryFailed` for what cannot be sent at all; then the message was not taken.
        """
        if self._ledger.closing:
            raise ProducerClosed("the producer is closed; it takes no more messages")
        partition = self._choose(records)
        if not self._line.blocks(records.topic, records.partition):
            destination = _destination(records, partition)
            charged = self._ledger.charge(records, destination)
            if not charged and self._open:
                self.shut_runs()  # they hold memory for messages that may not come
                charged = self._ledger.charge(records, destination)
            if charged:
                self._ledger.add(records)
                self._accept(records, partition, now)
                return
        self.shut_runs()  # nothing overtakes those that wait
        if not wait or not self._ledger.memory.take_line(records.topic, records.charge):
            memory = self._ledger.memory
            raise BufferFull(
                f"no memory for {records.charge:,} bytes: messages hold {memory.used:,} of buffer.memory="
                f"{memory.total:,}, and one destination may not take all of it; await deliveries, or raise it"
            )
        self._ledger.add(records)
        self._line.append(records, now + self._config.max_block)
        self._ledger.waiting += 1
        if self._ledger.waiting == 1:
            self.hurry()

    def join(self, run: MessageRun, value: bytes | None, key: bytes | None, headers: Headers, timestamp: int) -> int:
        """Add a message to an open run that needs more memory for it: its index, or -1 if there is no room in it."""
        size = records_size((value,), (key,), headers)
        if run.granted - run.room + size > run.limit or 0 < self._config.batch_messages <= len(run.values):
            self.topics[run.topic].fill(run)
            return -1
        if self._ledger.grow(run, *run.grown(size, False)) or self._ledger.grow(run, *run.grown(size, True)):
            return run.add(value, key, headers, timestamp)
        return -1

    def open(self, run: MessageRun, chosen: bool) -> None:
        """A run that was taken: if it is at its partition, messages join it until `shut_runs`."""
        if run.state is RecordState.QUEUED:
            self.topics[run.topic].open(run, run.key_cells[0], chosen)
            self._open[run] = None

    def shut_runs(self) -> None:
        """No message joins a run any more; before anything else is done with them."""
        while self._open:
            self._shut(next(iter(self._open)))

    def withdraw_message(self, run: MessageRun, index: int) -> MessageRun | None:
        """Take one message of a run back, as a run of its own. None if it is in a batch."""
        self.shut_runs()
        if not run.is_withdrawable:
            return None
        if run.count > 1:
            own = run.take_out(index)
            self.topics[run.topic].partition(run.partition).queue.resize(-own.size, -1)
            self._finish_withdrawn(own)
            return own
        return run if self.withdraw(run) else None

    def withdraw(self, records: QueuedRecords) -> bool:
        """Take records back, all of them. False if they are in a batch, or have ended: their outcome says more."""
        if records.state is RecordState.LINE:
            self._line.remove(records)
        elif records.state is RecordState.PENDING:
            self.topics[records.topic].pending.remove(records)
        elif records.state is RecordState.QUEUED:
            partition = self.topics[records.topic].partition(records.partition)
            partition.queue.remove(records)
            self.dirty[partition] = None
        else:
            return False
        self._finish_withdrawn(records)
        return True

    def hurry(self) -> None:
        """No batch waits for more messages now: look at all partitions that hold some."""
        self.dirty.update((partition, None) for partition in self.partitions() if not partition.idle)

    def admit_waiting(self, now: float) -> None:
        """Memory was given back: messages that wait for it get it, each partition's in order."""
        for key in self._line.places():
            while (records := self._line.first(key)) is not None:
                try:
                    partition = self._choose(records)
                except DeliveryFailed as error:
                    self._line.remove(records)
                    self._ledger.finish(records, error.outcome, error)
                    continue
                if not self._ledger.move_from_line(records, _destination(records, partition)):
                    break
                self._line.remove(records)
                self._accept(records, partition, now)

    def expire(self, now: float) -> None:
        """End what waited too long for memory, or for its topic."""
        self.shut_runs()
        while (records := self._line.expired(now)) is not None:
            self._line.remove(records)
            full = BufferFull(f"no memory within max.block.ms ({self._config.max_block:g} s); raise buffer.memory")
            self._ledger.finish(records, Outcome.NOT_WRITTEN, full)
        for topic in self.topics.values():
            while topic.pending and topic.pending[0].deadline <= now:
                limit = f"delivery.timeout.ms ({self._config.delivery_timeout:g} s)"
                error = Expired(f"the partitions of topic {topic.name!r} were not found within {limit}")
                if self._config.on_failure == "continue":
                    self._ledger.finish(topic.pending.popleft(), Outcome.NOT_WRITTEN, error)
                else:
                    self._fail_pending(topic, error)

    def next_time(self) -> float | None:
        """When `expire` has something to do."""
        times = [topic.pending[0].deadline for topic in self.topics.values() if topic.pending]
        waits = self._line.next_time()
        return min(times + ([waits] if waits is not None else []), default=None)

    def update(self, row: Mapping[str, Any], now: float) -> None:
        """Take over a topic's row of a Metadata answer. What it does not say stays as it was."""
        topic = self.topics.get(row["name"])
        if topic is None:
            return
        if row["error_code"] in _REFUSED_TOPIC:
            error = broker_error(f"topic {topic.name!r}", row["error_code"])
            self._fail_pending(topic, DeliveryFailed(str(error), cause=error))
            if not topic.partitions and not topic.awaited:
                del self.topics[topic.name]
        elif row["partitions"] and not row["error_code"]:
            topic.count = len(row["partitions"])
            waiting, topic.pending = topic.pending, deque()
            for records in waiting:
                self._dispatch(records, now)

    def abandon(self, error: DeliveryFailed) -> None:
        """End every message at once: as unknown what may have been written."""
        self.shut_runs()
        for records in self._line:
            self._line.remove(records)
            self._ledger.finish(records, Outcome.NOT_WRITTEN, error)
        for topic in self.topics.values():
            self._fail_pending(topic, error)
            for partition in topic.partitions.values():
                partition.abandon(error)

    def topic(self, name: str) -> TopicProducer:
        """The stage of a topic. Raises `DeliveryFailed` for what cannot be a name."""
        found = self.topics.get(name)
        if found is None:
            if not 0 < len(name) <= _LONGEST_TOPIC or not name.isprintable():
                raise DeliveryFailed(f"{name[:20]!r} is no topic's name; it has 1 to {_LONGEST_TOPIC} characters")
            found = self.topics[name] = self._make_topic(name)
        return found

    def _shut(self, run: MessageRun) -> None:
        del self._open[run]
        size, count = run.size, run.count
        self._ledger.shut(run)
        topic = self.topics[run.topic]
        topic.shut(run, run.size - size)
        topic.partitions[run.partition].queue.resize(run.size - size, run.count - count)

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
            before = self.topics[records.topic].runs.get(partition.index)
            if before is not None:
                self._shut(before)
            partition.enqueue(records, now)
            self.dirty[partition] = None

    def _dispatch(self, records: QueuedRecords, now: float) -> None:
        """Send a message that waited for its topic on to its partition."""
        try:
            partition = self._choose(records)
        except DeliveryFailed as error:
            self._ledger.finish(records, error.outcome, error)
            return
        assert partition is not None, "the partitions are known now"
        partition.enqueue(records, now)
        self.dirty[partition] = None

    def _fail_pending(self, topic: TopicProducer, error: DeliveryFailed) -> None:
        while topic.pending:
            records = topic.pending.popleft()
            if self._config.on_failure == "stop" and records.partition >= 0:
                topic.stopped[records.partition] = error
            self._ledger.finish(records, Outcome.NOT_WRITTEN, error)


def _destination(records: QueuedRecords, partition: PartitionProducer | None) -> Destination:
    return records.topic if partition is None or partition.broker is None else partition.broker
