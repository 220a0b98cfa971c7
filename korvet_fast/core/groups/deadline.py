"""The time of a group's next work."""

import math


class Deadline:
    """The time at which the next work of a group is due, or an earlier time: a heartbeat does not move it.

    All times are seconds of one monotonic clock.
    """

    __slots__ = ("_time",)

    def __init__(self) -> None:
        self._time = math.inf

    def next(self) -> float | None:
        """The time to call the group's `tick`; None: no call is needed."""
        return self._time if self._time < math.inf else None

    def bring_forward(self, time: float) -> None:
        """Work is due at this time."""
        if time < self._time:
            self._time = time

    def set(self, time: float) -> None:
        """No work is due before this time; `math.inf`: there is no work."""
        self._time = time

    def extend(self, seconds: float) -> None:
        """All work is due so many seconds later."""
        self._time += seconds
