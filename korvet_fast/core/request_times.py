"""How many requests of each kind came, and how long they took: the dialects count, `/metrics` reads."""

from time import monotonic


class RequestTimes:
    """Requests of one kind: `count` of them; `timed` of these took `seconds`, waits included.

    Two looks at the clock would be two percent of a small request, so a dialect times one of `EVERY`, the first too.
    """

    EVERY = 16

    __slots__ = ("count", "seconds", "timed")

    def __init__(self) -> None:
        self.count = 0
        self.timed = 0
        self.seconds = 0.0

    def note(self, began: float) -> None:
        """A request that is timed has its answer. `began`: when it came, monotonic."""
        self.timed += 1
        self.seconds += monotonic() - began
