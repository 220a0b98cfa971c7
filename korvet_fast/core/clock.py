"""Time, replaceable in tests. Wall time stamps records; everything that waits or expires counts monotonic time."""

import asyncio
import time
from collections.abc import Callable


class Clock:
    """The machine's clocks."""

    def wall(self) -> int:
        """Milliseconds since 1970; may jump either way."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Seconds from some start; never goes back."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait so long."""
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, work: Callable[[], None]) -> asyncio.TimerHandle:
        """Call `work` after so long, unless the handle is cancelled before."""
        return asyncio.get_running_loop().call_later(seconds, work)
