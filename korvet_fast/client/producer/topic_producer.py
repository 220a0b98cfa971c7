"""The stage of one topic (Sarama's topicProducer): chooses partitions, and holds what comes before they are known."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from random import Random

from korvet_fast._native import ColumnRows
from korvet_fast.client.producer.config import ProducerConfig
from korvet_fast.client.producer.message import BATCH_HEADER, DeliveryFailed, QueuedRecords, RecordState
from korvet_fast.client.producer.message_run import MessageRun
from korvet_fast.client.producer.partition_producer import PartitionProducer
from korvet_fast.client.producer.partitioners import Chosen, Partitioner, StickyPartitioner


class TopicProducer:
    """A topic that messages are sent to. `count`: its partitions, 0 while they are not known.

    `pending`: messages without a partition yet, in order. `awaited`: somebody else wants to know the partitions.
    `stopped`: partitions that take no messages since one of theirs failed (`on.failure` = stop), and the failure.
    `runs`: those that are open, by partition; `sticky_run`: the one that messages without a key join.
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
        self.count = 0
        self.awaited = False
        self.stopped: dict[int, DeliveryFailed] = {}
        self.pending: deque[QueuedRecords] = deque()
        self.partitions: dict[int, PartitionProducer] = {}
        self.runs: dict[int, MessageRun] = {}
        self.sticky_run: MessageRun | None = None
        self._manual = config.partitioner == "manual"
        self._make_partition = make_partition
        self._can_reach = can_reach
        self._run_limit = min(config.batch_limit, config.message_bytes - BATCH_HEADER)
        sticky = StickyPartitioner(config.batch_limit, config.adaptive, random)
        self._partitioner = Partitioner(config.partitioner, config.ignore_keys, sticky, random)

    def choose(self, records: QueuedRecords) -> PartitionProducer | None:
        """The partition that messages go to; None while it cannot be said. Raises `DeliveryFailed` if there is none."""
        if records.partition < 0 and self._manual:
            raise DeliveryFailed("partitioner=manual: each message has to name its partition; give partition=")
        if not self.count:
            return None
        if records.partition < 0:
            key = records.keys[0] if records.keys else None
            records.partition = self.choose_index(key, records.size)
        if records.partition >= self.count and records.partition not in self.partitions:
            raise DeliveryFailed(
                f"topic {self.name!r} has no partition {records.partition}; it has 0 to {self.count - 1}"
            )
        if records.partition in self.stopped:
            failure = self.stopped[records.partition]
            raise DeliveryFailed(f"partition {records.partition} takes no messages since one failed: {failure}")
        return self.partition(records.partition)

    def choose_index(self, key: bytes | None, size: int) -> int:
        """The partition for a key, or for a message without one. Only when the partitions are known."""
        return self._partitioner.choose(key, size, self)

    def choose_rows(self, rows: ColumnRows, keys: Iterable[bytes | None]) -> Chosen:
        """The partition of each row by its key, -1 for the sticky one; None if keys do not matter."""
        return self._partitioner.choose_rows(rows, keys, self)

    def open_run(self, key: bytes | None, partition: int | None) -> MessageRun | None:
        """The run that a message joins, if its partition has an open one."""
        if partition is None:
            place = self._partitioner.place
            if key is None or place is None:
                return self.sticky_run
            partition = place(key, self.count) if self.count else -1
        return self.runs.get(partition)

    def open(self, run: MessageRun, key: bytes | None, chosen: bool) -> None:
        """Messages for its partition join this run from now on. `chosen`: the partitioner chose the partition."""
        self.runs[run.partition] = run
        run.limit = self._run_limit
        if chosen and self._partitioner.is_sticky(key):
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
        """The stage of a partition. It lives as long as the producer: its sequence numbers must not be lost."""
        found = self.partitions.get(index)
        if found is None:
            found = self.partitions[index] = self._make_partition(self.name, index)
        return found

    def wait_for_partitions(self, records: QueuedRecords) -> None:
        """Keep a message until the partitions are known."""
        records.state = RecordState.PENDING
        self.pending.append(records)

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
