"""When a group has something to do next."""

import math


class Deadline:
    """The next time at which something may have to be done, or an earlier one: heartbeats only move the real one away.

    All times are seconds of one monotonic clock.
    """

    __slots__ = ("_time",)

    def __init__(self) -> None:
        self._time = math.inf

    def next(self) -> float | None:
        """When the group's `tick` may have something to do, never too late; None while it has not."""
        return self._time if self._time < math.inf else None

    def bring_forward(self, time: float) -> None:
        """Something may have to be done at this time."""
        if time < self._time:
            self._time = time

    def set(self, time: float) -> None:
        """Nothing has to be done before this time; `math.inf`: nothing at all."""
        self._time = time

    def extend(self, seconds: float) -> None:
        """Everything that has to be done may be done so much later."""
        self._time += seconds
