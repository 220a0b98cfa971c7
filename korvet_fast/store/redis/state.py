"""What Redis knows of a log, read in one step: its state and what XINFO STREAM tells (scripts.py)."""

from typing import Any, NamedTuple

from korvet_fast._native import headers
from korvet_fast.store.interface import Form
from korvet_fast.store.redis.ids import LAST, find_end, find_offset

_FIELDS = 14  # of the state; the stream's follow
_NOTHING = (b"0-0", 0, 0, b"", b"", 0)


class Totals(NamedTuple):
    """What programs that had the log have appended to it since it was made."""

    size: int = 0  # bytes
    number: int = 0  # entries of the stream
    time: int = -1  # the largest record time, in ms


class State(NamedTuple):
    """A log as it is at rest. Offsets, but for `epoch` and numbers of bytes and entries."""

    epoch: int
    fence: bytes
    mark: bytes  # the field `end`, as it is there: what a guard compares with; b"" if there is none
    end: int  # where the next append goes at the earliest, by what is there
    top: int  # after the last record really there
    start: int
    first: bytes  # the first entry's id, b"" if there is none
    removed: int
    gone: int  # entries taken out of the stream, ever
    known_gone: int  # as far as the state says
    totals: Totals
    cut: int
    foreign: int  # entries that others have put in
    used: int  # bytes that the stream takes in Redis
    epochs: list[tuple[int, int]]  # see `Attached.epochs`


def read_state(reply: list[Any], form: Form) -> State:
    """From the reply of a script that looks."""
    bits, lowest = form.bits, 0 if form.single else 1
    # The layout's first offset: Redis has no id 0-0, so that batches, whose offsets are dense, begin with 1.
    _, epoch, fence, mark, jump, claimed, start, removed, known_gone, size, count, time, cut, epochs = reply[:_FIELDS]
    last, added, length, first, last_head, used = reply[_FIELDS:] or _NOTHING
    end = int(mark or 0)
    top = find_end(last, bits)
    if not form.single and last != b"0-0":
        # Of batches, the id tells only where the last one begins.
        claimed_top = int(claimed or 0) if jump == mark else end
        top = max(top, claimed_top, _end_of(last_head))
    top = max(top, lowest)
    end = min(max(end, top), LAST)
    begin = max(int(start or 0), find_offset(first, bits) if first else end)
    totals = Totals(int(size or 0), int(count or 0), int(time if time is not None else -1))
    return State(
        int(epoch if epoch is not None else -1),
        fence or b"",
        mark or b"",
        end,
        top,
        min(begin, end),
        first,
        int(removed or 0),
        added - length,
        int(known_gone or 0),
        totals,
        int(cut or 0),
        added - totals.number,
        used,
        read_epochs(epochs or b""),
    )


def read_epochs(field: bytes) -> list[tuple[int, int]]:
    """The field `epochs` of the state."""
    pairs = (pair.split(b":") for pair in field.split())
    return [(int(epoch), int(first)) for epoch, first in pairs]


def write_epochs(epochs: list[tuple[int, int]]) -> str:
    """As `read_epochs` reads them."""
    return " ".join(f"{epoch}:{first}" for epoch, first in epochs)


def _end_of(head: bytes) -> int:
    """The offset after a batch, of which these are the first 61 bytes."""
    if not head:
        return 0
    whole = bytearray(head)
    whole[8:12] = (49).to_bytes(4, "big")  # a batch of no records: all there is to it
    found = headers(whole, False)
    return found[0].last_offset + 1 if found else 0
