"""Appends of one log that are carried out together, and the futures of those who wait for them."""

import asyncio
from collections.abc import Sequence

from korvet_fast.errors import StoreError
from korvet_fast.store.redis.connection.pipeline import Word
from korvet_fast.store.redis.stream.segment_table import Segment
from korvet_fast.store.redis.stream.segments import SEGMENT_LIMITS
from korvet_fast.store.redis.stream.state import Totals
from korvet_fast.store.shared_future import SharedFuture
from korvet_fast.store.types import Appending, RecordBatch, SegmentLimits
from korvet_fast.types import Buffer


class AppendTransaction:
    """All of its appends are carried out, or none. One without appends makes the present entries durable."""

    __slots__ = (
        "appending",
        "batches",
        "commands",
        "durability_error",
        "durable",
        "end",
        "end_before",
        "fencing_token",
        "forgotten",
        "headers",
        "kept",
        "last",
        "limit",
        "need",
        "number",
        "opening",
        "parts",
        "refused",
        "rows",
        "segment_limits",
        "sent",
        "size",
        "stored",
        "time",
        "totals_before",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        need: tuple[bool, int],
        segment_limits: SegmentLimits,
        end: int,
        end_before: bytes,
        totals: Totals,
    ) -> None:
        """`need`: (sync, copies). `end`: the log's end before. `end_before`, `totals`: what its state has before."""
        self.need = need
        self.segment_limits = segment_limits
        self.limit = (min(segment_limits.size, SEGMENT_LIMITS.size), min(segment_limits.span, SEGMENT_LIMITS.span))
        self.end = end  # the log's, afterwards
        self.end_before = end_before
        self.totals_before = totals
        self.batches: list[RecordBatch] = []
        self.rows: list[Segment] = []  # the segments known of the batches
        self.size = self.number = 0  # bytes, and entries of the stream
        self.time = totals.time
        self.headers: dict[int, bytes] = {}  # headers of idempotent producers, as they are afterwards
        self.forgotten: list[int] = []  # producers whose headers it removes, as it was sent last
        self.last = 0  # the offset that the id of the last entry of the stream stands for
        self.fencing_token = ""  # as `Log.fencing_token` when it was packed
        self.opening: list[Word] = []  # arguments of the guard
        self.parts: list[Buffer] = []  # commands, packed, where the layout packs them as they come
        self.commands = 0
        self.sent = False
        self.refused = False  # sent, and certainly not carried out
        self.stored: SharedFuture[None] = SharedFuture(loop=loop)
        self.durable = self.stored
        self.appending = Appending(self.stored, self.durable)  # the result for every append in the transaction
        self.kept = False  # as durable as was asked for, or `durability_error` says why not
        self.durability_error: StoreError | None = None

    def promise_durable(self) -> None:
        """Promise durability for later: the stored entries are not durable yet."""
        self.durable = SharedFuture(loop=self.stored.get_loop())
        self.appending = Appending(self.stored, self.durable)

    @property
    def end_field(self) -> bytes:
        """The end that the state has afterwards."""
        return b"%d" % self.end if self.batches else self.end_before

    @property
    def totals(self) -> Totals:
        """Afterwards."""
        before = self.totals_before
        return Totals(before.size + self.size, before.number + self.number, self.time)

    @property
    def waits(self) -> bool:
        """Whether more than the server's answer is needed."""
        return self.need[0] or self.need[1] > 1

    def add(self, batches: Sequence[RecordBatch], size: int, number: int) -> None:
        """Take in an append, whose commands are there already: so many bytes and entries of the stream."""
        first = batches[0].timestamp
        latest = first if len(batches) == 1 else max(batch.timestamp for batch in batches)
        end = batches[-1].last + 1
        self.rows.append(Segment(self.end, end, size, number, latest, first, timed=batches[-1].timestamp >= 0))
        self.size += size
        self.number += number
        if latest > self.time:
            self.time = latest
        self.batches += batches
        self.end = end
