"""Batches that a CONSUME read and did not need: they are for who goes on where its answer ended.

A read gives whole batches, and an answer ends within one: without this, each of them would be read twice. Who goes on
is likely to go on again, so the next read takes more. What is kept stays true as in `blocks.py`.
"""

from collections import OrderedDict
from typing import Final, NamedTuple

from korvet_fast.types import Buffer

LONG_READ: Final = 256 << 10  # bytes of a read for who goes on
_MOST: Final = 16  # pages kept: 4 MiB
_LARGEST: Final = LONG_READ + (16 << 10)  # bytes of a page: the store may read a little more than it gives


class ReadAheadKey(NamedTuple):
    """Where an answer ended: the `offset` of the first message that it did not give."""

    topic: bytes
    partition: int
    epoch: int
    offset: int


class UnusedBatches(NamedTuple):
    """They begin with the one that holds the offset of the key, or before it; `next`: the offset after them."""

    data: Buffer
    next: int


class ReadAhead:
    """The pages left over last, all together a little more than 4 MiB."""

    def __init__(self) -> None:
        self._kept: OrderedDict[ReadAheadKey, UnusedBatches] = OrderedDict()

    def take(self, key: ReadAheadKey) -> UnusedBatches | None:
        """The page that whoever goes on here left over; nobody else gets it."""
        return self._kept.pop(key, None)

    def keep(self, key: ReadAheadKey, page: UnusedBatches) -> None:
        """Keep a page, unless it is large."""
        if len(page.data) > _LARGEST:
            return
        if len(self._kept) >= _MOST:
            self._kept.popitem(last=False)
        self._kept[key] = page
