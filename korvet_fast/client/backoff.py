"""The pauses before attempts at what failed."""

from random import Random
from typing import Final

_LEAST_PAUSE: Final = 0.001  # seconds; Kafka takes 0 for retry.backoff.ms, and nothing is tried again in a busy loop


class Backoff:
    """Pauses in seconds that double from `first` up to `longest`, each up to a fifth shorter or longer (KIP-580).

    Both are a millisecond at least.
    """

    __slots__ = ("_first", "_longest", "_random", "failures", "until")

    def __init__(self, first: float, longest: float, random: Random) -> None:
        self._first = max(first, _LEAST_PAUSE)
        self._longest = max(longest, _LEAST_PAUSE)
        self._random = random
        self.failures = 0  # one after the other
        self.until = 0.0  # on the clock of `now`: no attempt before

    def fail(self, now: float) -> float:
        """An attempt failed: returns when the next may be made."""
        pause = min(self._longest, self._first * 2.0 ** min(self.failures, 30))
        self.failures += 1
        self.until = now + pause * self._random.uniform(0.8, 1.2)
        return self.until

    def succeed(self) -> None:
        """An attempt succeeded: the next failure waits the first pause again."""
        self.failures = 0
        self.until = 0.0
