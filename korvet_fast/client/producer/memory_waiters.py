"""Messages that wait for memory, each partition's in order; none overtakes another of its partition."""

from collections import OrderedDict
from collections.abc import Iterator

from korvet_fast.client.producer.message import QueuedRecords, RecordState

Key = tuple[str, int]  # topic and partition, -1 while none was chosen


class MemoryWaiters:
    """A line for each partition. `until`: when a message has waited too long.

    A message that joins the line of those without a partition stays there also when its partition is chosen meanwhile.
    """

    def __init__(self) -> None:
        self._lines: dict[Key, OrderedDict[QueuedRecords, None]] = {}
        self._until: OrderedDict[QueuedRecords, float] = OrderedDict()  # in order: everybody may wait equally long
        self._keys: dict[QueuedRecords, Key] = {}  # which line each stands in

    def __len__(self) -> int:
        return len(self._until)

    def __iter__(self) -> Iterator[QueuedRecords]:
        return iter(list(self._until))

    def blocks(self, topic: str, partition: int) -> bool:
        """Whether a message has to wait because an earlier one of its partition, or one that may become it, does."""
        return bool(self._lines) and ((topic, partition) in self._lines or (topic, -1) in self._lines)

    def append(self, records: QueuedRecords, until: float) -> None:
        """Add a message at the end of its partition's line."""
        records.state = RecordState.LINE
        key = self._keys[records] = records.topic, records.partition
        self._lines.setdefault(key, OrderedDict())[records] = None
        self._until[records] = until

    def remove(self, records: QueuedRecords) -> None:
        """Take a message out."""
        key = self._keys.pop(records)
        line = self._lines[key]
        del line[records]
        if not line:
            del self._lines[key]
        del self._until[records]

    def places(self) -> list[Key]:
        """The partitions with waiting messages; messages without a partition come first, since others wait for them."""
        return sorted(self._lines, key=lambda key: key[1] >= 0)

    def first(self, key: Key) -> QueuedRecords | None:
        """Whose turn it is there."""
        line = self._lines.get(key)
        return next(iter(line)) if line else None

    def next_time(self) -> float | None:
        """The time when the oldest message has waited too long."""
        return next(iter(self._until.values()), None)

    def expired(self, now: float) -> QueuedRecords | None:
        """One that has waited too long."""
        records = next(iter(self._until), None)
        return records if records is not None and self._until[records] <= now else None
