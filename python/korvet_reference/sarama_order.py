"""How Sarama's AsyncProducer keeps the messages of a partition in order through retries, as a machine without I/O.

Source: https://github.com/IBM/sarama/wiki/Producer-implementation, "Maintaining Order"; partitionProducer and
brokerProducer of async_producer.go. A message has a level: how often it was retried. A chaser follows the messages of a
level to the broker, and when it comes back, all of them have come back that ever will.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple


class Item(NamedTuple):
    """An item that travels: message `number`, or a chaser (None)."""

    number: int | None
    level: int


@dataclass
class RetryLevel:
    """One of n + 1: messages held back that were retried so often, and whether its chaser is on its way."""

    held: list[Item] = field(default_factory=list)
    expects_chaser: bool = False


class PartitionLevels:
    """The partitionProducer: passes messages of the highest level on, and holds those of lower levels back."""

    def __init__(self, retries: int) -> None:
        self.levels = [RetryLevel() for _ in range(retries + 1)]
        self.high_watermark = 0

    def receive(self, item: Item) -> list[Item]:
        """Take an item from the input; what goes to the broker now, in order."""
        if item.level > self.high_watermark:
            self.high_watermark = item.level
            self.levels[item.level].expects_chaser = True
            return [Item(None, item.level - 1), item]
        if item.number is None:
            self.levels[item.level].expects_chaser = False
            return self._flush() if item.level == self.high_watermark else []
        if item.level < self.high_watermark:
            self.levels[item.level].held.append(item)
            return []
        return [item]

    def _flush(self) -> list[Item]:
        """A level is done: let go what the lower ones hold, down to one whose chaser is still on its way."""
        released: list[Item] = []
        while self.high_watermark:
            self.high_watermark -= 1
            level = self.levels[self.high_watermark]
            released += level.held
            level.held = []
            if level.expects_chaser:
                break
        return released


class SaramaOrder:
    """One partition of Sarama's producer and its broker. `log`: the messages stored, in order.

    `failures`: of each request in turn, whether the broker refuses it; those behind are stored. A request has one
    message. `window`: requests that have left the brokerProducer and have no answer.
    """

    def __init__(self, retries: int, window: int, failures: Iterable[bool]) -> None:
        self.log: list[int] = []
        self.failed: list[int] = []
        self._retries = retries
        self._window = window
        self._failures = iter(failures)
        self._input: deque[Item] = deque()
        self._levels = PartitionLevels(retries)
        self._path: deque[Item] = deque()  # to the brokerProducer
        self._in_flight: deque[tuple[Item, bool]] = deque()
        self._retrying = False  # the brokerProducer's flag: whatever comes goes back

    def send(self, number: int) -> None:
        """A new message enters the input."""
        self._input.append(Item(number, 0))

    def answer(self) -> bool:
        """Everything goes as far as it can, then the oldest request is answered. False: there was none."""
        while self._input or (self._path and len(self._in_flight) < self._window):
            if self._input:
                self._path += self._levels.receive(self._input.popleft())
            else:
                self._hand_over(self._path.popleft())
        if not self._in_flight:
            return False
        item, refused = self._in_flight.popleft()
        if refused:
            self._retrying = True
            self._retry(item)
        return True

    def _hand_over(self, item: Item) -> None:
        if item.number is None:
            self._retrying = False
            self._retry(item)
        elif self._retrying:
            self._retry(item)
        else:
            refused = next(self._failures, False)
            if not refused:
                self.log.append(item.number)
            self._in_flight.append((item, refused))

    def _retry(self, item: Item) -> None:
        """The retryHandler: back into the input, one level higher."""
        if item.level < self._retries:
            self._input.append(item._replace(level=item.level + 1))
        elif item.number is not None:
            self.failed.append(item.number)
