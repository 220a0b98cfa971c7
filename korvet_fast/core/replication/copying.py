"""The follower's side of a copy: truncate what the leader does not have, append and flush what was fetched from it.

All of these do nothing to a copy whose broker leads the log by now.
"""

import asyncio
import logging
from collections.abc import Sequence

from korvet_fast._native import Batch, batch_headers
from korvet_fast.core.fair_queue import BackgroundPace
from korvet_fast.core.partition.leader_epochs import EpochOffset
from korvet_fast.core.replication.replica import Replica
from korvet_fast.errors import StoreError
from korvet_fast.store.types import RecordBatch
from korvet_fast.types import Buffer

logger = logging.getLogger(__name__)

# Before others may have a turn, so many fetched batches are appended, or so many bytes of them, about.
_AT_ONCE = 64
_PART = 512 << 10


async def settle_divergence(replica: Replica, epoch: int, asked: int, answer: EpochOffset) -> None:
    """Truncate the records that the leader of `epoch` does not have, by its answer for `asked`.

    Raises `StoreError`.
    """
    async with replica.changing:
        if replica.progress is not None:
            return
        await replica.flush()  # records that this broker wrote as the leader: a fetch says that they are on the disk
        state, epochs = replica.state, list(replica.epochs.entries)
        before, high_watermark = state.end, state.high_watermark
        end = state.find_divergence(epoch, asked, answer)
        try:
            if end is None:
                await replica.save_epochs()  # an epoch without records may be gone
            else:
                await _truncate(replica, max(end, replica.start))
        except StoreError:  # the leader is asked again, and all of it is done again
            replica.epochs.replace(epochs)
            state.end, state.high_watermark, state.asking = before, high_watermark, asked
            raise


async def _truncate(replica: Replica, end: int) -> None:
    state, before = replica.state, replica.end
    bounds = await replica.store.truncate(replica.name, end)
    text = "%s: the leader has nothing from offset %d on: %d offsets were cut off here"
    logger.info(text, replica.name, bounds.end, before - bounds.end)
    replica.end = bounds.end
    replica.epochs.truncate(bounds.end)
    state.appended(bounds.end)
    state.high_watermark = min(state.high_watermark, bounds.end)
    await replica.listener.truncated(bounds.end)
    await replica.save_epochs()


async def restart(replica: Replica, start: int) -> None:
    """Begin anew at `start`: the leader has nothing below. Raises `StoreError`."""
    async with replica.changing:
        if replica.progress is not None:
            return
        await replica.store.restart(replica.name, start)
        replica.opened = replica.store.open_log(replica.name)
        replica.start = replica.end = start
        replica.state.restart(start)
        replica.listener.restarted()
        await replica.save_epochs()


async def copy(replica: Replica, epoch: int, offset: int, records: Buffer) -> bool:
    """Append batches fetched at `offset` from the leader of `epoch`, and flush them. Raises `StoreError`.

    Returns False where they no longer belong there: the log has changed meanwhile.
    """
    pace = BackgroundPace()
    batches = batch_headers(records, True)
    if not batches:
        raise StoreError(f"{replica.name}: the leader of epoch {epoch} sent no whole batch")
    if batches[0].base_offset < offset and replica.start == replica.end == offset:
        await restart(replica, batches[0].base_offset)  # the leader's log starts within this batch
        offset = batches[0].base_offset
    data, durable = memoryview(records), None
    step = max(1, min(_AT_ONCE, _PART * len(batches) // len(data)))
    async with replica.changing:
        if replica.progress is not None or not replica.state.accepts(epoch, offset):
            return False
        try:
            for start in range(0, len(batches), step):
                if pace.due():
                    await pace.turn()
                    if not replica.state.accepts(epoch, offset):
                        return False
                durable = await _append_copied(replica, epoch, data, batches[start : start + step])
        finally:
            if durable is not None:
                await asyncio.wait([durable])
                durable.result()
                replica.state.appended(replica.end)
        return True


async def _append_copied(
    replica: Replica, epoch: int, data: memoryview, batches: Sequence[Batch]
) -> "asyncio.Future[None]":
    """Append batches of `data`, all or none; the future ends when they are flushed. Raises `StoreError`."""
    _check(replica, epoch, replica.end, [(each.base_offset, each.last_offset, each.leader_epoch) for each in batches])
    replica.listener.check(data[batches[0].start : batches[-1].start + batches[-1].size])
    last = replica.epochs.last
    for each in batches:
        replica.epochs.add(each.leader_epoch, each.base_offset)
    if replica.epochs.last != last:
        await replica.save_epochs()
    rows = [
        RecordBatch(data[each.start : each.start + each.size], each.base_offset, each.last_offset, each.max_timestamp)
        for each in batches
    ]
    durable = replica.opened.append(rows, replica.end, True, 1, replica.segment_limits).durable
    replica.end = batches[-1].last_offset + 1
    for row in rows:
        replica.listener.appended(row.data, row.last + 1)
    return durable


def _check(replica: Replica, epoch: int, offset: int, batches: Sequence[tuple[int, int, int]]) -> None:
    """Raises `StoreError` unless these batches (first, last, epoch) belong behind the log."""
    known = replica.epochs.last
    for first, last, written_in in batches:
        if first != offset or not known <= written_in <= epoch:
            raise StoreError(
                f"{replica.name}: the leader of epoch {epoch} sent offset {first} of epoch {written_in}, but the log "
                f"goes on at {offset} in epoch {known}"
            )
        offset, known = last + 1, written_in


async def follow_leader_log(replica: Replica, start: int, high_watermark: int) -> None:
    """Take over the leader's watermark (-1: it does not know), and where its log starts. Raises `StoreError`."""
    if replica.progress is None and replica.state.update_high_watermark(high_watermark):
        replica.listener.committed(replica.state.high_watermark)
    if replica.is_new and 0 <= high_watermark <= replica.end:
        async with replica.changing:  # a leadership that begins meanwhile saves its epoch under the same key
            replica.is_new = False
            await replica.save_epochs()
    if replica.start < start <= replica.end:
        async with replica.changing:
            bounds = await replica.store.delete_records(replica.name, start)
            replica.start = bounds.start
            replica.epochs.trim(replica.start)
