"""Acquiring a log: taking it over for writing."""

from collections import OrderedDict

from korvet_fast._native import encode_commands, parse_reply
from korvet_fast.errors import StoreError
from korvet_fast.store.redis.connection.calls import IdempotentCalls
from korvet_fast.store.redis.log.bounds import update_bounds
from korvet_fast.store.redis.log.log import HEADER_SIZE, FencingTokens, Log
from korvet_fast.store.redis.stream.ids import LAST
from korvet_fast.store.redis.stream.scripts import ACQUIRE, SET, UNDO_LOST
from korvet_fast.store.redis.stream.state import StreamState, is_former_layout, name_layout, read_state, write_epochs
from korvet_fast.store.types import LeadershipGrant

_REMEMBERED = 1000  # epochs
_IDS = 2000  # in one step: a script can unpack 8000 words


async def acquire(
    calls: IdempotentCalls, fencing_tokens: FencingTokens, log: Log, epoch: int, floor: int, durable: int
) -> LeadershipGrant:
    """See `SharedStore.acquire`; nothing of ours is under way. Raises `StoreError`."""
    log.fencing_token = ""
    keys = (log.key, log.state_key)
    fencing_token = fencing_tokens.make()
    name = name_layout(log.log_format)
    answer = await calls.run(ACQUIRE, keys, name, fencing_token, epoch)
    if isinstance(answer, bytes) and is_former_layout(answer, log.log_format):
        answer = await calls.run(ACQUIRE, keys, answer, fencing_token, epoch)
    if isinstance(answer, bytes):
        raise StoreError(f"{log.name} is laid out as {answer.decode()}, not as {name}")
    state = read_state(answer, log.log_format)
    log.log_format = log.log_format._replace(bits=state.bits)
    await _undo_lost(calls, log, fencing_token)
    headers = await _read_headers(calls, log) if log.log_format.entries_layout else OrderedDict()
    end = min(max(state.end, floor, log.reach), LAST)
    words: list[str | int] = ["end", end]
    if end > state.last_record_end:
        words += ["jump", end, "top", state.last_record_end]
    if floor > state.last_record_end and not state.first:  # all there was is lost: nobody may stand below, unawares
        words += ["start", floor, "removed", floor]
    epochs = _continue(state, end) if log.log_format.entries_layout else []
    if epochs:
        words += ["epochs", write_epochs(epochs)]
    if not await calls.run(SET, keys, fencing_token, *words):
        raise _taken(log)
    log.lost.clear()
    log.fencing_token = fencing_token
    log.epochs = epochs
    log.end = end
    log.end_field = b"%d" % end
    log.durable = min(durable, state.last_record_end)
    log.totals = state.totals
    log.headers = headers
    log.forgotten.clear()
    log.segments.clear()
    log.first = None
    log.foreign = min(state.known_foreign, 0)  # the stream may have been deleted while nobody looked
    log.lost_below = 0
    bounds = await update_bounds(calls, log, state._replace(end=end))
    if bounds.lost:
        bounds = bounds._replace(removed=state.removed)  # what was there is told with the loss
    return LeadershipGrant(bounds, state.epoch, state.last_record_end, tuple(epochs))


async def _undo_lost(calls: IdempotentCalls, log: Log, fencing_token: str) -> None:
    """Appends that were sent before a break and are lost must not come back; the producers may send them again."""
    ids = [each for lost in log.lost for each in lost.ids]
    fields = list(dict.fromkeys(field for lost in log.lost for field in lost.producers))
    for at in range(0, len(ids), _IDS):
        words: list[str | int] = [len(fields), *fields, *ids[at : at + _IDS]]
        if not await calls.run(UNDO_LOST, (log.key, log.state_key), fencing_token, *words):
            raise _taken(log)


def _taken(log: Log) -> StoreError:
    return StoreError(f"{log.name}: another program took it over at the same time")


def _continue(state: StreamState, end: int) -> list[tuple[int, int]]:
    """The epochs, with the present one from `end` on; without those that have nothing in the log, or wrote nothing."""
    epochs = [each for each in state.epochs if each[1] < end]
    gone = sum(first <= state.start for _, first in epochs[1:])
    return [*epochs[gone:][-_REMEMBERED:], (state.epoch, end)]


async def _read_headers(calls: IdempotentCalls, log: Log) -> "OrderedDict[int, bytes]":
    """The headers of all idempotent producers; the last writer comes last."""
    (raw,) = await calls.ask(log.key, encode_commands([["HGETALL", log.state_key]]))
    row = parse_reply(raw)
    found = [(int(name[1:]), headers) for name, headers in zip(row[::2], row[1::2], strict=True) if name[1:].isdigit()]
    return OrderedDict(sorted(found, key=lambda each: each[1][-HEADER_SIZE:][:8]))
