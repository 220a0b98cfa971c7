"""Removing records from the front of a log: delete-records, and retention by time and by size.

Entries go by XTRIM MINID. Where the log starts inside of a batch, the state says so. Nothing is taken from the end:
Redis never lets a stream's last id go back, so offsets could not be given out again.

A record without a time is as old as its id says in the layout `entries`. In `batches`, whose ids are offsets, nothing
tells when such a batch came: it is as old as the next one that has a time, and stays while there is none.
"""

from korvet_fast.errors import Errors, KorvetError, StoreError
from korvet_fast.store.redis.connection.calls import IdempotentCalls
from korvet_fast.store.redis.log.bounds import update_bounds
from korvet_fast.store.redis.log.log import Log
from korvet_fast.store.redis.log.reader import Reader
from korvet_fast.store.redis.stream.ids import find_offset, pack_id
from korvet_fast.store.redis.stream.scripts import TRIM
from korvet_fast.store.redis.stream.state import read_state
from korvet_fast.store.types import Bounds, OffsetConflict


class Retention:
    """Removes records from the front of a log."""

    def __init__(self, calls: IdempotentCalls, reader: Reader) -> None:
        self._calls = calls
        self._reader = reader

    async def delete_records(self, log: Log, bounds: Bounds, offset: int) -> Bounds:
        """Let the log start at `offset`; new bounds.

        Raises `StoreError`; `KorvetError` outside of the log, or if another program has it.
        """
        if not 0 <= offset <= bounds.end:
            raise KorvetError(Errors.OFFSET_OUT_OF_RANGE, f"{log.name} holds {bounds.start} to {bounds.end}")
        await _wait_durable(log, offset)
        if offset <= bounds.start:
            return bounds
        return await self._trim(log, offset, await self._reader.find_base(log, offset))

    async def apply_retention(
        self, log: Log, bounds: Bounds, older_than: int | None, larger_than: int | None
    ) -> Bounds:
        """Take away what the rules of `LogStore.apply_retention` name; new bounds. Raises `StoreError`."""
        durable = log.durable if log.fencing_token else bounds.end
        start = offset = find_offset(log.first, log.log_format.bits) if log.first else bounds.end
        size = await self._measure_all(log, offset, bounds.end) if larger_than is not None else 0
        at = offset
        while at < min(bounds.end, durable):
            row = await self._reader.measure(log, at, bounds.end)
            size -= row.size
            large = larger_than is not None and size >= larger_than
            old = older_than is not None and row.latest < older_than
            if row.end > durable or not (old or large):
                break
            at = row.end
            if large or row.timed:
                offset = at
        if offset == start:
            return bounds
        return await self._trim(log, offset, offset)

    async def _measure_all(self, log: Log, offset: int, end: int) -> int:
        size = 0
        while offset < end:
            row = await self._reader.measure(log, offset, end)
            size += row.size
            offset = row.end
        return size

    async def _trim(self, log: Log, start: int, lowest: int) -> Bounds:
        """Take away the entries below `lowest`; nothing below `start` is given out any more."""
        first = find_offset(log.first, log.log_format.bits) if log.first else lowest
        known = log.segments.find_unknown(first, lowest) is None
        size = log.segments.rows.measure(lowest) if known else 0
        words: list[str | int] = ["start", start, "removed", start]
        keys = (log.key, log.state_key)
        answer = await self._calls.run(
            TRIM, keys, log.fencing_token, pack_id(lowest, log.log_format.bits), size, *words
        )
        if answer == 0:
            raise StoreError(f"{log.name}: another program has it now")
        return await update_bounds(self._calls, log, read_state(answer, log.log_format), measured=known)


async def _wait_durable(log: Log, offset: int) -> None:
    """Wait until all records below `offset` are durable.

    Raises `StoreError`, and `KorvetError` NOT_LEADER_OR_FOLLOWER if an append was refused for another program's sake.
    """
    for transaction in [*log.awaiting_durable, *log.transactions]:
        if log.durable >= offset:
            return
        try:
            await transaction.durable
        except OffsetConflict:
            why = f"{log.name} was written to, or taken over, by another program"
            raise KorvetError(Errors.NOT_LEADER_OR_FOLLOWER, why) from None
