"""Times to look at partitions though nothing happens: deadlines, lingering batches, pauses, stalls."""

from heapq import heappop, heappush
from itertools import count

from korvet_fast.client.producer.partition_producer import NEVER, PartitionProducer


class WakeTimes:
    """A heap of times; each partition's next one counts, others of it are passed over."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, PartitionProducer]] = []
        self._numbers = count()

    def wake(self, partition: PartitionProducer, at: float) -> None:
        """Look at the partition then, or earlier."""
        if at < partition.wakes_at:
            partition.wakes_at = at
            heappush(self._heap, (at, next(self._numbers), partition))

    def take_due(self, now: float) -> list[PartitionProducer]:
        """The partitions whose time has come."""
        due = []
        while self._heap and self._heap[0][0] <= now:
            at, _, partition = heappop(self._heap)
            if at == partition.wakes_at:
                partition.wakes_at = NEVER
                due.append(partition)
        return due

    def next_time(self) -> float | None:
        """The next of these times."""
        return self._heap[0][0] if self._heap else None
