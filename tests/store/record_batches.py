"""Entries for stores, and what comes back."""

from batches import make_batch
from korvet_fast._native import to_columns
from korvet_fast.store.interface import Store
from korvet_fast.store.types import LARGE, Bounds, ReadResult, RecordBatch, SegmentLimits

LIMIT = 1 << 40  # an offset above all others


def make_record_batch(first: int, count: int = 1, *, time: int = 0, size: int = 20) -> RecordBatch:
    """A batch of `count` records of `size` bytes, each naming its offset; times rise by one a record."""
    values = [b"%0*d" % (size, first + number) for number in range(count)]
    data = make_batch(values, times=[time + number for number in range(count)], base_offset=first)
    return RecordBatch(data, first, first + count - 1, time + count - 1)


def up_to(size: int) -> SegmentLimits:
    """Pieces of so many bytes, whatever time they span."""
    return LARGE._replace(size=size)


def offsets(page: ReadResult) -> list[int]:
    """The offsets in a page; checks that each record says the same of itself."""
    found: list[int] = []
    for piece in page.data:
        parts = to_columns(piece, 1 << 30)
        here = memoryview(parts["offset"]).tolist()
        ends = memoryview(parts["value_offsets"])
        values = bytes(memoryview(parts["value"]))
        assert here == [int(values[ends[row] : ends[row + 1]][-20:]) for row in range(len(here))]
        found += here
    assert found == sorted(set(found))
    return found


async def fill(
    store: Store,
    log: str,
    *counts: int,
    sync: bool = False,
    size: int = 20,
    time: int = 0,
    segment_limits: SegmentLimits = LARGE,
) -> Bounds:
    """Append batches of so many records behind the end; returns the bounds. Times rise by one a record."""
    end = (await store.bounds(log)).end
    durable = None
    for count in counts:
        batch = make_record_batch(end, count, time=time, size=size)
        durable = store.open_log(log).append([batch], end, sync=sync, segment_limits=segment_limits).durable
        end += count
        time += count
    if durable is not None:
        await durable
    return await store.bounds(log)


async def read_all(store: Store, log: str, start: int = 0, max_bytes: int = 1 << 20) -> list[int]:
    """All offsets from `start` on, page by page."""
    found: list[int] = []
    while True:
        page = await store.open_log(log).read(start, max_bytes, LIMIT)
        if not page.data:
            return found
        found += [offset for offset in offsets(page) if offset >= start]
        assert page.next == found[-1] + 1
        start = page.next
