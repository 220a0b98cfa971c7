"""Which messages of a run have failed without anybody reading their results."""

from contextlib import AbstractContextManager


class Tally:
    """So many failures nobody has read. `reason`: that of the first."""

    def __init__(self, reason: str) -> None:
        self.count = 0
        self.reason = reason


class UnreadResults:
    """The messages of one run, by index, that are counted in a tally. `lock`: results are read on any thread."""

    def __init__(self, tally: Tally, indexes: set[int], lock: AbstractContextManager[object]) -> None:
        self._tally = tally
        self._indexes = indexes
        self._lock = lock

    def read(self, index: int = 0) -> None:
        """A result was read. Only the first time counts."""
        with self._lock:
            if index in self._indexes:
                self._indexes.remove(index)
                self._tally.count -= 1
