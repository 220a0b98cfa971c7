"""Idempotence of one partition: what its producers sent last, and whether a batch is next, a repetition, or wrong.

Pure: no clock, no I/O. Rules: KIP-98, KIP-360, and https://kafka.apache.org/documentation/#producerconfigs_enable.idempotence.
A sequence number counts records of one producer id, from 0 to 2^31-1 and then from 0 again.
"""

import struct
from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from korvet_fast.errors import KorvetError

KEPT = 5  # batches a client may have in flight, and so may repeat
MOST = 20_000  # producers of one partition; beyond it, who was silent longest is forgotten
_WRAP = 1 << 31
_COUNTABLE = 1 << 30  # half of the numbers: beyond it, before and after cannot be told apart

# What is looked at in a batch (`_native.Batch.numbers`): producer id, its epoch, the first sequence, how many records.
Numbers: TypeAlias = tuple[int, int, int, int]


class Stored(NamedTuple):
    """A batch that is in the log: sequences and offsets, both ends included, and the time it was given (ms)."""

    first: int
    last: int
    base_offset: int
    last_offset: int
    timestamp: int


class Producer:
    """A producer's last batches, each as a `Stored` has it, and the sequence that follows them.

    `before` counts sequences stored, without a gap, ahead of the oldest batch kept.
    """

    __slots__ = ("batches", "before", "epoch", "following", "seen")

    def __init__(self, epoch: int, seen: float) -> None:
        self.epoch = epoch
        self.seen = seen
        self.before = self.following = 0
        self.batches: deque[tuple[int, int, int, int, int]] = deque()


class Producers:
    """All producers of one partition. `check` says, `add` remembers; they are apart as an append may fail between."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: OrderedDict[int, Producer] = OrderedDict()  # who was heard of last comes last

    def __len__(self) -> int:
        return len(self._known)

    def check(self, numbers: Numbers) -> Stored | None:
        """None if the batch is to be stored; what was stored before if it is a repetition.

        Raises `KorvetError` INVALID_RECORD, INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER, or
        DUPLICATE_SEQUENCE_NUMBER for a repetition of which the offset is no longer known.
        """
        producer_id, epoch, first, count = numbers
        if first < 0 or epoch < 0:
            raise KorvetError("INVALID_RECORD", "a batch with a producer id needs an epoch and a sequence number")
        known = self._known.get(producer_id)
        if known is None:
            return None
        expected = known.following
        if epoch == known.epoch and first == expected:
            return None
        if epoch != known.epoch:
            if epoch < known.epoch:
                raise KorvetError("INVALID_PRODUCER_EPOCH", f"epoch {epoch}, but {known.epoch} is known")
            if first != 0:
                raise KorvetError("OUT_OF_ORDER_SEQUENCE_NUMBER", f"new epoch {epoch} begins at {first}, not at 0")
            return None
        last = (first + count - 1) % _WRAP
        for stored in known.batches:
            if stored[:2] == (first, last):
                return Stored(*stored)
        back = (known.batches[0][0] - first) % _WRAP
        if count <= back <= known.before:
            raise KorvetError("DUPLICATE_SEQUENCE_NUMBER", f"sequences {first} to {last} were stored before")
        raise KorvetError("OUT_OF_ORDER_SEQUENCE_NUMBER", f"sequence {first}, but {expected} is next")

    def add(self, numbers: Numbers, base_offset: int, timestamp: int, seen: float) -> None:
        """The batch is in the log from `base_offset` on. `seen`: when, for `expire`."""
        producer_id, epoch, first, count = numbers
        known = self._known.get(producer_id)
        if known is None or known.epoch != epoch or first != known.following:
            known = self._known[producer_id] = Producer(epoch, seen)
            if len(self._known) > MOST:
                self._known.popitem(last=False)
        elif len(known.batches) == KEPT:
            _, _, oldest, end, _ = known.batches.popleft()
            known.before = min(known.before + end - oldest + 1, _COUNTABLE)
        known.following = (first + count) % _WRAP
        last = base_offset + count - 1
        known.batches.append((first, (first + count - 1) % _WRAP, base_offset, last, timestamp))
        known.seen = seen
        self._known.move_to_end(producer_id)

    def forget(self, offset: int) -> None:
        """The batches from `offset` on are not in the log after all."""
        for producer_id, known in list(self._known.items()):
            while known.batches and known.batches[-1][2] >= offset:
                known.following = known.batches.pop()[0]
            if not known.batches:
                del self._known[producer_id]

    def expire(self, before: float) -> None:
        """Forget the producers last seen earlier than `before`."""
        while self._known and next(iter(self._known.values())).seen < before:
            self._known.popitem(last=False)

    def pack(self) -> bytes:
        """Everything known, as little-endian 64-bit numbers: id, epoch, before, how many batches, batches."""
        numbers: list[int] = []
        for producer_id, known in self._known.items():
            numbers += (producer_id, known.epoch, known.before, len(known.batches))
            for stored in known.batches:
                numbers += stored
        return struct.pack(f"<{len(numbers)}q", *numbers)

    @classmethod
    def unpack(cls, data: bytes | memoryview, seen: float) -> "Producers":
        """What `pack` gave; all are taken as seen at `seen`."""
        producers = cls()
        numbers: Iterator[int] = iter(struct.unpack(f"<{len(data) // 8}q", data))
        for producer_id in numbers:
            known = producers._known[producer_id] = Producer(next(numbers), seen)
            known.before, many = next(numbers), next(numbers)
            known.batches.extend(Stored(*(next(numbers) for _ in range(5))) for _ in range(many))
            known.following = (known.batches[-1][1] + 1) % _WRAP
        return producers
