"""Partitioners choose the partition of a message that names none, by Sarama's and Java's rules."""

from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from random import Random
from typing import Final, Protocol, TypeAlias

from korvet_fast._native import Column, ColumnRows
from korvet_fast.client.producer.hashing import crc_hash, murmur2_hash, sarama_hash, sarama_reference_hash
from korvet_fast.client.producer.message import ANY_PARTITION

KeyHash = Callable[[bytes, int], int]
Chosen: TypeAlias = "Column | array[int] | None"  # a partition for each row, or none at all

# The name of a partitioner -> how it places keys; None: it does not look at them.
PARTITIONERS: Final[dict[str, KeyHash | None]] = {
    "murmur2": murmur2_hash,
    "hash": sarama_hash,
    "reference_hash": sarama_reference_hash,
    "crc32": crc_hash,
    "random": None,
    "round_robin": None,
    "manual": None,
}
# librdkafka's and Sarama's names of the same.
ALIASES: Final = {
    "default": "murmur2",
    "murmur2_random": "murmur2",
    "consistent": "crc32",
    "consistent_random": "crc32",
    "fnv1a": "hash",
    "fnv1a_random": "hash",
    "roundrobin": "round_robin",
    "NewHashPartitioner": "hash",
    "NewReferenceHashPartitioner": "reference_hash",
    "NewConsistentCRCHashPartitioner": "crc32",
    "NewMurmur2Partitioner": "murmur2",
    "NewRandomPartitioner": "random",
    "NewRoundRobinPartitioner": "round_robin",
    "NewManualPartitioner": "manual",
}


class TopicView(Protocol):
    """The part of a topic that a partitioner sees. `count`: its partitions, one at least."""

    count: int

    def is_available(self, index: int) -> bool:
        """Whether a partition has a leader that can be reached, as far as is known."""

    def available(self) -> Sequence[int]:
        """The partitions that are available, or all if none is."""

    def queued_bytes(self, index: int) -> int:
        """Bytes that wait at a partition."""


class StickyPartitioner:
    """Partitions for messages without a key: one partition until it got `stick` bytes, then another (KIP-794).

    So partitions get the same number of bytes, whatever the sizes of messages. Unlike in KIP-480 a slow broker gets no
    more than others: what counts is bytes, not batches. `adaptive`: where less
    waits is the likelier one. Partitions without a leader are avoided while others have one.
    """

    def __init__(self, stick: int, adaptive: bool, random: Random) -> None:
        self._stick = stick
        self._adaptive = adaptive
        self._random = random
        self._current = -1
        self._taken = 0

    def choose(self, topic: TopicView) -> int:
        """A partition."""
        stay = 0 <= self._current < topic.count and self._taken < self._stick
        if not stay or not topic.is_available(self._current):
            self._current = self._next(topic.available(), topic)
            self._taken = 0
        return self._current

    @property
    def left(self) -> int:
        """Bytes until another partition is chosen."""
        return max(0, self._stick - self._taken)

    def turn(self) -> None:
        """The next message goes to another partition: a batch of this one is full."""
        self._taken = self._stick

    def add(self, size: int) -> None:
        """Count bytes that went to the partition chosen last."""
        self._taken += size

    def _next(self, partitions: Sequence[int], topic: TopicView) -> int:
        if not self._adaptive or len(partitions) == 1:
            return self._random.choice(partitions)
        waiting = [topic.queued_bytes(each) // self._stick for each in partitions]  # in batches, as Java's queue sizes
        most = max(waiting) + 1
        totals = list(accumulate(most - each for each in waiting))
        point = self._random.randrange(totals[-1])
        return next(each for each, total in zip(partitions, totals, strict=True) if point < total)


class BrokerChoice(StickyPartitioner):
    """The broker chooses: all messages go into one queue."""

    def choose(self, topic: TopicView) -> int:
        return ANY_PARTITION

    @property
    def left(self) -> int:
        return self._stick


class Partitioner:
    """One topic's partitioner, named as in `PARTITIONERS`. `place`: how it places keys; None: it does not."""

    def __init__(self, name: str, ignore_keys: bool, sticky: StickyPartitioner, random: Random) -> None:
        self._name = name
        self.place = None if ignore_keys else PARTITIONERS[name]
        self.sticky = sticky
        self._random = random
        self._turn = -1

    @property
    def hashes_natively(self) -> bool:
        """Whether `choose_rows` computes the partitions of keys natively."""
        return self.place is murmur2_hash

    def is_sticky(self, key: bytes | None) -> bool:
        """Whether such a message goes where those before it went."""
        return (key is None or self.place is None) and self._name in ("murmur2", "hash", "reference_hash", "crc32")

    def choose(self, key: bytes | None, size: int, topic: TopicView) -> int:
        """The partition of a message of `size` bytes. An empty key is a key; only None is none."""
        if self.place is not None and key is not None:
            return self.place(key, topic.count)
        if self._name == "random":
            return self._random.choice(topic.available())
        if self._name == "round_robin":
            usable = topic.available()
            self._turn += 1
            return usable[self._turn % len(usable)]
        chosen = self.sticky.choose(topic)
        self.sticky.add(size)
        return chosen

    def choose_rows(self, rows: ColumnRows, keys: Iterable[bytes | None], topic: TopicView) -> Chosen:
        """As `choose` for each row; None, or -1, where rows are spread by runs. Java's hash is computed natively."""
        if self.hashes_natively:
            return rows.choose(topic.count)
        if self.place is None and self._name not in ("random", "round_robin"):
            return None
        return array("i", [self.choose(key, 0, topic) for key in keys])
