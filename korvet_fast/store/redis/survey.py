"""Looking at a log as it is at rest, at one moment: its bounds, and what others have done to it since the last look."""

from korvet_fast.store.interface import Bounds
from korvet_fast.store.redis.calls import Calls
from korvet_fast.store.redis.ids import find_offset
from korvet_fast.store.redis.log import Log
from korvet_fast.store.redis.scripts import LOOK, SET
from korvet_fast.store.redis.state import State, read_state

UNKNOWN = 1 << 62  # as a log's largest time: larger than any, for those who look for the exact one


async def survey(calls: Calls, log: Log) -> Bounds:
    """Look, and learn. Raises `StoreError`."""
    state = read_state(await calls.run(LOOK, (log.key, log.state_key)), log.form)
    return await learn(calls, log, state)


async def learn(calls: Calls, log: Log, state: State, *, measured: bool = True) -> Bounds:
    """What a script that looks has found; tells the state what others took away.

    `measured`: the bytes that we took away ourselves are known exactly.
    """
    removed, cut = state.removed, state.cut
    taken = state.gone > state.known_gone  # others trimmed the stream, or deleted entries in it
    if taken and log.first != state.first:  # only what went from the front moves the start
        removed = max(removed, state.start)
    if taken or not measured:
        cut = max(cut, state.totals.size - state.used)
        if log.fence and state.fence.decode() == log.fence:
            words = ("removed", removed, "gone", state.gone, "cut", cut)
            await calls.run(SET, (log.key, log.state_key), log.fence, *words)
    if state.foreign != log.foreign:
        log.pieces.doubt()
    log.foreign = state.foreign
    log.pieces.trust(int(state.mark or 0))
    log.first = state.first
    log.pieces.trim(state.start)
    return _bounds(log, state, removed, cut)


def _bounds(log: Log, state: State, removed: int, cut: int) -> Bounds:
    end = durable = state.end
    if log.fence:
        if state.fence.decode() == log.fence:
            log.end = max(log.end, end)
        end = log.end
        durable = max(state.start, min(log.durable, end))
    if not state.first:
        # Not `end`: an append on its way, which Redis had not seen then, lies below that.
        start = state.end if log.form.single else state.start
        return Bounds(start, end, max(durable, start), 0, -1, removed)
    rows = log.pieces.rows
    if not state.foreign:
        size, latest = max(state.totals.size - cut, 0), state.totals.time
    elif log.pieces.find_unknown(find_offset(state.first, log.form.bits), state.end) is None:
        size, latest = sum(row.size for row in rows), max((row.latest for row in rows), default=-1)
    else:
        size, latest = state.used, UNKNOWN
    return Bounds(state.start, end, durable, size, latest, removed)
