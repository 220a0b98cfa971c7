"""How many requests of each kind came, and how long they took: the dialects count, `/metrics` reads."""

from time import monotonic


class RequestTimes:
    """Requests of one kind: `count` of them; `timed` of these took `seconds`, waits included.

    `waited`: the seconds that all of them together, once they were whole, waited for their beginning.

    Two looks at the clock would be two percent of a small request, so a dialect times one of `EVERY`, the first too.
    """

    EVERY = 16

    __slots__ = ("count", "seconds", "timed", "waited")

    def __init__(self) -> None:
        self.count = 0
        self.timed = 0
        self.seconds = 0.0
        self.waited = 0.0

    def note_wait(self, seconds: float) -> None:
        """The request that comes next has waited so long."""
        self.waited += seconds
        if not self.count % self.EVERY:  # it will be timed
            self.seconds += seconds

    def note(self, began: float) -> None:
        """A request that is timed has its answer. `began`: when it came, monotonic."""
        self.timed += 1
        self.seconds += monotonic() - began
