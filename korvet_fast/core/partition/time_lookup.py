"""Finding records of a log by time, exactly: the store finds the batch, the native code the record in it.

A batch that is large, or that unpacks to much, is searched beside the loop: `offload` has it done there.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeAlias

from korvet_fast import _native
from korvet_fast.core.fair_executor import do_at_length, unpack_shortly
from korvet_fast.errors import CodecError
from korvet_fast.store.interface import LogStore
from korvet_fast.types import INLINE_EXPANDED, UNPACKS_TO_MUCH, Buffer

EXPANDED = 1 << 30  # bytes that a batch may decompress to; on its way in it was bounded more tightly

Offload: TypeAlias = "Callable[..., Awaitable[Any]]"


class OffsetAndTimestamp(NamedTuple):
    """A record's offset and its time in ms."""

    offset: int
    timestamp: int


def run_in_thread(work: Callable[..., Any], *arguments: object) -> Awaitable[Any]:
    """As `offload`, where nobody's share has to be kept."""
    return asyncio.get_running_loop().run_in_executor(None, do_at_length, work, *arguments)


async def find_time(
    store: LogStore, log: str, ms: int, start: int, limit: int, offload: Offload
) -> OffsetAndTimestamp | None:
    """The first record with `start` <= offset < `limit` whose time is at or after `ms`."""
    offset = start
    while (page := await store.find_time(log, ms, offset)).data:
        found = await _search(page.data[0], ms, start, offload)
        if found is not None:
            return found if found.offset < limit else None
        offset = page.next
    return None


async def find_latest(store: LogStore, log: str, start: int, limit: int, offload: Offload) -> OffsetAndTimestamp | None:
    """The first record with the largest time; None in an empty log."""
    above = (await store.bounds(log)).latest
    found = await find_time(store, log, above, start, limit, offload)
    if found is not None:
        return found
    # Seldom: that record was deleted from inside its batch, or is at `limit` or above. Halve the times between.
    found = await find_time(store, log, -1, start, limit, offload)
    while found is not None and found.timestamp + 1 < above:
        probe = (found.timestamp + 1 + above) // 2
        later = await find_time(store, log, probe, start, limit, offload)
        if later is None:
            above = probe
        else:
            found = later
    return found


async def _search(batch: Buffer, ms: int, start: int, offload: Offload) -> OffsetAndTimestamp | None:
    if len(batch) <= INLINE_EXPANDED:
        try:
            return _find_in(batch, ms, start, INLINE_EXPANDED)
        except CodecError as error:
            if error.code != UNPACKS_TO_MUCH:
                raise
    found: OffsetAndTimestamp | None = await offload(unpack_shortly, _find_in, EXPANDED, batch, ms, start)
    return found


def _find_in(batch: Buffer, ms: int, start: int, expanded: int) -> OffsetAndTimestamp | None:
    found = _native.find_time(batch, ms, expanded, start)
    return None if found is None else OffsetAndTimestamp(*found)
