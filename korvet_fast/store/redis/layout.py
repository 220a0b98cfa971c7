"""What differs between the two layouts of a log (entries.py, batches.py)."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from korvet_fast.core.types import Buffer
from korvet_fast.store.interface import Entry, Form
from korvet_fast.store.redis.group import Group, Word

# What batches may decompress to when they are taken apart; they were bounded more tightly on their way in.
EXPANDED = 1 << 30


class Found(NamedTuple):
    """What the reply to an XRANGE held."""

    data: list[Buffer]  # record batches
    next: int  # the offset after what was looked at
    seen: int  # entries of the reply that were looked at; all, unless there were too many bytes
    skipped: int  # of these, entries that are no records of ours


class Layout(Protocol):
    """How record batches become entries of a stream, and come back."""

    first_count: int  # entries to ask for where nothing is known of their size

    def put(self, group: Group, key: str, form: Form, entries: Sequence[Entry]) -> None:
        """Take an append into a group, all of it or nothing. Raises `KorvetError` INVALID_RECORD."""

    def renew(self, group: Group, key: str, form: Form) -> None:
        """The group's opening is another one now."""

    def pack(self, group: Group, closing: list[tuple[Word, ...]]) -> tuple[list[Buffer], int]:
        """The transaction that carries the group out, and how many commands it is. `closing`: its last commands."""

    def unpack(self, reply: Buffer, form: Form, start: int, max_bytes: int, epoch: int) -> Found:
        """An XRANGE reply as batches, `max_bytes` at most but one record at least, none below `start`."""
