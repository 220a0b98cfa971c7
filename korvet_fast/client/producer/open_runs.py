"""The runs of `send` that more messages may join, until something else is done with them."""

from collections.abc import Callable

from korvet_fast.client.producer.config import ProducerConfig
from korvet_fast.client.producer.memory_budget import Destination
from korvet_fast.client.producer.message import NO_LIMIT, Headers, QueuedRecords, RecordState, message_size
from korvet_fast.client.producer.message_ledger import MessageLedger
from korvet_fast.client.producer.message_run import MessageRun
from korvet_fast.client.producer.partition_producer import PartitionProducer
from korvet_fast.client.producer.topic_producer import TopicProducer

_QUEUED = RecordState.QUEUED  # looked up once: the class of an enumeration is slow to ask


class OpenRuns:
    """A partition has one at most, and so has a topic for messages whose partitions are chosen together later.

    `enqueue`: takes records to their partition.
    """

    def __init__(
        self,
        config: ProducerConfig,
        ledger: MessageLedger,
        topics: dict[str, TopicProducer],
        enqueue: Callable[[QueuedRecords, PartitionProducer, float], None],
    ) -> None:
        self._config = config
        self._ledger = ledger
        self._topics = topics
        self._enqueue = enqueue
        self._open: dict[MessageRun, None] = {}

    def __bool__(self) -> bool:
        return bool(self._open)

    def join(self, run: MessageRun, value: bytes | None, key: bytes | None, headers: Headers, timestamp: int) -> int:
        """Add a message to an open run that needs more memory for it: its index, or -1 if there is no room in it."""
        size = message_size(value, key, headers)
        longest = self._config.batch_messages or NO_LIMIT
        if run.granted - run.cells.room + size > run.limit or len(run.cells) >= longest:
            self._topics[run.topic].fill(run)
            return -1
        granted, most = run.grown(size, self._topics[run.topic].usual_run)
        if self._ledger.grow(run, granted, min(most, longest)) or self._ledger.grow(run, *run.grown_exactly(size)):
            return run.add(value, key, headers, timestamp)
        return -1

    def collect(self, run: MessageRun, now: float) -> bool:
        """Take a message with a key: it gets its partition with those that join its run. False: not in this way."""
        self.shut_unplaced(run.topic)
        topic = self._topics[run.topic]
        if not topic.can_collect() or not self._ledger.collect(run):
            return False
        self._ledger.add(run)
        run.deadline = now + self._config.delivery_timeout
        topic.open_unplaced(run)
        self._open[run] = None
        return True

    def begin(self, run: MessageRun, partition: PartitionProducer, now: float) -> bool:
        """Take a run of one message at its partition, which takes messages; others may join. Memory for as many as the
        last run had is charged at once. False: there is not so much, and the run was not taken.
        """
        topic = self._topics[run.topic]
        size, count = topic.usual_run
        if count > 1:
            run.grant(max(size, run.size), count)
        if not self._ledger.charge(run, destination_of(run, partition)):
            return False
        self._ledger.add(run)
        run.deadline = now + self._config.delivery_timeout
        self._enqueue(run, partition, now)
        topic.open(run, chosen=False)
        self._open[run] = None
        return True

    def open(self, run: MessageRun, chosen: bool) -> None:
        """A run that was taken: if it is at its partition, messages join it until `shut_all`."""
        if run.state is _QUEUED:
            topic = self._topics[run.topic]
            topic.open(run, chosen)
            self._open[run] = None
            if topic.usual_run[1] > 1:  # others will follow: memory for them is asked for now, once
                granted, most = run.grown(0, topic.usual_run)
                self._ledger.grow(run, granted, min(most, self._config.batch_messages or NO_LIMIT))

    def shut_all(self) -> None:
        """No message joins a run any more; before anything else is done with them."""
        for run in list(self._open):
            if run in self._open:  # it was not shut with another
                self._shut(run)

    def shut_at(self, partition: PartitionProducer) -> None:
        """No message joins the partition's run any more: other records come behind it."""
        run = self._topics[partition.topic].runs.get(partition.index)
        if run is not None:
            self._shut(run)

    def shut_unplaced(self, name: str) -> None:
        """The topic's messages without a partition get theirs."""
        topic = self._topics.get(name)
        if topic is not None and topic.unplaced is not None:
            self._shut(topic.unplaced)

    def _shut(self, run: MessageRun) -> None:
        del self._open[run]
        size, count = run.size, run.count
        self._ledger.shut(run)
        topic = self._topics[run.topic]
        topic.usual_run = run.size, run.count
        if topic.unplaced is run:
            topic.unplaced = None
            self._place(topic, run)
            return
        topic.shut(run, run.size - size)
        topic.partitions[run.partition].queue.resize(run.size - size, run.count - count)

    def place(self, run: MessageRun) -> list[MessageRun]:
        """Divide collected messages by their partitions, which are known."""
        parts = self._topics[run.topic].place(run)
        self._ledger.divide(run, parts)
        return parts

    def _place(self, topic: TopicProducer, run: MessageRun) -> None:
        """Send collected messages on to their partitions."""
        if not topic.count:
            topic.wait_for_partitions(run)
            return
        for part in self.place(run):
            partition = topic.partition(part.partition)
            self._ledger.move(part, destination_of(part, partition))
            self._enqueue(part, partition, run.deadline - self._config.delivery_timeout)


def destination_of(records: QueuedRecords, partition: PartitionProducer | None) -> Destination:
    """Where records are charged: at the broker that leads their partition, at their topic while that is unknown."""
    return records.topic if partition is None or partition.broker is None else partition.broker
