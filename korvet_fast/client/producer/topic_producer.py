"""The stage of one topic (Sarama's topicProducer): chooses partitions, and holds what comes before they are known."""

from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from random import Random

from korvet_fast._native import Column, ColumnRows
from korvet_fast.client.producer.config import ProducerConfig
from korvet_fast.client.producer.message import (
    ANY_PARTITION,
    BATCH_HEADER,
    NO_LIMIT,
    DeliveryFailed,
    QueuedRecords,
    RecordState,
)
from korvet_fast.client.producer.message_run import MessageRun
from korvet_fast.client.producer.partition_producer import NEVER, PartitionProducer
from korvet_fast.client.producer.partitioners import BrokerChoice, Chosen, Partitioner, StickyPartitioner
from korvet_fast.client.protocol.errors import ClientError


class TopicProducer:
    """A topic that messages are sent to. `count`: its partitions, 0 while they are not known.

    `pending`: messages without a partition yet, in order. `awaited`: so many others want to know the partitions.
    `outdated`: a partition was named that it did not have; it may have more by now.
    `last_error`: why the partitions could not be found out the last time; `refused`: nor can they be at the next.
    `stopped`: partitions that take no messages since one of theirs failed (`on.failure` = stop), and the failure.
    `runs`: those that are open, by partition; `sticky_run`: the one that messages without a key join; `unplaced`: the
    one whose messages get their partitions together when it is shut. `usual_run`: bytes and messages of the last one;
    the next one asks for as much memory at once.
    """

    def __init__(
        self,
        name: str,
        config: ProducerConfig,
        make_partition: Callable[[str, int], PartitionProducer],
        can_reach: Callable[[str, int], bool],
        random: Random,
    ) -> None:
        self.name = name
        self.count = ANY_PARTITION + 1 if config.dialect.broker_chooses else 0
        self.awaited = 0
        self.outdated = False
        self.last_error: ClientError | None = None
        self.refused = False
        self.stopped: dict[int, DeliveryFailed] = {}
        self.pending: OrderedDict[QueuedRecords, None] = OrderedDict()
        self.partitions: dict[int, PartitionProducer] = {}
        self.runs: dict[int, MessageRun] = {}
        self.sticky_run: MessageRun | None = None
        self.unplaced: MessageRun | None = None
        self.usual_run = 0, 0
        self._manual = config.partitioner == "manual"
        self._make_partition = make_partition
        self._can_reach = can_reach
        self._batch_limit = config.batch_limit
        self._batch_messages = config.batch_messages or NO_LIMIT
        self._unplaced_limit = config.message_bytes - BATCH_HEADER
        self._run_limit = min(config.batch_limit, self._unplaced_limit)
        any_partition = config.dialect.broker_chooses
        sticky = (BrokerChoice if any_partition else StickyPartitioner)(config.batch_limit, config.adaptive, random)
        self._partitioner = Partitioner(config.partitioner, config.ignore_keys or any_partition, sticky, random)

    def idle_since(self) -> float:
        """When the last message ended; in the future while there is one, or anything else to be remembered."""
        if self.pending or self.awaited or self.stopped or not all(each.idle for each in self.partitions.values()):
            return NEVER
        return max((each.progress for each in self.partitions.values()), default=0.0)

    def choose(self, records: QueuedRecords) -> PartitionProducer | None:
        """The partition that messages go to; None while it cannot be said. Raises `DeliveryFailed` if there is none."""
        if records.partition < 0 and self._manual:
            raise DeliveryFailed("partitioner=manual: each message has to name its partition; give partition=")
        if not self.count:
            return None
        if records.partition < 0:
            records.partition = self.choose_index(records.first_key(), records.size)
        found = self.partitions.get(records.partition)
        if found is None and records.partition >= self.count:
            self.outdated = True
            raise DeliveryFailed(
                f"topic {self.name!r} has no partition {records.partition}; it has 0 to {self.count - 1}"
            )
        if records.partition in self.stopped:
            failure = self.stopped[records.partition]
            place = f"partition {records.partition}" if records.partition != ANY_PARTITION else f"topic {self.name!r}"
            raise DeliveryFailed(f"{place} takes no messages since one failed: {failure}")
        return found or self.partition(records.partition)

    def choose_index(self, key: bytes | None, size: int) -> int:
        """The partition for a key, or for a message without one. Only when the partitions are known."""
        return self._partitioner.choose(key, size, self)

    def choose_rows(self, rows: ColumnRows, keys: Iterable[bytes | None]) -> Chosen:
        """The partition of each row by its key, -1 for the sticky one; None if keys do not matter."""
        return self._partitioner.choose_rows(rows, keys, self)

    def open_run(self, key: bytes | None, partition: int | None) -> MessageRun | None:
        """The run that a message joins, if there is an open one for it."""
        if self.unplaced is not None:
            return self.unplaced if partition is None else None
        if partition is None:
            return self.sticky_run if key is None or self._partitioner.place is None else None
        return self.runs.get(partition)

    def placed_run(self, key: bytes | None) -> MessageRun | None:
        """The open run of the partition that a key goes to."""
        if self.unplaced is not None or key is None or self._partitioner.place is None or not self.count:
            return None
        return self.runs.get(self._partitioner.place(key, self.count))

    def can_collect(self) -> bool:
        """Whether messages with a key may get their partitions later, together. A partition that was stopped refuses
        its messages when they are sent.
        """
        return self._partitioner.hashes_natively and not self.stopped

    def open_unplaced(self, run: MessageRun) -> None:
        """Messages that name no partition join this run from now on."""
        self.unplaced = run
        run.limit = self._unplaced_limit

    def place(self, run: MessageRun) -> list[MessageRun]:
        """The run's messages in runs of one partition each. Only when the partitions are known."""
        rows = run.cells.columns()
        chosen: Column | array[int] = rows.choose(self.count)
        keys = run.cells.keys()
        if None in keys:  # they keep their order with the others, so one partition is chosen for all of them
            values = zip(keys, run.cells.values(), strict=True)
            spread = self.choose_index(None, sum(len(value or b"") for key, value in values if key is None))
            chosen = array("i", [spread if each < 0 else each for each in memoryview(chosen)])
        found = rows.runs(chosen, self._batch_limit, self._batch_messages)
        parts = [run] if len(found) == 1 else run.divide([each.rows() for each in found])
        for part, each in zip(parts, found, strict=True):
            part.partition = each.partition
        return parts

    def open(self, run: MessageRun, chosen: bool) -> None:
        """Messages for its partition join this run from now on. `chosen`: the partitioner chose the partition."""
        self.runs[run.partition] = run
        run.limit = self._run_limit
        if chosen and self._partitioner.is_sticky(run.first_key()):
            run.limit = min(run.limit, self._partitioner.sticky.left + run.size)
            self.sticky_run = run

    def fill(self, run: MessageRun) -> None:
        """The run is as large as a batch may be: what is spread goes on elsewhere."""
        if self.sticky_run is run:
            self.sticky_run = None
            self._partitioner.sticky.turn()

    def shut(self, run: MessageRun, joined: int) -> None:
        """No message joins the run any more. `joined`: bytes that came after its first message."""
        self.runs.pop(run.partition, None)
        if self.sticky_run is run:
            self.sticky_run = None
            self._partitioner.sticky.add(joined)

    def partition(self, index: int) -> PartitionProducer:
        """The stage of a partition."""
        found = self.partitions.get(index)
        if found is None:
            found = self.partitions[index] = self._make_partition(self.name, index)
        return found

    def wait_for_partitions(self, records: QueuedRecords) -> None:
        """Keep a message until the partitions are known."""
        records.state = RecordState.PENDING
        self.pending[records] = None

    def first_deadline(self) -> float | None:
        """The deadline of the oldest message without a partition."""
        return next(iter(self.pending)).deadline if self.pending else None

    def is_available(self, index: int) -> bool:
        """Whether a partition has a leader that can be reached, as far as is known."""
        found = self.partitions.get(index)
        return found.is_reachable if found is not None else self._can_reach(self.name, index)

    def available(self) -> Sequence[int]:
        """The partitions that are available, or all if none is."""
        return [index for index in range(self.count) if self.is_available(index)] or range(self.count)

    def queued_bytes(self, index: int) -> int:
        """Bytes that wait at a partition."""
        found = self.partitions.get(index)
        return found.queue.bytes if found else 0
