"""Sets of partitions of the consumer protocol: a member of a group may have tens of thousands of them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import compress
from typing import Any, Final, NamedTuple, cast

_BITS: Final = bytes.maketrans(b"01", b"\0\1")
_DIGITS: Final = bytes.maketrans(b"\0\1", b"01")


class TopicIdPartition(NamedTuple):
    """A partition of a topic, by the topic's id: a topic of the same name that is made later is another one."""

    topic_id: bytes
    partition: int


class NamedPartitions(Set[TopicIdPartition]):
    """Partitions as a client names them, by topic id: nobody has checked that there are partitions of such numbers."""

    __slots__ = ("rows",)

    def __init__(self, rows: Sequence[tuple[bytes, Sequence[int]]]) -> None:
        self.rows = rows

    def __contains__(self, partition: object) -> bool:
        return any(partition == each for each in self)

    def __iter__(self) -> Iterator[TopicIdPartition]:
        return (TopicIdPartition(topic, index) for topic, indexes in self.rows for index in indexes)

    def __len__(self) -> int:
        return sum(len(indexes) for _, indexes in self.rows)


class Partitions(Set[TopicIdPartition]):
    """Partitions that exist; never changed. `masks`: by topic id, a number whose bit n stands for partition n.

    As a frozenset of 20,000 partitions, each step of a group would take milliseconds; numbers take microseconds.
    """

    __slots__ = ("masks",)

    def __init__(self, partitions: Iterable[tuple[bytes, int]] = ()) -> None:
        topics: dict[bytes, list[int]] = {}
        for topic, index in partitions:
            topics.setdefault(topic, []).append(index)
        self.masks: Mapping[bytes, int] = {topic: make_mask(indexes) for topic, indexes in topics.items()}

    @classmethod
    def of(cls, masks: Mapping[bytes, int]) -> "Partitions":
        """The partitions of these masks."""
        made = cls()
        made.masks = {topic: mask for topic, mask in masks.items() if mask}
        return made

    def __contains__(self, partition: object) -> bool:
        topic, index = cast(TopicIdPartition, partition)
        return index >= 0 and bool(self.masks.get(topic, 0) >> index & 1)

    def __iter__(self) -> Iterator[TopicIdPartition]:
        return (TopicIdPartition(topic, index) for topic, mask in self.masks.items() for index in list_indexes(mask))

    def __len__(self) -> int:
        return sum(mask.bit_count() for mask in self.masks.values())

    def __bool__(self) -> bool:
        return bool(self.masks)

    def __hash__(self) -> int:
        return hash(frozenset(self.masks.items()))

    def __eq__(self, other: object) -> bool:
        return self.masks == other.masks if isinstance(other, Partitions) else super().__eq__(other)

    def __and__(self, other: Set[Any]) -> "Partitions":
        if not isinstance(other, Partitions):
            return Partitions(each for each in other if each in self)
        if not (self.masks and other.masks):
            return other if self.masks else self
        few, many = sorted((self.masks, other.masks), key=len)
        return Partitions.of({topic: mask & many.get(topic, 0) for topic, mask in few.items()})

    def __or__(self, other: Set[Any]) -> "Partitions":
        if not isinstance(other, Partitions):
            other = Partitions(other)
        if not (self.masks and other.masks):
            return self if self.masks else other
        masks = dict(self.masks)
        for topic, mask in other.masks.items():
            masks[topic] = masks.get(topic, 0) | mask
        return Partitions.of(masks)

    def __sub__(self, other: Set[Any]) -> "Partitions":
        if not isinstance(other, Partitions):
            return Partitions(each for each in self if each not in other)
        return self.without(other.masks)

    # The left operand of these is no `Partitions`, and stays as it is.

    def __rand__(self, other: Set[Any]) -> set[Any]:
        return {each for each in other if each in self}

    def __ror__(self, other: Set[Any]) -> set[Any]:
        return {*other, *self}

    def __rsub__(self, other: Set[Any]) -> set[Any]:
        return {each for each in other if each not in self}

    def without(self, masks: Mapping[bytes, int]) -> "Partitions":
        """All but those of these masks."""
        return Partitions.of({topic: mask & ~masks.get(topic, 0) for topic, mask in self.masks.items()})

    def list_rows(self) -> list[tuple[bytes, list[int]]]:
        """(topic id, its partitions), all in order."""
        return [(topic, list_indexes(mask)) for topic, mask in sorted(self.masks.items())]

    def take(self, most: int) -> "Partitions":
        """The first ones, by topic id and number, so many at most."""
        taken: dict[bytes, int] = {}
        for topic, mask in sorted(self.masks.items()):
            if most <= 0:
                break
            taken[topic] = mask if mask.bit_count() <= most else _take(mask, most)
            most -= taken[topic].bit_count()
        return Partitions.of(taken)

    def covers(self, others: Set[TopicIdPartition]) -> bool:
        """Whether all of the others are among these."""
        if isinstance(others, Partitions):
            return not others.without(self.masks)
        if not isinstance(others, NamedPartitions):
            return others <= self
        for topic, indexes in others.rows:
            mask = self.masks.get(topic, 0)
            if indexes and not (0 <= min(indexes) <= max(indexes) < mask.bit_length()):
                return False
            if make_mask(indexes) & ~mask:
                return False
        return True

    def meets(self, others: Set[TopicIdPartition]) -> bool:
        """Whether any of the others is among these."""
        if not isinstance(others, NamedPartitions):
            return bool(self & others)
        for topic, indexes in others.rows:
            mask = self.masks.get(topic, 0)
            width = mask.bit_length()
            if mask and make_mask([index for index in indexes if 0 <= index < width]) & mask:
                return True
        return False


def make_mask(indexes: Sequence[int]) -> int:
    """The number in which these bits are set. No index is negative; the number takes as many bits as the largest."""
    if not indexes:
        return 0
    flags = bytearray(max(indexes) + 1)
    for index in indexes:
        flags[index] = 1
    flags.reverse()
    return _parse(flags.translate(_DIGITS))


def list_indexes(mask: int) -> list[int]:
    """The bits of a number, in order."""
    flags = bin(mask)[:1:-1].encode().translate(_BITS)
    return list(compress(range(len(flags)), flags))


def _parse(digits: bytearray) -> int:
    return int(bytes(digits), 2)  # of powers of two, Python reads any number of digits in one pass


def _take(mask: int, most: int) -> int:
    """The lowest bits of a number that has more of them."""
    low, high = 0, mask.bit_length()
    while high - low > 1:
        middle = (low + high) // 2
        if (mask & ((1 << middle) - 1)).bit_count() <= most:
            low = middle
        else:
            high = middle
    return mask & ((1 << low) - 1)
