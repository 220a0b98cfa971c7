"""Records that were stored and are gone: each loss is logged, and kept for administrators."""

import logging
from collections import deque
from typing import NamedTuple

from korvet_fast.core.clock import Clock

logger = logging.getLogger(__name__)

_KEPT = 10_000  # losses


class Loss(NamedTuple):
    """Records that were stored and are not there any more: `first` <= offset < `end` of a log, found at `ms`."""

    log: str
    first: int
    end: int
    ms: int


class LossJournal:
    """`losses`: those that this broker found since its start, oldest first."""

    def __init__(self, clock: Clock) -> None:
        self.losses: deque[Loss] = deque(maxlen=_KEPT)
        self._clock = clock

    def report(self, log: str, first: int, end: int) -> None:
        """Log and keep the loss of the records `first` <= offset < `end` of this log."""
        logger.error("%s: records were lost: offsets %d to %d, which had been stored", log, first, end - 1)
        self.losses.append(Loss(log, first, end, self._clock.wall()))
