"""Time, replaceable in tests. Wall time stamps records; everything that waits or expires counts monotonic time."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from functools import cached_property

_SETTLED = 3600.0  # seconds after which a clock that went forward is believed by what deletes


class Clock:
    """The machine's clocks."""

    def __init__(self) -> None:
        self.settled_wall()

    def wall(self) -> int:
        """Milliseconds since 1970; may jump either way."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Seconds from some start; never goes back."""
        return time.monotonic()

    def settled_wall(self) -> int:
        """Wall time (ms) for what deletes: a step back counts at once, one forward when it has stood for an hour.

        What was deleted because the clock was wrong for a moment would not come back.
        """
        now = self.monotonic()
        since, ahead = now, self.wall() - int(now * 1000)
        while self._steps and self._steps[-1][1] >= ahead:
            since, _ = self._steps.pop()
        self._steps.append((since, ahead))
        while len(self._steps) > 1 and self._steps[1][0] <= now - _SETTLED:
            self._steps.popleft()
        return int(now * 1000) + self._steps[0][1]

    @cached_property
    def _steps(self) -> deque[tuple[float, int]]:
        """Rising: since this monotonic time (s), wall time was ahead of it by so much (ms) or more, whenever asked."""
        return deque()

    async def sleep(self, seconds: float) -> None:
        """Wait so long."""
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, work: Callable[[], None]) -> asyncio.TimerHandle:
        """Call `work` after so long, unless the handle is cancelled before."""
        return asyncio.get_running_loop().call_later(seconds, work)
