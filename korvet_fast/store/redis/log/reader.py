"""Reading a log: one XRANGE as a rule, whose reply becomes record batches in one native call."""

import logging
from typing import NamedTuple

from korvet_fast._native import batch_headers, encode_commands, to_columns
from korvet_fast.store.redis.connection.answer_window import SMALL
from korvet_fast.store.redis.connection.calls import IdempotentCalls
from korvet_fast.store.redis.log.bounds import measure, read_bounds
from korvet_fast.store.redis.log.log import Log
from korvet_fast.store.redis.log.packed_log import unpack_log
from korvet_fast.store.redis.stream.ids import LAST, pack_id
from korvet_fast.store.redis.stream.layout import EXPANDED, DecodedReply
from korvet_fast.store.redis.stream.segment_table import Segment
from korvet_fast.store.types import LogFormat, ReadResult
from korvet_fast.types import Buffer

MOST_KNOWN = 4096  # entries asked for at once, where their sizes are known, and
MOST_GUESSED = 256  # where they are not: any of them may be large; and
FIRST_GUESSED = 64  # before any was seen
MOST_BYTES = 2 << 20  # bytes read at once: Redis serves nobody else while it gives them
MOST_MISSED = 8 << 20  # bytes that may come where they were guessed, and all entries are as large as the largest seen
_SEARCH = 256 << 10  # bytes read at once when looking for something
_ALL = 1 << 40  # bytes: no limit

_logger = logging.getLogger(__name__)


class _Answer(NamedTuple):
    """To an XRANGE."""

    there: int  # entries
    ended: bool  # there are no more
    size: int  # bytes that they take at rest
    found: DecodedReply


class Reader:
    """Reads logs."""

    def __init__(self, calls: IdempotentCalls) -> None:
        self._calls = calls

    async def read(self, log: Log, start: int, max_bytes: int, limit: int, *, copy: bool = False) -> ReadResult:
        """See `store.interface.Read`. Always a copy."""
        if not (log.density or log.average) and not (unpack_log(log) and (log.density or log.average)):
            await measure(self._calls, log)
        data: list[Buffer] = []
        offset, room = start, min(max(max_bytes, 1), MOST_BYTES)
        while offset < limit and room > 0 and not log.dropped:
            count = _count(log, offset, room)
            epoch, upto = log.find_epoch(offset)
            answer = await self._fetch(log, log.log_format, offset, min(limit, upto), count, room, epoch)
            found, containing = answer.found, None
            if not data and not log.log_format.entries_layout and _begins_above(found, offset):
                containing = await self._fetch_containing(log, offset)
                found = containing or found
            batches = found.data if log.log_format.entries_layout else _below(found.data, limit)
            size = sum(map(len, batches))
            if (not batches and found.data) or (data and size > room):
                break
            data += batches
            offset, room = max(found.next, offset), room - size
            more = found.seen < answer.there
            if answer.ended and upto < limit and not more:
                offset = max(offset, upto)  # the next entries were written under another epoch
            elif containing is None and (answer.ended or more or 2 * size > room):
                break
        return ReadResult(data, offset if data else start)

    async def find_time(self, log: Log, ms: int, start: int) -> ReadResult:
        """See `LogStore.find_time`."""
        bounds = await read_bounds(self._calls, log)
        start = max(start, bounds.start)
        row = log.segments.find(start)
        offset = await self.find_base(log, start) if row is None else row.first
        while offset < bounds.end:
            row = await self.measure(log, offset, bounds.end)
            if row.latest >= ms and row.end > start:
                page = await self._search(log, row, ms, start)
                if page.data:
                    return page
            offset = row.end
        return ReadResult([], start)

    async def find_base(self, log: Log, offset: int) -> int:
        """Where the batch begins that holds `offset`; `offset` itself if none does."""
        if log.log_format.entries_layout:
            return offset
        containing = await self._fetch_containing(log, offset)
        return int.from_bytes(containing.data[0][:8], "big") if containing else offset

    async def measure(self, log: Log, offset: int, end: int) -> Segment:
        """The segment that covers `offset`, where a batch begins; read if it is not known, but not beyond `end`."""
        unknown = log.segments.find_unknown(offset, end)
        if unknown is None or unknown[0] > offset:
            row = log.segments.find(offset)
            assert row is not None
            return row
        count = _count(log, offset, _SEARCH)
        answer = await self._fetch(log, log.log_format._replace(compression=0), offset, unknown[1], count, _ALL)
        found = answer.found
        times = [batch.max_timestamp for data in found.data for batch in batch_headers(data, False)]
        timed = not times or times[-1] >= 0
        began, latest = (times[0], max(times)) if times else (-1, -1)
        if log.log_format.entries_layout:
            timed, latest = True, max(latest, *(_latest_id(data) >> log.log_format.bits for data in found.data), -1)
        # No entry is added below those read; the part between them and `end` is known if there were no more.
        upto = unknown[1] if answer.ended else max(found.next, offset + 1)
        row = Segment(offset, upto, answer.size, answer.there, latest, began, timed=timed)
        log.segments.note(row)
        return row

    async def _search(self, log: Log, row: Segment, ms: int, start: int) -> ReadResult:
        offset = max(row.first, start) if log.log_format.entries_layout else row.first
        while offset < row.end:
            count = _count(log, offset, _SEARCH)
            answer = await self._fetch(log, log.log_format._replace(compression=0), offset, row.end, count, _ALL)
            for data in answer.found.data:
                for batch in batch_headers(data, False):
                    if batch.max_timestamp >= ms and batch.last_offset >= start:
                        view = memoryview(data)[batch.start : batch.start + batch.size]
                        return ReadResult([view], batch.last_offset + 1)
            if answer.ended:
                break
            offset = answer.found.next
        return ReadResult([], start)

    async def _fetch(
        self, log: Log, log_format: LogFormat, start: int, limit: int, count: int, room: int, epoch: int = -1
    ) -> _Answer:
        """Entries from `start` on, about `count` at most, all of one epoch."""
        bits = log_format.bits
        end = pack_id(limit - 1, bits) if limit <= LAST else "+"

        def request() -> bytes:
            return encode_commands([["XRANGE", log.key, pack_id(start, bits), end, "COUNT", count]])

        def request_less() -> bytes:
            nonlocal count
            count = max(1, count >> 4)  # the answer may have been too large for the connection
            return request()

        # Consumers at the end of a log are given what came since they asked last: little, however much they ask for.
        size = int(count * (log.density or log.average)) if log.last_answer > SMALL else 0
        (raw,) = await self._calls.ask(log.key, request(), again=request_less, size=size)
        there = int(bytes(raw[1:16]).partition(b"\r")[0])
        found = log.layout.unpack(raw, log_format, start, room, epoch)
        log.last_answer = len(raw)
        if there:
            log.density = len(raw) / there
            log.densest = max(log.densest, log.density)
        if found.skipped and not log.warned:
            log.warned = True
            _logger.warning("%s: %d entries of the stream are no records, and are left out", log.name, found.skipped)
        return _Answer(
            there, there < count, len(raw) if log_format.entries_layout else sum(map(len, found.data)), found
        )

    async def _fetch_containing(self, log: Log, offset: int) -> DecodedReply | None:
        """The batch that begins below `offset` and ends above it."""
        packed = encode_commands([["XREVRANGE", log.key, pack_id(offset, log.log_format.bits), "-", "COUNT", 1]])
        (raw,) = await self._calls.ask(log.key, packed)
        found = log.layout.unpack(raw, log.log_format, offset, _ALL, -1)
        return found if found.data else None


def _count(log: Log, offset: int, room: int) -> int:
    """How many entries to ask for, for about so many bytes."""
    row = log.segments.find(offset)
    if row is not None and row.count:
        return max(1, min(room * row.count // max(row.size, 1) + 1, MOST_KNOWN))
    density, most = (log.density, MOST_GUESSED) if log.density else (log.average, FIRST_GUESSED)
    if not density:
        return 1
    return max(1, min(int(room / density) + 1, int(MOST_MISSED / max(log.densest, log.average)), most))


def _latest_id(batch: Buffer) -> int:
    """The offset of the last record without a time; -1 if all have one."""
    parts = to_columns(batch, EXPANDED)
    offsets = memoryview(parts["offset"])
    times = enumerate(memoryview(parts["timestamp"]))
    return max((offsets[row] for row, time in times if time < 0), default=-1)


def _begins_above(found: DecodedReply, offset: int) -> bool:
    return not found.data or int.from_bytes(found.data[0][:8], "big") > offset


def _below(batches: list[Buffer], limit: int) -> list[Buffer]:
    """Without the last batch, if it reaches `limit`."""
    if batches:
        last = memoryview(batches[-1])
        if int.from_bytes(last[:8], "big") + int.from_bytes(last[23:27], "big") >= limit:
            return batches[:-1]
    return batches
