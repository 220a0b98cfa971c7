"""A log's state in Redis, read in one step: its state and what XINFO STREAM tells (scripts.py)."""

from typing import Any, NamedTuple

from korvet_fast._native import batch_headers
from korvet_fast.store.redis.stream.ids import LAST, find_end, find_offset
from korvet_fast.store.types import BATCHES, ENTRIES, LogFormat

_FIELDS = 15  # fields of the state; the stream's follow
_NOTHING = (b"0-0", 0, 0, b"", b"", 0)


class Totals(NamedTuple):
    """Totals of a log since its creation: everything that its owners have appended."""

    size: int = 0  # bytes
    number: int = 0  # entries of the stream
    time: int = -1  # the largest record time, in ms


NOTHING_YET = Totals()


def headers_field(producer: int) -> str:
    """The field of a log's state that has a producer's headers."""
    return f"p{producer}"


class StreamState(NamedTuple):
    """A log as it is at rest. Offsets, but for `bits`, `epoch` and numbers of bytes and entries."""

    bits: int  # bits of the sequence in its ids; 0 where there are none (ids.py)
    epoch: int
    fencing_token: bytes
    end_field: bytes  # the field `end`, as it is there: what a guard compares with; b"" if there is none
    end: int  # where the next append goes at the earliest, by what is there
    last_record_end: int  # after the last record really there
    start: int
    first: bytes  # the first entry's id, b"" if there is none
    removed: int
    length: int  # entries in the stream
    gone: int  # entries taken out of the stream, ever
    known_gone: int  # as far as the field `gone` says
    totals: Totals
    removed_bytes: int
    foreign: int  # entries that others have put in; below 0: the stream is gone, or another one
    known_foreign: int  # by the field `foreign`
    used: int  # bytes that the stream takes in Redis
    epochs: list[tuple[int, int]]  # see `LeadershipGrant.epochs`

    @property
    def average(self) -> float:
        """Bytes that an entry takes in Redis."""
        return self.used / max(self.length, 1) if self.used else 0.0  # a division would make another zero for each log


def read_state(reply: list[Any], log_format: LogFormat) -> StreamState:
    """Read the reply of a script that answers with the state."""
    name, epoch, fencing_token, end_field, jump, claimed, start, removed, known_gone, *more = reply[:_FIELDS]
    size, count, time, removed_bytes, epochs, known_foreign = more
    last, added, length, first, last_head, used = reply[_FIELDS:] or _NOTHING
    bits = log_format.bits if log_format.entries_layout else _read_bits(name)
    # Dense offsets with bits begin with 1: Redis has no id 0-0.
    lowest = 1 if bits and not log_format.entries_layout else 0
    end = int(end_field or 0)
    last_record_end = find_end(last, bits)
    if not log_format.entries_layout and last != b"0-0":
        # The id of a batch tells only where the last batch begins.
        claimed_top = int(claimed or 0) if jump == end_field else end
        last_record_end = max(last_record_end, claimed_top, _end_of(last_head))
    last_record_end = max(last_record_end, lowest)
    end = min(max(end, last_record_end), LAST)
    begin = max(int(start or 0), find_offset(first, bits) if first else end)
    totals = Totals(int(size or 0), int(count or 0), int(time if time is not None else -1))
    return StreamState(
        bits,
        int(epoch if epoch is not None else -1),
        fencing_token or b"",
        end_field or b"",
        end,
        last_record_end,
        min(begin, end),
        first,
        int(removed or 0),
        length,
        added - length,
        int(known_gone or 0),
        totals,
        int(removed_bytes or 0),
        added - totals.number,
        int(known_foreign or 0),
        used,
        read_epochs(epochs or b""),
    )


def name_layout(log_format: LogFormat) -> str:
    """The name of a layout in the field `form`."""
    return f"{ENTRIES if log_format.entries_layout else BATCHES}:{log_format.bits}"


def is_former_layout(name: bytes, log_format: LogFormat) -> bool:
    """Whether the name stands for the same layout with the former ids of batches."""
    return not log_format.entries_layout and name.startswith(b"%s:" % BATCHES.encode())


def _read_bits(name: bytes | None) -> int:
    return int(name.partition(b":")[2]) if name else 0


def read_epochs(field: bytes) -> list[tuple[int, int]]:
    """The epochs in the field `epochs`."""
    pairs = (pair.split(b":") for pair in field.split())
    return [(int(epoch), int(first)) for epoch, first in pairs]


def write_epochs(epochs: list[tuple[int, int]]) -> str:
    """The field `epochs`, as `read_epochs` reads it."""
    return " ".join(f"{epoch}:{first}" for epoch, first in epochs)


def _end_of(header: bytes) -> int:
    """The offset after a batch, of which these are the first 61 bytes."""
    if not header:
        return 0
    whole = bytearray(header)
    whole[8:12] = (49).to_bytes(4, "big")  # a batch of no records: all there is to it
    found = batch_headers(whole, False)
    return found[0].last_offset + 1 if found else 0
