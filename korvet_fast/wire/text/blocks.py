"""The messages of CONSUME that were written last: who follows one log behind others asks for the same ones.

Only for logs that nobody but this broker's leader changes. What lies below the high watermark stays as it is there, as
long as the topic and the leader epoch, which are in the key, are the same.
"""

from collections import OrderedDict
from typing import Final, NamedTuple

from korvet_fast.types import Buffer

_MOST: Final = 64  # blocks kept: 4 MiB
_LARGEST: Final = 64 << 10  # bytes of a block
ENOUGH: Final = -1  # as what ended a block: it has as many messages as were asked for


class BlockKey(NamedTuple):
    """What was asked for, and of which log. `most`: messages."""

    topic: bytes
    partition: int
    epoch: int
    offset: int
    encoding: int
    most: int


class Blocks:
    """The blocks used last, all together at most 4 MiB."""

    def __init__(self) -> None:
        self._kept: OrderedDict[BlockKey, tuple[list[Buffer], int]] = OrderedDict()

    def find(self, key: BlockKey, high_watermark: int) -> list[Buffer] | None:
        """The messages, if they are kept and none may be missing. Nobody writes to them."""
        kept = self._kept.get(key)
        if kept is None:
            return None
        parts, end = kept
        if end not in (ENOUGH, high_watermark):
            return None
        self._kept.move_to_end(key)
        return parts

    def keep(self, key: BlockKey, parts: list[Buffer], end: int) -> None:
        """Keep these messages, unless they are large. `end`: the high watermark that ended them, or `ENOUGH`."""
        if sum(map(len, parts)) > _LARGEST:
            return
        if len(self._kept) >= _MOST:
            self._kept.popitem(last=False)
        self._kept[key] = parts, end
