"""Failures whose results nobody has read: the log tells them, so that no message is lost in silence."""

import asyncio
import logging
import threading
from typing import Final

from korvet_fast.client.producer.message import ANY_PARTITION, DeliveryFailed, Outcome
from korvet_fast.client.producer.unread_results import Tally, UnreadResults
from korvet_fast.rate_limited_log import SEVERAL, printable

_log = logging.getLogger(__name__)
_PATIENCE: Final = 10.0  # seconds in which a result may be read before the log tells a failure


class UnreadFailures:
    """Counts them by partition and outcome. They are told at `flush` and `close`, and `_PATIENCE` after the first.

    Counted on the event loop's thread, read on any.
    """

    def __init__(self) -> None:
        self._tallies: dict[tuple[str, int, Outcome], Tally] = {}
        self._lock = threading.Lock()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, topic: str, partition: int, error: DeliveryFailed, indexes: set[int]) -> UnreadResults:
        """Messages of one partition have failed: returns what is to be told when their results are read."""
        with self._lock:
            tally = self._tallies.setdefault((topic, partition, error.outcome), Tally(str(error)))
            tally.count += len(indexes)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_PATIENCE, self.tell)
        return UnreadResults(tally, indexes, self._lock)

    def tell(self) -> None:
        """Tell what nobody has read so far: a line for each partition and outcome, and one for those above ten."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        with self._lock:
            found = [(*key, tally.count, tally.reason) for key, tally in self._tallies.items() if tally.count]
            self._tallies = {}
        for topic, partition, outcome, count, reason in found[:SEVERAL]:
            place = f"partition {partition} of " if 0 <= partition < ANY_PARTITION else ""
            what = "a message was" if count == 1 else f"{count:,} messages were"
            sentence = f"topic {topic!r}: {what} not delivered ({outcome}), and nobody has read the result: {reason}"
            _log.warning("%s", printable(place + sentence))
        if more := found[SEVERAL:]:
            count = sum(row[3] for row in more)
            _log.warning("%d more messages were not delivered, to %d other partitions", count, len(more))
