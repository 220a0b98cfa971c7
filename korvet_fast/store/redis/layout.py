"""What differs between the two layouts of a log (entries.py, batches.py)."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from korvet_fast.core.types import Buffer
from korvet_fast.store.interface import Entry, Form

Word = Buffer | str | int

# What batches may decompress to when they are taken apart; they were bounded more tightly on their way in.
EXPANDED = 1 << 30


class Packed(NamedTuple):
    """The commands that append something."""

    parts: list[Buffer]
    commands: int
    number: int  # entries of the stream
    size: int  # bytes that it takes at rest


class Found(NamedTuple):
    """What the reply to an XRANGE held."""

    data: list[Buffer]  # record batches
    next: int  # the offset after what was looked at
    seen: int  # entries of the reply that were looked at; all, unless there were too many bytes
    skipped: int  # of these, entries that are no records of ours


class Layout(Protocol):
    """How record batches become entries of a stream, and come back."""

    first_count: int  # entries to ask for where nothing is known of their size

    def pack(self, key: str, form: Form, entry: Entry, opening: Sequence[Word]) -> Packed:
        """The commands for a batch. `opening`: the guard that goes before them, its script and its arguments; or ()."""

    def find_last(self, entry: Entry) -> int:
        """The offset that the id of the batch's last stream entry stands for."""

    def unpack(self, reply: Buffer, form: Form, start: int, max_bytes: int, epoch: int) -> Found:
        """An XRANGE reply as batches, `max_bytes` at most but one record at least, none below `start`."""
