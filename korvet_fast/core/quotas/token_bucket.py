"""A rate as a bucket of tokens: what is unused is kept for a while, and what is taken too much has to be waited for.

Kafka sums up windows of a second, eleven of them by default. After a rest both let ten seconds' worth pass at once, and
of one burst beyond that both ask the same wait. A bucket forgets no debt when a window goes out of date, and is two
numbers.
"""

from typing import Final

BURST: Final = 10.0  # seconds whose tokens are kept: as many full windows as Kafka looks at by default
PATIENCE: Final = 3600.0  # seconds that a debt is paid for at most; Kafka forgets a client after as long


class TokenBucket:
    """`rate`: tokens a second, above 0; it may be changed. Times are monotonic, in seconds."""

    __slots__ = ("__weakref__", "_as_of", "_tokens", "rate")

    def __init__(self, rate: float, now: float) -> None:
        self.rate = rate
        self._tokens = rate * BURST
        self._as_of = now

    def take(self, tokens: float, now: float) -> float:
        """Take tokens, more than there are too; returns the seconds until the debt is paid, 0 if there is none."""
        rate = self.rate
        kept = min(self._tokens + (now - self._as_of) * rate, rate * BURST)
        self._tokens = left = max(kept - tokens, -PATIENCE * rate)
        self._as_of = now
        return -left / rate if left < 0 else 0.0
