"""Taking records away from the front of a log: delete-records, and retention by time and by size.

Entries go by XTRIM MINID. Where the log starts inside of a batch, the state says so. Nothing is taken from the end:
Redis never lets a stream's last id go back, so offsets could not be given out again.
"""

from korvet_fast.errors import KorvetError, StoreError
from korvet_fast.store.interface import Bounds
from korvet_fast.store.redis.calls import Calls
from korvet_fast.store.redis.ids import find_offset, pack_id
from korvet_fast.store.redis.log import Log
from korvet_fast.store.redis.reader import Reader
from korvet_fast.store.redis.scripts import TRIM
from korvet_fast.store.redis.state import read_state
from korvet_fast.store.redis.survey import learn


class Cutter:
    """The scissors of a store."""

    def __init__(self, calls: Calls, reader: Reader) -> None:
        self._calls = calls
        self._reader = reader

    async def delete_before(self, log: Log, bounds: Bounds, offset: int) -> Bounds:
        """Let the log start at `offset`; new bounds. Raises `KorvetError` outside of the log, `StoreError`."""
        if not 0 <= offset <= bounds.end:
            raise KorvetError("OFFSET_OUT_OF_RANGE", f"{log.name} holds {bounds.start} to {bounds.end}")
        await _wait_durable(log, offset)
        if offset <= bounds.start:
            return bounds
        return await self._trim(log, offset, await self._reader.find_base(log, offset))

    async def retire(self, log: Log, bounds: Bounds, older_than: int | None, larger_than: int | None) -> Bounds:
        """Take away what the rules of `Store.cut` name; new bounds. Raises `StoreError`."""
        durable = log.durable if log.fence else bounds.end
        start = offset = find_offset(log.first, log.form.bits) if log.first else bounds.end
        size = await self._measure_all(log, offset, bounds.end) if larger_than is not None else 0
        while offset < min(bounds.end, durable):
            row = await self._reader.measure(log, offset, bounds.end)
            old = older_than is not None and row.latest < older_than
            if row.end > durable or not (old or (larger_than is not None and size - row.size >= larger_than)):
                break
            size -= row.size
            offset = row.end
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
        first = find_offset(log.first, log.form.bits) if log.first else lowest
        known = log.pieces.find_unknown(first, lowest) is None
        size = sum(row.size for row in log.pieces.rows if row.end <= lowest) if known else 0
        words: list[str | int] = ["start", start, "removed", start]
        keys = (log.key, log.state_key)
        answer = await self._calls.run(TRIM, keys, log.fence, pack_id(lowest, log.form.bits), size, *words)
        if answer == 0:
            raise StoreError(f"{log.name}: another program has it now")
        return await learn(self._calls, log, read_state(answer, log.form), measured=known)


async def _wait_durable(log: Log, offset: int) -> None:
    """Until all below `offset` is durable. Raises what became of an append."""
    for group in [*log.rounds, *log.groups]:
        if log.durable >= offset:
            return
        await group.durable
