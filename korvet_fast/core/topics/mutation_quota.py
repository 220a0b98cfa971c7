"""How fast partitions may be created and deleted: a token bucket, as KIP-599 has it.

A change is let through while the bucket is not empty, and may leave it in debt: one large topic is made in one go. The
debt is limited, so that nobody is kept waiting for longer than `PATIENCE`.
"""

import math
from collections.abc import Callable
from typing import Final

from korvet_fast.errors import Errors, KorvetError

PATIENCE: Final = 10.0  # seconds


class MutationQuota:
    """`rate`: partitions a second. `burst`: how many at once after a rest. `now`: monotonic seconds."""

    __slots__ = ("_as_of", "_burst", "_now", "_rate", "_tokens")

    def __init__(self, rate: int, burst: int, now: Callable[[], float]) -> None:
        self._rate = rate
        self._burst = burst
        self._now = now
        self._tokens = float(burst)
        self._as_of = now()

    @property
    def throttle_ms(self) -> int:
        """How long it takes until the next change is let through; 0 if it would be now."""
        now = self._now()
        self._tokens = min(self._tokens + (now - self._as_of) * self._rate, self._burst)
        self._as_of = now
        return max(0, math.ceil((1.0 - self._tokens) / self._rate * 1000))

    def check(self) -> None:
        """Raises `KorvetError` THROTTLING_QUOTA_EXCEEDED if no change is let through now."""
        if wait := self.throttle_ms:
            text = f"controller.mutation.rate = {self._rate} partitions a second is exceeded; try again in {wait} ms"
            raise KorvetError(Errors.THROTTLING_QUOTA_EXCEEDED, text)

    def take(self, partitions: int) -> None:
        """Take tokens for partitions that were created or deleted, after `check` had let the change through."""
        self._tokens = max(self._tokens - partitions, -PATIENCE * self._rate)
