"""The bytes of a fetch, dealt out among its partitions (KIP-74).

All partitions together give what the fetch allows, and each what its own limit allows. Only the first partition that
has anything gives one batch however large that is, also if its limit is 0.
"""

from collections.abc import Sequence
from operator import gt
from typing import Final, Protocol

from korvet_fast.core.eager import gather
from korvet_fast.core.fair_queue import Pace
from korvet_fast.core.partition.partition import Partition
from korvet_fast.types import Buffer

_AT_ONCE: Final = 64  # partitions read side by side


class LimitedRead(Protocol):
    """One partition of a fetch, as its bytes are dealt out: where it reads, its limit, and what was read of it."""

    partition: Partition | None
    offset: int
    max_bytes: int
    records: list[Buffer]

    async def read(self, left: int) -> int:
        """Read `left` bytes at most, but one batch at least if there is one; returns the bytes."""


async def read_all(parts: Sequence[LimitedRead], left: int, pace: Pace | None) -> None:
    """Read from one partition after the other, `left` bytes at most, but one batch at least if there is one.

    Those whose limits fit into what is left together are read side by side: what comes is the same, or less where a
    batch was read that turned out to be larger than its partition's limit.
    """
    done, first = 0, True  # first: nothing has been read yet
    while done < len(parts) and (first or left > 0):
        wave = _plan(parts, done, left)
        if first or wave[0].max_bytes > 0 or len(wave) > 1:
            sizes = await gather([part.read(left) for part in wave])
            size = sum(sizes)
            if size > left or any(map(gt, sizes, [part.max_bytes for part in wave])):
                size = _trim(wave, sizes, left, first)
            left -= size
            first = first and size == 0
        done += len(wave)
        if pace is not None and done < len(parts) and pace.due():
            await pace.turn()


def _plan(parts: Sequence[LimitedRead], done: int, left: int) -> list[LimitedRead]:
    """The next partitions to be read side by side: one at least, and no more than their limits leave room for."""
    wave: list[LimitedRead] = []
    for part in parts[done : done + _AT_ONCE]:
        assert part.partition is not None
        if part.offset < part.partition.high_watermark.offset:
            left -= part.max_bytes
            if wave and (left < 0 or part.max_bytes <= 0):
                break
            if part.max_bytes <= 0:
                return [part]
        wave.append(part)
    return wave


def _trim(wave: list[LimitedRead], sizes: list[int], left: int, first: bool) -> int:
    """Drop batches beyond the limits, and from `wave` the partitions to read again; returns the bytes read.

    The bytes dropped count as read: the answer may be short. `first`: the first batch may be as large as it is.
    """
    used = 0
    for at, (part, size) in enumerate(zip(wave, sizes, strict=True)):
        if at and size > left - used:  # a batch before it was larger than planned
            for later in wave[at:]:
                later.records = []
            del wave[at:]
            return used
        if size > min(part.max_bytes, left - used) and not (first and used == 0):
            part.records = []
        used += size
    return used
