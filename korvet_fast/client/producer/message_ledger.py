"""The account of every message from acceptance to its one end: memory, counts, flushes."""

from collections import deque
from collections.abc import Iterable

from korvet_fast.client.producer.memory_budget import Destination, MemoryBudget
from korvet_fast.client.producer.message import (
    COPIES,
    OVERHEAD,
    DeliveryFailed,
    Outcome,
    ProducerBroken,
    ProducerClosed,
    QueuedRecords,
    RecordState,
)
from korvet_fast.client.producer.message_run import MessageRun
from korvet_fast.client.producer.metrics import Counts

# Looked up once: the class of an enumeration is slow to ask.
_LINE, _ENDED = RecordState.LINE, RecordState.ENDED
_DELIVERED = Outcome.DELIVERED


class MessageLedger:
    """`ended`: messages that have ended, each partition's in order, until the driver takes them out.

    `held`: all records that were accepted and have not ended, whichever stage they are at. `broken`: why no stage can
    be trusted any more. `freed`: memory was given back since this was last set to False; `releases` counts how often.
    `hurried`: no batch waits for more messages. `waiting`: messages for which there is no memory, and since when, the
    first one the longest.
    """

    def __init__(self, memory: int) -> None:
        self.memory = MemoryBudget(memory)
        self.counts = Counts()
        self.ended: deque[QueuedRecords] = deque()
        self.freed = False
        self.releases = 0
        self.closing = False
        self.broken: ProducerBroken | None = None
        self.held: dict[QueuedRecords, None] = {}
        self.waiting: dict[QueuedRecords, float] = {}
        self._last = 0
        self._flushes: dict[int, int] = {}  # last number of a flush -> messages up to it that have not ended

    @property
    def hurried(self) -> bool:
        """Whether no batch waits for more messages: at a flush, at close, and when memory is short."""
        return self.closing or bool(self.waiting) or bool(self._flushes)

    def add(self, records: QueuedRecords) -> None:
        """A message was accepted, or waits in line."""
        self._last += 1
        records.number = self._last
        self.held[records] = None
        self.counts.accepted += records.count

    def grow(self, run: MessageRun, granted: int, most: int) -> bool:
        """Count memory for more messages of an open run; False if there is no room."""
        more = COPIES * (granted - run.granted) + OVERHEAD * (most - run.cells.most)
        if run.partition < 0 and not self.memory.has_spare(more):
            return False
        if not self.memory.take(run.destination, more):
            return False
        run.grant(granted, most)
        return True

    def shut(self, run: MessageRun) -> None:
        """No message joins the run any more: its messages are counted, and memory for others is given back."""
        before = run.count
        unused = run.shut()
        self.counts.accepted += run.count - before
        if unused:
            self.memory.give_back(run.destination, unused)
            self.note_room()

    def charge(self, records: QueuedRecords, destination: Destination) -> bool:
        """Count a message's bytes; False if there is no room."""
        if not self.memory.take(destination, records.charge):
            return False
        records.destination = destination
        return True

    def collect(self, run: MessageRun) -> bool:
        """Count a run whose messages go to partitions of any broker; False if there is no room for that."""
        return self.memory.has_spare(run.charge) and self.charge(run, run.topic)

    def move(self, records: QueuedRecords, destination: Destination) -> None:
        """It is known now where collected messages go: they are counted there."""
        self.memory.move(records.destination, destination, records.charge)
        records.destination = destination

    def move_from_line(self, records: QueuedRecords, destination: Destination) -> bool:
        """Count a message that waited for memory for its destination; False if there is no room yet."""
        if not self.memory.move_from_line(records.topic, destination, records.charge):
            return False
        del self.waiting[records]
        records.destination = destination
        return True

    def finish(self, records: QueuedRecords, outcome: Outcome, error: DeliveryFailed | None) -> None:
        """A message has ended. Its bytes are given back, unless its result waits to be taken (`release`)."""
        assert records.outcome is None, "a message ends once"
        in_line, records.state = records.state is _LINE, _ENDED
        records.outcome, records.error = outcome, error
        if in_line:
            del self.waiting[records]
            self.memory.leave_line(records.topic, records.charge)
            self.releases += 1
        elif not records.keeps_memory(outcome):
            self.release(records)
        self.held.pop(records, None)  # one that was taken out of a run, on its caller's wish, was never in it
        self._count(records, outcome)
        self.ended.append(records)

    def divide(self, records: QueuedRecords, parts: Iterable[QueuedRecords]) -> None:
        """Records that were accepted together go on in parts."""
        self.held.pop(records, None)
        self.held.update(dict.fromkeys(parts))

    def refuse(self) -> None:
        """Raise `ProducerClosed` if no message is taken any more."""
        if self.broken is not None:
            raise ProducerBroken(str(self.broken), cause=self.broken.cause)
        if self.closing:
            raise ProducerClosed("the producer is closed; it takes no more messages")

    def break_off(self, error: ProducerBroken) -> None:
        """End everything, without a look at any stage: what is in a batch as unknown, the rest as not written."""
        self.closing, self.broken = True, error
        self._flushes.clear()
        self.waiting.clear()
        held, self.held = self.held, {}
        for records in held:
            if isinstance(records, MessageRun) and records.count < len(records.cells):  # it was open
                self.counts.accepted += len(records.cells) - records.count
                records.shut()
            if records.outcome is None:
                was_batched = records.state is RecordState.BATCHED
                records.outcome = Outcome.UNKNOWN if was_batched else Outcome.NOT_WRITTEN
                records.error = error
            records.state = RecordState.ENDED
            self._count(records, records.outcome)
            self.ended.append(records)

    def release(self, records: QueuedRecords) -> None:
        """Give back the bytes of a message that was charged."""
        self.memory.give_back(records.destination, records.charge)
        self.note_room()

    def note_room(self) -> None:
        """Messages that wait for memory may get some now."""
        self.freed = True
        self.releases += 1

    def flush(self) -> int:
        """Send what is there without waiting for more. Returns a number for `is_flushed`."""
        if self.counts.open:
            self._flushes.setdefault(self._last, self.counts.open)
        return self._last

    def is_flushed(self, number: int) -> bool:
        """Whether everything accepted before that flush has ended."""
        return number not in self._flushes

    def _count(self, records: QueuedRecords, outcome: Outcome) -> None:
        if outcome is _DELIVERED:
            self.counts.delivered += records.count
        elif outcome is Outcome.UNKNOWN:
            self.counts.unknown += records.count
        else:
            self.counts.failed += records.count
        if not self._flushes:
            return
        for number in list(self._flushes):
            if records.number <= number:
                self._flushes[number] -= records.count
                if not self._flushes[number]:
                    del self._flushes[number]
