"""Appends of one log that are carried out together, and what those who wait for them hold."""

import asyncio
from collections.abc import Sequence

from korvet_fast.core.types import Buffer
from korvet_fast.errors import StoreError
from korvet_fast.store.interface import Appending, Entry, Piece
from korvet_fast.store.redis.pieces import GRAIN, Stretch
from korvet_fast.store.redis.state import Totals

Word = Buffer | str | int  # of a command


class Shared(asyncio.Future[None]):
    """A future that many wait for: that one of them is cancelled does not cancel it for the others."""

    def cancel(self, msg: object = None) -> bool:
        """Refused; a task that waits here is cancelled when the future ends."""
        return False

    def fail(self, error: Exception) -> None:
        """End with an error, which nobody has to ask for."""
        self.set_exception(error)
        self.exception()


class Group:
    """All of its appends are carried out, or none. Without any: what is in the log already is to become durable."""

    __slots__ = (
        "after",
        "appending",
        "commands",
        "durable",
        "end",
        "entries",
        "fence",
        "heads",
        "kept",
        "last",
        "limit",
        "need",
        "number",
        "opening",
        "parts",
        "piece",
        "refusal",
        "refused",
        "rows",
        "sent",
        "size",
        "stored",
        "time",
        "totals_before",
        "unknown",
        "words",
    )

    def __init__(self, need: tuple[bool, int], piece: Piece, end: int, after: bytes, totals: Totals) -> None:
        """`need`: (sync, copies). `end`: the log's before. `after`: the end that its state has before; `totals` too."""
        self.need = need
        self.piece = piece
        self.limit = (min(piece.size, GRAIN.size), min(piece.span, GRAIN.span))
        self.end = end  # the log's, afterwards
        self.after = after
        self.totals_before = totals
        self.entries: list[Entry] = []
        self.rows: list[Stretch] = []  # what is known of them
        self.size = self.number = 0  # bytes, and entries of the stream
        self.time = totals.time
        self.heads: dict[int, bytes] = {}  # of idempotent producers, as they are afterwards
        self.last = 0  # the offset that the id of the last entry of the stream stands for
        self.fence = ""  # the mark that it carries
        self.opening: list[Word] = []  # arguments of the guard
        self.parts: list[Buffer] = []  # commands, packed,
        self.words: list[tuple[Word, ...]] = []  # or not, as the layout likes it
        self.commands = 0
        self.sent = False
        self.unknown = False  # it was sent, and the answer was lost
        self.refused = False  # it was sent, and the answer says that nothing of it was carried out
        self.stored = self.durable = Shared()
        self.appending = Appending(self.stored, self.durable)  # what everybody gets whose append it is
        self.kept = False  # as durable as was asked for, or `refusal` says why not
        self.refusal: StoreError | None = None

    def promise_durable(self) -> None:
        """What is stored is not durable yet."""
        self.durable = Shared()
        self.appending = Appending(self.stored, self.durable)

    @property
    def mark(self) -> bytes:
        """The end that the state has afterwards."""
        return b"%d" % self.end if self.entries else self.after

    @property
    def totals(self) -> Totals:
        """Afterwards."""
        before = self.totals_before
        return Totals(before.size + self.size, before.number + self.number, self.time)

    @property
    def waits(self) -> bool:
        """Whether more than the server's answer is needed."""
        return self.need[0] or self.need[1] > 1

    def add(self, entries: Sequence[Entry], size: int, number: int) -> None:
        """Take in an append, whose commands are there already: so many bytes and entries of the stream."""
        first = entries[0].timestamp
        latest = first if len(entries) == 1 else max(entry.timestamp for entry in entries)
        end = entries[-1].last + 1
        self.rows.append(Stretch(self.end, end, size, number, latest, first))
        self.size += size
        self.number += number
        if latest > self.time:
            self.time = latest
        self.entries += entries
        self.end = end
