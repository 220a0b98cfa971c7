"""Which leader epoch wrote which offsets of a partition (KIP-101): a short rising list of (epoch, first offset)."""

Epoch = tuple[int, int]


class Epochs:
    """The history of one partition; an epoch that wrote nothing is forgotten when the next one begins."""

    __slots__ = ("entries", "last")

    def __init__(self, entries: list[Epoch] | None = None) -> None:
        self.entries: list[Epoch] = entries or []
        self.last = self.entries[-1][0] if self.entries else -1

    def add(self, epoch: int, offset: int) -> None:
        """What is written at `offset` and above, from now on, is written under `epoch`."""
        if epoch > self.last:
            while self.entries and self.entries[-1][1] >= offset:
                del self.entries[-1]  # it wrote nothing
            self.entries.append((epoch, offset))
            self.last = epoch

    def trim(self, start: int) -> None:
        """Forget epochs that wrote nothing at or above `start`."""
        while len(self.entries) > 1 and self.entries[1][1] <= start:
            del self.entries[0]

    def find_end(self, epoch: int, start: int, end: int) -> Epoch:
        """(the largest epoch known up to `epoch`, the offset after its last record); (-1, -1) if all are older.

        Rules of KIP-101 and KIP-279; an epoch older than all known ends where the log starts.
        """
        if epoch > self.last:
            return -1, -1
        found = epoch
        for known, first in self.entries:
            if known > epoch:
                return found, max(first, start)
            found = known
        return found, end
