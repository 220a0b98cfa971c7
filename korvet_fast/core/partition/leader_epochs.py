"""Leader epochs of a partition and the offsets that each wrote (KIP-101): a rising list of (epoch, first offset)."""

from bisect import bisect_right
from collections.abc import Iterable
from operator import itemgetter

from korvet_fast.errors import Errors

EpochOffset = tuple[int, int]
_NONE = -1  # as an epoch: it is not known
_LAST = (1 << 31) - 2  # epochs are int32 numbers, and so is the one that comes after
_FIRST = itemgetter(1)  # of an entry


def epoch_error(given: int, known: int) -> Errors:
    """The error for a request that was made under another leader epoch than the `known` one (KIP-320)."""
    return Errors.FENCED_LEADER_EPOCH if given < known else Errors.UNKNOWN_LEADER_EPOCH


def explain_last_epoch(epoch: int) -> str:
    """Why no broker may lead under this epoch; "" if one may."""
    return "" if epoch <= _LAST else f"no broker can lead under epoch {epoch}: no other one could lead after it"


class LeaderEpochCache:
    """The history of one partition; an epoch that wrote nothing is forgotten when the next one begins."""

    __slots__ = ("entries", "last")

    def __init__(self, entries: Iterable[EpochOffset] = ()) -> None:
        self.replace(entries)

    def replace(self, entries: Iterable[EpochOffset]) -> None:
        """Replace all entries by these; epochs and offsets rise."""
        self.entries = list(entries)
        self.last = self.entries[-1][0] if self.entries else -1

    def add(self, epoch: int, offset: int) -> None:
        """Begin `epoch` at `offset`: records at and above it are written under this epoch."""
        if epoch > self.last:
            while self.entries and self.entries[-1][1] >= offset:
                del self.entries[-1]  # the last epoch wrote nothing
            self.entries.append((epoch, offset))
            self.last = epoch

    def trim(self, start: int) -> None:
        """Forget epochs that wrote nothing at or above `start`."""
        while len(self.entries) > 1 and self.entries[1][1] <= start:
            del self.entries[0]

    def truncate(self, end: int) -> None:
        """Forget the epochs that begin at or above `end`: the log ends there now."""
        self.replace(entry for entry in self.entries if entry[1] < end)

    def find_epoch(self, offset: int) -> int:
        """The epoch under which the record at `offset` was written, or would have been; -1 if it is not known."""
        after = bisect_right(self.entries, offset, key=_FIRST)
        return self.entries[after - 1][0] if after else _NONE

    def find_end(self, epoch: int, start: int, end: int) -> EpochOffset:
        """(the largest epoch known up to `epoch`, the offset after its last record).

        (-1, -1) if all are older, or `epoch` is -1.
        Rules of KIP-101 and KIP-279; an epoch older than all known ends where the log starts.
        """
        if epoch > self.last or epoch == _NONE:
            return _NONE, -1
        found = epoch
        for known, first in self.entries:
            if known > epoch:
                return found, max(first, start)
            found = known
        return found, end
