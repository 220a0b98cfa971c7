"""A log's bounds in Redis at one moment, and what other programs have done to the stream since they were last read."""

from korvet_fast.store.redis.connection.calls import IdempotentCalls
from korvet_fast.store.redis.log.log import Log
from korvet_fast.store.redis.stream.ids import LAST, find_offset
from korvet_fast.store.redis.stream.scripts import READ_STATE, SET
from korvet_fast.store.redis.stream.state import StreamState, read_state
from korvet_fast.store.types import Bounds

UNKNOWN = 1 << 62  # a log's largest time where it is not known: larger than any time


async def measure(calls: IdempotentCalls, log: Log) -> None:
    """Read how large entries are on average, and nothing else: only the leader asks where the log ends."""
    log.average = (await _fetch_state(calls, log)).average


async def read_bounds(calls: IdempotentCalls, log: Log) -> Bounds:
    """Read the log's state, update `log` with it, return the bounds. Raises `StoreError`."""
    return await update_bounds(calls, log, await _fetch_state(calls, log))


async def _fetch_state(calls: IdempotentCalls, log: Log) -> StreamState:
    return read_state(await calls.run(READ_STATE, (log.key, log.state_key)), log.log_format)


async def update_bounds(calls: IdempotentCalls, log: Log, state: StreamState, *, measured: bool = True) -> Bounds:
    """The bounds by `state`, as a script read it. Records in Redis what other programs took away.

    `measured`: the bytes that we took away ourselves are known exactly.
    """
    if log.log_format.bits != state.bits:
        log.log_format = log.log_format._replace(bits=state.bits)
    if state.average != log.average:  # else the number at hand stays: a new one would lie somewhere else
        log.average = state.average
    removed, removed_bytes = state.removed, state.removed_bytes
    ours = bool(log.fencing_token) and state.fencing_token.decode() == log.fencing_token
    deleted = ours and state.foreign < log.foreign  # what is there now was made later, and counts from 0
    if deleted:
        log.lost_below = state.start
    taken = deleted or state.gone > state.known_gone  # others trimmed the stream, or deleted entries in it
    if taken and (log.first != state.first or not state.first):  # only what went from the front moves the start
        removed = max(removed, state.start)
    if taken or not measured:
        removed_bytes = max(removed_bytes, state.totals.size - state.used)
        if ours:
            words: list[str | int] = ["removed", removed, "gone", state.gone, "cut", removed_bytes]
            if deleted:
                words += ["foreign", state.foreign]
            await calls.run(SET, (log.key, log.state_key), log.fencing_token, *words)
    if state.foreign != log.foreign:
        log.segments.distrust()
    log.foreign = state.foreign
    log.segments.trust(int(state.end_field or 0))
    log.first = state.first
    log.segments.trim(state.start)
    return _bounds(log, state, removed, removed_bytes)


def _bounds(log: Log, state: StreamState, removed: int, removed_bytes: int) -> Bounds:
    end = durable = state.end
    if log.fencing_token:
        if state.fencing_token.decode() == log.fencing_token:
            log.end = max(log.end, end)
        end = log.end
        durable = max(state.start, min(log.durable, end))
    if not state.first:
        # `end` would be wrong: an append on its way, which Redis had not seen then, lies below `end`.
        start = state.end if log.log_format.entries_layout else state.start
        return Bounds(start, end, max(durable, start), 0, -1, removed, log.lost_below)
    rows = log.segments.rows
    if not state.foreign:
        size, latest = max(state.totals.size - removed_bytes, 0), state.totals.time
    elif log.segments.find_unknown(find_offset(state.first, log.log_format.bits), state.end) is None:
        size, latest = rows.measure(LAST), rows.find_latest()
    else:
        size, latest = state.used, UNKNOWN
    return Bounds(state.start, end, durable, size, latest, removed, log.lost_below)
