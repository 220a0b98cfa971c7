"""A log that nobody uses, packed: its state in memory is one block of bytes, without small objects.

Python gives back a MiB of small objects when the last of them has gone. A log that was used while memory was full left
its numbers, segments and headers among the objects of requests, a few in each MiB, and so kept all of these. The block
is larger than what Python takes for small: the C library has it, and gives back every page around it.

A packed log looks like one that is not acquired, and of whose entries nothing is known. Appends and reads of such a log
have it unpacked, if it is packed; those of any other log need not ask.
"""

import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import accumulate, pairwise
from typing import Final

from korvet_fast.store.redis.log.log import Log
from korvet_fast.store.redis.stream.state import NOTHING_YET, Totals

_NUMBERS: Final = struct.Struct("<8q3d3qq")
_LARGE: Final = 512  # bytes: Python has smaller blocks among the small objects
_MOST: Final = 4096  # headers of a log that is packed: more would hold up others
_ABSENT: Final = -1  # in place of a length: the value is None


def pack_if_idle(log: Log) -> int:
    """Pack a log that nobody used since the last call. Returns the bytes that it takes, 0 if it was not packed."""
    if not _is_packable(log):
        log.seen_idle_at = None
        return 0
    before, log.seen_idle_at = log.seen_idle_at, (log.end, log.density)
    return _pack(log) if log.seen_idle_at == before else 0


def unpack_log(log: Log) -> bool:
    """Unpack a log, if it is packed; returns whether it was."""
    if not log.packed:
        return False
    packed, log.packed = log.packed, b""
    numbers = _NUMBERS.unpack_from(packed)
    log.end, log.reach, log.durable, size, number, time, log.foreign, log.lost_below = numbers[:8]
    log.totals = Totals(size, number, time)
    log.average, log.density, log.densest = numbers[8:11]
    *lengths, headers = numbers[11:]
    at = log.segments.unpack(packed, _NUMBERS.size)
    token, log.end_field, first = _slice_parts(packed, at, (max(length, 0) for length in lengths))
    log.fencing_token, log.first = token.decode(), None if lengths[-1] == _ABSENT else first
    at += len(token) + len(log.end_field) + len(first)
    known = struct.unpack_from(f"<{2 * headers}q", packed, at)
    at += 8 * len(known)
    log.headers.update(zip(known[:headers], _slice_parts(packed, at, known[headers:]), strict=True))
    return True


@contextmanager
def unpacked(log: Log) -> Iterator[None]:
    """Keep the log unpacked inside the context; then pack it again, if it was packed and nobody uses it."""
    was_packed = unpack_log(log)
    log.users += 1
    try:
        yield
    finally:
        log.users -= 1
        if was_packed and _is_packable(log):
            _pack(log)


def _is_packable(log: Log) -> bool:
    """Whether the log is led here and holds something, and nothing is under way."""
    if not log.fencing_token or not (log.totals.number or log.first) or log.is_busy or log.dropped:
        return False
    return not (log.lost or log.forgotten) and len(log.headers) <= _MOST


def _pack(log: Log) -> int:
    token, headers = log.fencing_token.encode(), log.headers
    lengths = len(token), len(log.end_field), _ABSENT if log.first is None else len(log.first)
    numbers = log.end, log.reach, log.durable, *log.totals, log.foreign, log.lost_below
    packed = [
        _NUMBERS.pack(*numbers, log.average, log.density, log.densest, *lengths, len(headers)),
        *(log.segments.pack(), token, log.end_field, log.first or b""),
        struct.pack(f"<{2 * len(headers)}q", *headers, *map(len, headers.values())),
        *headers.values(),
    ]
    _empty(log)
    log.packed = b"".join(packed).ljust(_LARGE, b"\0")
    return len(log.packed)


def _empty(log: Log) -> None:
    """Let go of everything that is packed, and of the room that emptied tables keep."""
    log.fencing_token, log.end_field, log.first = "", b"", None
    log.end = log.reach = log.durable = log.foreign = log.lost_below = 0
    log.totals = NOTHING_YET
    log.average = log.density = log.densest = log.deadline = 0.0
    log.seen_idle_at = log.recovering = log.open = None
    log.segments.clear()
    log.headers.clear()
    log.forgotten.clear()
    log.transactions.clear()
    log.awaiting_durable.clear()


def _slice_parts(packed: bytes, start: int, lengths: Iterable[int]) -> list[bytes]:
    """The parts of these lengths, one behind the other."""
    return [packed[first:end] for first, end in pairwise(accumulate(lengths, initial=start))]
