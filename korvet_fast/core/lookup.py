"""Finding records of a log by time, exactly: the store finds the batch, the native code the record in it."""

from typing import NamedTuple

from korvet_fast import _native
from korvet_fast.core.types import Buffer
from korvet_fast.store.interface import Store

EXPANDED = 1 << 30  # what a batch may decompress to; it was bounded more tightly on its way in


class Found(NamedTuple):
    """A record's offset and its time in ms."""

    offset: int
    timestamp: int


async def find_time(store: Store, log: str, ms: int, start: int, limit: int) -> Found | None:
    """The first record with `start` <= offset < `limit` whose time is at or after `ms`."""
    offset = start
    while (page := await store.find_time(log, ms, offset)).data:
        found = _find_in(page.data[0], ms, start)
        if found is not None:
            return found if found.offset < limit else None
        offset = page.next
    return None


async def find_latest(store: Store, log: str, start: int, limit: int) -> Found | None:
    """The first record with the largest time; None in an empty log."""
    above = (await store.bounds(log)).latest
    found = await find_time(store, log, above, start, limit)
    if found is not None:
        return found
    # Seldom: that record was deleted from inside its batch, or is at `limit` or above. Halve the times between.
    found = await find_time(store, log, -1, start, limit)
    while found is not None and found.timestamp + 1 < above:
        probe = (found.timestamp + 1 + above) // 2
        later = await find_time(store, log, probe, start, limit)
        if later is None:
            above = probe
        else:
            found = later
    return found


def _find_in(batch: Buffer, ms: int, start: int) -> Found | None:
    found = _native.find_time(batch, ms, EXPANDED)
    if found is None or found[0] >= start:
        return None if found is None else Found(*found)
    # Seldom: the log's start lies inside this batch.
    columns = _native.columns(batch, EXPANDED)
    pairs = zip(memoryview(columns["offset"]), memoryview(columns["timestamp"]), strict=True)
    return next((Found(offset, time) for offset, time in pairs if offset >= start and time >= ms), None)
