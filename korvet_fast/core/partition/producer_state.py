"""Idempotence of one partition: what its producers sent last, and whether a batch is next, a repetition, or wrong.

Pure: no clock, no I/O. Rules: KIP-98, KIP-360, and https://kafka.apache.org/documentation/#producerconfigs_enable.idempotence.
A sequence number counts records of one producer id, from 0 to 2^31-1 and then from 0 again.
"""

import struct
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias

from korvet_fast.errors import Errors, KorvetError

KEPT = 5  # batches a client may have in flight, and so may repeat
MOST = 100_000  # producers remembered, where nobody says how many
_FIELDS: Final = 5  # numbers kept of a batch: those of `BatchMetadata`
_WRAP = 1 << 31
_ROOM: Final = 512  # bytes that a table may take for each entry: four times what it takes without deletions
_SMALL: Final = 4096  # bytes of a table that are not worth the trouble
_COUNTABLE = 1 << 30  # half of the numbers: beyond it, before and after cannot be told apart

# A batch's (`_native.Batch.producer_sequence`): producer id, its epoch, the first sequence number, the record count.
ProducerSequence: TypeAlias = tuple[int, int, int, int]


class BatchMetadata(NamedTuple):
    """A batch that is in the log: sequences and offsets, both ends included, and the time it was given (ms)."""

    first: int
    last: int
    base_offset: int
    last_offset: int
    timestamp: int


class ProducerStateEntry:
    """The last batches that one producer sent to one partition, and the sequence that follows.

    `batches`: the numbers of a `BatchMetadata` for each of its last batches, oldest first. `before` counts sequences
    stored, without a gap, ahead of those. `owner`: the state of its partition.
    """

    __slots__ = ("batches", "before", "epoch", "following", "id", "owner", "seen")

    def __init__(self, identity: int, epoch: int, seen: float, owner: "ProducerState") -> None:
        self.id = identity
        self.owner = owner
        self.begin(epoch)
        self.seen = seen

    def begin(self, epoch: int) -> None:
        """Begin an epoch: forget the batches of the one before."""
        self.epoch = epoch
        self.before = self.following = 0
        self.batches: list[int] = []


class ProducerLimit:
    """Bounds the producers of all partitions together: beyond `most`, the one that was silent longest is forgotten.

    A segmented LRU. A producer that has sent one batch is on probation, and is forgotten first; one that has sent more
    is protected, up to seven eighths of all. So ids that are made up for one batch each cannot displace producers at
    work.

    `on_forget` is called with the log and the id of each producer that is forgotten as it is silent, or one too many.
    """

    __slots__ = ("_on_forget", "_probation", "_protected", "most")

    def __init__(self, most: int = MOST, on_forget: Callable[[str, int], None] | None = None) -> None:
        self.most = most
        self._on_forget = on_forget
        # In both, the producer heard of last comes last.
        self._probation: OrderedDict[ProducerStateEntry, None] = OrderedDict()
        self._protected: OrderedDict[ProducerStateEntry, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._probation) + len(self._protected)

    def enter(self, producer: ProducerStateEntry) -> None:
        """Add a producer that sent its first batch; forget the oldest beyond `most`."""
        self._probation[producer] = None
        while len(self) > self.most:
            oldest, _ = (self._probation or self._protected).popitem(last=False)
            self._forget(oldest)

    def touch(self, producer: ProducerStateEntry) -> None:
        """A producer sent one more batch."""
        if producer in self._protected:
            self._protected.move_to_end(producer)
            return
        del self._probation[producer]
        self._protected[producer] = None
        if len(self._protected) > self.most * 7 // 8:
            oldest, _ = self._protected.popitem(last=False)
            self._probation[oldest] = None

    def expire(self, producer: ProducerStateEntry) -> None:
        """Forget a producer that was silent for long."""
        self._take_out(producer)
        self._forget(producer)

    def remove(self, producer: ProducerStateEntry) -> None:
        """Remove a producer whose batches are not in the log, or whose partition this broker leads no longer."""
        self._take_out(producer)
        producer.owner.drop(producer.id)

    def _take_out(self, producer: ProducerStateEntry) -> None:
        _take_out(self._protected if producer in self._protected else self._probation, producer)

    def _forget(self, producer: ProducerStateEntry) -> None:
        owner = producer.owner
        owner.drop(producer.id)
        if self._on_forget is not None:
            self._on_forget(owner.log, producer.id)


def _take_out(table: dict[Any, Any], key: object) -> None:
    """Delete an entry, and give back the room of those deleted before: a table that shrinks keeps it otherwise."""
    del table[key]
    if sys.getsizeof(table) > _SMALL + _ROOM * len(table):
        left = list(table.items())
        table.clear()
        table.update(left)


class ProducerState:
    """All producers of one partition. `check` judges a batch before its append, `add` remembers it afterwards."""

    __slots__ = ("_known", "_limit", "log")

    def __init__(self, limit: ProducerLimit | None = None, log: str = "") -> None:
        """`limit`: shared with other partitions. `log`: the name of the partition's log."""
        self.log = log
        self._known: dict[int, ProducerStateEntry] = {}
        self._limit = ProducerLimit() if limit is None else limit

    def __len__(self) -> int:
        return len(self._known)

    def is_next(self, sequence: ProducerSequence) -> bool:
        """Whether the batch follows the last one that is known of its producer."""
        known = self._known.get(sequence[0])
        return known is not None and known.epoch == sequence[1] and known.following == sequence[2]

    def check(self, sequence: ProducerSequence) -> BatchMetadata | None:
        """None if the batch is to be stored; for a repetition, the batch that was stored before.

        Raises `KorvetError` INVALID_RECORD, INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER, or
        DUPLICATE_SEQUENCE_NUMBER for a repetition of which the offset is no longer known.
        """
        producer_id, epoch, first, count = sequence
        if first < 0 or epoch < 0:
            raise KorvetError(Errors.INVALID_RECORD, "a batch with a producer id needs an epoch and a sequence number")
        known = self._known.get(producer_id)
        if known is None:
            return None
        expected = known.following
        if epoch == known.epoch and first == expected:
            return None
        if epoch != known.epoch:
            if epoch < known.epoch:
                raise KorvetError(Errors.INVALID_PRODUCER_EPOCH, f"epoch {epoch}, but {known.epoch} is known")
            if first != 0:
                raise KorvetError(Errors.OUT_OF_ORDER_SEQUENCE_NUMBER, f"new epoch {epoch} begins at {first}, not at 0")
            return None
        last = (first + count - 1) % _WRAP
        batches = known.batches
        for at in range(0, len(batches), _FIELDS):
            if batches[at] == first and batches[at + 1] == last:
                return BatchMetadata(*batches[at : at + _FIELDS])
        back = ((batches[0] if batches else expected) - first) % _WRAP
        if count <= back <= known.before:
            raise KorvetError(Errors.DUPLICATE_SEQUENCE_NUMBER, f"sequences {first} to {last} were stored before")
        raise KorvetError(Errors.OUT_OF_ORDER_SEQUENCE_NUMBER, f"sequence {first}, but {expected} is next")

    def add(self, sequence: ProducerSequence, base_offset: int, timestamp: int, seen: float) -> None:
        """The batch is in the log from `base_offset` on. `seen`: when, for `expire`."""
        producer_id, epoch, first, count = sequence
        known = self._known.get(producer_id)
        if known is None:
            known = self._known[producer_id] = ProducerStateEntry(producer_id, epoch, seen, self)
            self._limit.enter(known)
        else:
            self._limit.touch(known)
            if known.epoch != epoch or first != known.following:
                known.begin(epoch)
        batches = known.batches
        if len(batches) == KEPT * _FIELDS:
            known.before = min(known.before + batches[3] - batches[2] + 1, _COUNTABLE)
            del batches[:_FIELDS]
        known.following = (first + count) % _WRAP
        batches += (first, (first + count - 1) % _WRAP, base_offset, base_offset + count - 1, timestamp)
        known.seen = seen

    def forget(self, offset: int) -> None:
        """Forget the batches from `offset` on: they are not in the log."""
        for known in list(self._known.values()):
            batches = known.batches
            while batches and batches[-_FIELDS + 2] >= offset:
                known.following = batches[-_FIELDS]
                del batches[-_FIELDS:]
            # A producer with nothing else in the log is unknown; but a new epoch begins at 0, also the second time.
            if not (batches or known.before or known.epoch):
                self._limit.remove(known)

    def expire(self, before: float) -> None:
        """Forget the producers last seen earlier than `before`."""
        for known in [known for known in self._known.values() if known.seen < before]:
            self._limit.expire(known)
        if not self._known:
            self._known.clear()  # its room too

    def drop(self, producer_id: int) -> None:
        """Remove a producer that the limit has removed."""
        _take_out(self._known, producer_id)

    def clear(self) -> None:
        """Forget all of them."""
        for known in list(self._known.values()):
            self._limit.remove(known)

    @property
    def is_plain(self) -> bool:
        """Whether each producer has a batch: earlier versions of this program can load no other state."""
        return all(known.batches for known in self._known.values())

    def pack(self) -> bytes:
        """Everything known, as little-endian 64-bit numbers: id, epoch, before, how many batches, batches.

        Where there are no batches, the sequence that follows stands in their place.
        """
        numbers: list[int] = []
        for known in self._known.values():
            numbers += (known.id, known.epoch, known.before, len(known.batches) // _FIELDS)
            numbers += known.batches or (known.following,)
        return struct.pack(f"<{len(numbers)}q", *numbers)

    def load(self, data: bytes | memoryview, seen: float) -> None:
        """Replace all producers by those that `pack` packed.

        All producers count as heard of at `seen` (monotonic seconds).
        """
        self.clear()
        numbers: Iterator[int] = iter(struct.unpack(f"<{len(data) // 8}q", data))
        for producer_id in numbers:
            known = self._known[producer_id] = ProducerStateEntry(producer_id, next(numbers), seen, self)
            known.before, many = next(numbers), next(numbers)
            known.batches = list(islice(numbers, _FIELDS * many))
            known.following = (known.batches[1 - _FIELDS] + 1) % _WRAP if many else next(numbers)
            self._limit.enter(known)
            if many > 1 or known.before:
                self._limit.touch(known)
