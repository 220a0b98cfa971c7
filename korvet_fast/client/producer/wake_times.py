"""Times to look at partitions though nothing happens: deadlines, lingering batches, pauses, stalls."""

from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final

from korvet_fast.client.producer.partition_producer import NEVER, PartitionProducer

_FEW: Final = 64  # times that are kept, whether they count or not


class WakeTimes:
    """A heap of times; each partition's next one counts. Others are passed over, and taken out when they are many.

    A partition that lingers leaves one behind with each batch, for a time that may be days away.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, PartitionProducer]] = []
        self._numbers = count()
        self._most = _FEW

    def wake(self, partition: PartitionProducer, at: float) -> None:
        """Look at the partition then, or earlier."""
        if at < partition.wakes_at:
            partition.wakes_at = at
            heappush(self._heap, (at, next(self._numbers), partition))
            if len(self._heap) > self._most:
                self._heap = list({each[2]: each for each in self._heap if each[0] == each[2].wakes_at}.values())
                heapify(self._heap)
                self._most = max(_FEW, 2 * len(self._heap))

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
