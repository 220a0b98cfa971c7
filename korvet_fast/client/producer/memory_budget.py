"""One budget of bytes for everything that the producer holds: queued, batched, in flight, retried, waiting for room.

No destination can take all of it. A broker, or a topic whose leaders are unknown, may hold `SHARE` times what is still
free: alone it gets four fifths, and however many of them stand still, there is always room for the others. (The rule is
that of shared packet buffers: Choudhury and Hahne, Dynamic Queue Length Thresholds, 1998.)
"""

from collections import defaultdict
from typing import Final

from korvet_fast.endpoint import Address

# A broker, a topic none of whose leaders is known, or the line of those that wait for room in a topic.
Destination = Address | str | tuple[str, str]

SHARE: Final = 4  # times the free bytes: what messages of one destination may hold
LINE_SHARE: Final = 0.5  # times the free bytes: what messages of one topic may hold that wait for room


class MemoryBudget:
    """`used` never exceeds `total`, both in bytes."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.used = 0
        self.peak = 0
        self._by_destination: defaultdict[Destination, int] = defaultdict(int)

    def take(self, destination: Destination, size: int, share: float = SHARE) -> bool:
        """Count a message's bytes; False if there is no room. A message alone is taken whatever its share is."""
        free = self.total - self.used
        held = self._by_destination.get(destination, 0)
        if size > free or (held and held + size > share * (free - size)):
            return False
        self.used += size
        if self.used > self.peak:
            self.peak = self.used
        self._by_destination[destination] = held + size
        return True

    def has_spare(self, size: int) -> bool:
        """Whether so many bytes more leave what is counted within the share of one destination, whichever it is."""
        return self.used + size <= self.total * SHARE / (SHARE + 1)

    def move(self, old: Destination, new: Destination, size: int) -> None:
        """Bytes of a message count for another destination; with `has_spare` they are within its share."""
        self.give_back(old, size)
        self.used += size
        self._by_destination[new] += size

    def take_line(self, topic: str, size: int) -> bool:
        """Count the bytes of a message that waits for room; False if there is none even for waiting."""
        return self.take(_line(topic), size, LINE_SHARE)

    def give_back(self, destination: Destination, size: int) -> None:
        """The message has ended."""
        self.used -= size
        left = self._by_destination[destination] - size
        if left:
            self._by_destination[destination] = left
        else:
            del self._by_destination[destination]

    def leave_line(self, topic: str, size: int) -> None:
        """The message waits for room no longer."""
        self.give_back(_line(topic), size)

    def move_from_line(self, topic: str, destination: Destination, size: int) -> bool:
        """A message that waited is counted for its destination instead; False if there is no room for it yet."""
        self.leave_line(topic, size)
        if self.take(destination, size):
            return True
        self.used += size
        self._by_destination[_line(topic)] += size
        return False

    @property
    def empty(self) -> bool:
        """Whether nothing is counted at all."""
        return self.used == 0 and not self._by_destination


def _line(topic: str) -> tuple[str, str]:
    return "line", topic
