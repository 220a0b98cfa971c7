"""Batches of idempotent producers that this broker refused while it did not lead, and those sent right behind them.

A producer has several batches of a partition on their way. If this broker becomes the leader between two of them, the
second is a gap through no error of its producer's. At OUT_OF_ORDER_SEQUENCE_NUMBER librdkafka takes another epoch and
sends again every batch whose outcome it does not know, in all partitions: those would be stored twice. And where this
broker knows nothing of the producer, it would store the second batch, and librdkafka would take the first for stored
too. So the second batch gets the error of the first.
"""

from struct import Struct
from typing import Final

from korvet_fast.core.partition.producer_state import KEPT, ProducerSequence, ProducerState
from korvet_fast.errors import Errors, KorvetError

MOST: Final = 1000  # partitions and producers remembered for one connection
_WRAP: Final = 1 << 31
_PRODUCER = Struct(">qhi")  # a batch's producer id, producer epoch and first sequence
_PRODUCER_AT: Final = 43


class RefusedBatches:
    """The first batch that was refused of each partition and producer, on one connection; at most `most` are kept."""

    __slots__ = ("_last", "_most")

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        # By partition and producer id: its epoch, the first sequence, and how many may be on their way behind it.
        self._last: dict[tuple[str, int], tuple[int, int, int]] = {}

    def __len__(self) -> int:
        return len(self._last)

    def add(self, partition: str, data: bytearray | memoryview | None) -> None:
        """This batch was refused; `partition` as it names itself."""
        if not data or len(data) < _PRODUCER_AT + _PRODUCER.size:
            return
        identity, epoch, first = _PRODUCER.unpack_from(data, _PRODUCER_AT)
        if identity < 0:
            return
        key, last = (partition, identity), self._last
        refused_in, refused, _ = last.get(key, (-1, 0, 0))
        if refused_in == epoch and _is_behind(first, refused):
            return
        last.pop(key, None)
        last[key] = epoch, first, KEPT - 1
        if len(last) > self._most:
            del last[next(iter(last))]

    def check(self, partition: str, producers: ProducerState, sequence: ProducerSequence | None) -> None:
        """Raises `KorvetError` NOT_LEADER_OR_FOLLOWER if this batch was sent behind one that was refused.

        A producer that sends the expected batch, or the refused one again, is not checked any more.
        """
        if sequence is None or (found := self._last.get((partition, sequence[0]))) is None:
            return
        identity, epoch, first, _ = sequence
        refused_in, refused, left = found
        if epoch != refused_in or not _is_behind(first, refused) or producers.is_next(sequence):
            del self._last[partition, identity]
            return
        if left > 1:
            self._last[partition, identity] = epoch, refused, left - 1
        else:
            del self._last[partition, identity]  # no more are on their way behind it: the next one is a gap
        raise KorvetError(Errors.NOT_LEADER_OR_FOLLOWER, f"sequence {first}, but {refused} was refused before it")


def _is_behind(first: int, refused: int) -> bool:
    """Whether a sequence comes after the refused one; sequences begin again behind the highest."""
    return 0 < (first - refused) % _WRAP < _WRAP // 2
