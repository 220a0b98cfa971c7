"""Finding records of a log by time, exactly: the store finds the batch, the native code the record in it."""

from typing import NamedTuple

from korvet_fast import _native
from korvet_fast.core.types import Buffer
from korvet_fast.store.interface import Store

EXPANDED = 1 << 30  # what a batch may decompress to; it was bounded more tightly on its way in
_PAGE = 1 << 20


class Found(NamedTuple):
    """A record's offset and its time in ms."""

    offset: int
    timestamp: int


async def find_time(store: Store, log: str, ms: int, start: int, limit: int) -> Found | None:
    """The first record with `start` <= offset < `limit` whose time is at or after `ms`."""
    page = await store.find_time(log, ms)
    for batch in page.data:
        found = _find_in(batch, ms, start)
        if found is None:
            # The records found were deleted by an offset inside their batch: go on behind it.
            found = await _walk(store, log, ms, page.next, limit)
        return found if found is not None and found.offset < limit else None
    return None


async def find_latest(store: Store, log: str, start: int, limit: int, now: int) -> Found | None:
    """The first record with the largest time, which is usually near `now` (ms); None in an empty log."""
    found = await find_time(store, log, -1, start, limit)
    if found is None:
        return None
    # `found` is a record, `above` a time that no record reaches: halve the times between.
    above = None
    probe = max(now, found.timestamp + 1)
    while above is None or found.timestamp + 1 < above:
        later = await find_time(store, log, probe, start, limit)
        if later is None:
            above = probe
        else:
            found = later
        probe = probe * 2 + 1 if above is None else (found.timestamp + 1 + above) // 2
    return found


def _find_in(batch: Buffer, ms: int, start: int) -> Found | None:
    found = _native.find_time(batch, ms, EXPANDED)
    if found is None or found[0] >= start:
        return None if found is None else Found(*found)
    # Seldom: the log's start lies inside this batch.
    columns = _native.columns(batch, EXPANDED)
    pairs = zip(memoryview(columns["offset"]), memoryview(columns["timestamp"]), strict=True)
    return next((Found(offset, time) for offset, time in pairs if offset >= start and time >= ms), None)


async def _walk(store: Store, log: str, ms: int, offset: int, limit: int) -> Found | None:
    while True:
        page = await store.read(log, offset, _PAGE, limit)
        if not page.data:
            return None
        for part in page.data:
            view = memoryview(part)
            for batch in _native.headers(part, False):
                if batch.max_timestamp >= ms:
                    found = _native.find_time(view[batch.start : batch.start + batch.size], ms, EXPANDED)
                    if found is not None:
                        return Found(*found)
        offset = page.next
