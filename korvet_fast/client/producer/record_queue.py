"""The messages of a partition that are in no batch yet, in order."""

from collections import OrderedDict

from korvet_fast.client.producer.message import QueuedRecords, RecordState

# Looked up once: the class of an enumeration is slow to ask.
_QUEUED, _BATCHED = RecordState.QUEUED, RecordState.BATCHED


class RecordQueue:
    """A queue that knows its size. `records`: the oldest first; only to be read from outside. One in the middle goes as
    fast as the first. `bytes`: of them in batches; `messages`: rows count each.
    """

    __slots__ = ("bytes", "messages", "records")

    def __init__(self) -> None:
        self.records: OrderedDict[QueuedRecords, None] = OrderedDict()
        self.bytes = 0
        self.messages = 0

    def __bool__(self) -> bool:
        return bool(self.messages)

    @property
    def first(self) -> QueuedRecords:
        """The oldest. Only if there is one."""
        return next(iter(self.records))

    def append(self, records: QueuedRecords) -> None:
        """Add at the end."""
        records.state = _QUEUED
        self.records[records] = None
        self.bytes += records.size
        self.messages += records.count

    def resize(self, size: int, count: int) -> None:
        """Records that are in the queue got more, or (negative) fewer."""
        self.bytes += size
        self.messages += count

    def put_back(self, records: QueuedRecords) -> None:
        """Add at the front, where they came from."""
        self.append(records)
        self.records.move_to_end(records, last=False)

    def remove(self, records: QueuedRecords) -> None:
        """Take one out, wherever it is."""
        del self.records[records]
        self.bytes -= records.size
        self.messages -= records.count

    def take(self, most_bytes: int, most_messages: int) -> list[QueuedRecords]:
        """Take the records of one batch: one at least, then more while there is room. `most_messages` 0: no limit."""
        if self.bytes <= most_bytes and self.messages <= (most_messages or self.messages):
            whole = list(self.records)
            self.records.clear()
            self.bytes = self.messages = 0
            for each in whole:
                each.state = _BATCHED
            return whole
        taken: list[QueuedRecords] = []
        size = count = 0
        while self.records:
            each = self.first
            full = size + each.size > most_bytes or (most_messages and count + each.count > most_messages)
            if taken and full:
                break
            taken.append(each)
            del self.records[each]
            each.state = _BATCHED
            size += each.size
            count += each.count
        self.bytes -= size
        self.messages -= count
        return taken
