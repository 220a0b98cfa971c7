"""What a store is: nine verbs over logs and keys, with no Kafka in them. Both engines, one contract suite.

A *log* is a named sequence of record batches; each batch covers a range of offsets, and the ranges rise. A name is
`topic:partition` to core; here it is letters, digits, `.`, `_` and `-`, a colon, and a number. A *key* is a string
with a small value, compared and set whole.

All methods are called on one event loop. A method that has nothing to wait for completes without suspending.
Failures of disk or server raise `StoreError`; nothing may be reported as stored after one.
"""

from asyncio import Future
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from korvet_fast.core.types import Buffer


class Entry(NamedTuple):
    """One record batch on its way in: its bytes, already stamped, and what a log must know of it."""

    data: Buffer
    first: int  # offset of its first record
    last: int  # offset of its last record
    timestamp: int  # the largest record time in it, in ms


class Appending(NamedTuple):
    """An append under way. Both futures end with None or a `StoreError`.

    They are shared between appends and refuse to be cancelled: a task that awaits one is cancelled only when it
    ends. Use `asyncio.shield` where that may take too long.
    """

    stored: "Future[None]"  # the store has it: it survives the end of this process
    durable: "Future[None]"  # it survives what the store's durability promises (embedded: a power failure)


class Piece(NamedTuple):
    """How large a piece of a log may get; an append that would pass either begins a new one.

    Pieces are what `Store.cut` retires. An engine that keeps none may ignore it.
    """

    size: int  # bytes; one append is never divided, and may be larger
    span: int  # ms of record time, from the piece's first batch to the append's first


LARGE: Final = Piece(1 << 30, 7 * 24 * 3600 * 1000)


class Page(NamedTuple):
    """What a read hands out: whole batches in order, as they are at rest, and the offset after them."""

    data: list[Buffer]
    next: int


class Bounds(NamedTuple):
    """`start` <= offsets held < `end`; those below `durable` are durable."""

    start: int
    end: int
    durable: int
    size: int  # bytes at rest
    latest: int = -1  # the largest record time at rest, in ms; may be that of a record just below `start`


class Stale(Exception):
    """The append's `at` is not the end of the log: another writer was here. `end` is where the log ends."""

    def __init__(self, end: int) -> None:
        super().__init__(end)
        self.end = end


ABSENT: Final = None  # as `expected`: the key must not exist; as `value`: the key is deleted


class Store(Protocol):
    """The nine verbs. `open` and `close` frame them: nothing else may be called outside of the two."""

    async def open(self) -> None:
        """Make ready: recover what a crash left. Raises `StoreError` if the store cannot be used."""

    async def close(self) -> None:
        """Flush everything, mark the shutdown as clean, let go of the store."""

    def append(self, log: str, entries: Sequence[Entry], at: int, *, sync: bool, piece: Piece = LARGE) -> Appending:
        """Compare-and-append, all entries or none; order of calls is order in the log.

        `at` must be the end of the log (a log that does not exist ends at 0), else `Stale`. Returns before
        anything is awaited, so a caller's next append follows this one. `sync` asks that `durable` be
        reached soon; without it, `durable` ends together with `stored` and the data is flushed when the system pleases.
        `durable` covers the whole log, so no entries with `sync` make durable what is there already. `piece` holds for
        this append, whatever earlier ones were told.
        """

    async def read(self, log: str, start: int, max_bytes: int, limit: int) -> Page:
        """Whole batches from the one that contains `start`, or the next one above, up to `limit` (an offset, excluded).

        About `max_bytes` at most, but always one whole batch if there is one. An unknown log reads empty.
        `next` is the offset after the last batch, or `start` if there was none.
        """

    async def bounds(self, log: str) -> Bounds:
        """Where the log starts and ends. An unknown log is (0, 0, 0, 0, -1)."""

    async def find_time(self, log: str, ms: int, start: int = 0) -> Page:
        """The first batch that ends at or above offset `start` and whose largest time is `ms` or later.

        A page of one, or of none. Where the batch begins below `start`, the record of that time may lie below it
        too: then ask again with the page's `next`.
        """

    async def cut(
        self,
        log: str,
        *,
        start: int | None = None,
        end: int | None = None,
        older_than: int | None = None,
        larger_than: int | None = None,
    ) -> Bounds:
        """Take records away; returns the new bounds.

        `start`: offsets below it are gone at once, on a crash too. `end`: offsets from it on are gone, and are
        given out again; a batch that holds it goes whole. `older_than` (a time in ms) and `larger_than` (bytes)
        retire whole pieces from the front, as large as the engine keeps them: all of whose records are older, or
        without which the rest is still as large. From the front, never takes what is not durable. Raises
        `KorvetError` OFFSET_OUT_OF_RANGE for a `start` past the end, or an `end` outside of the log.
        """

    async def drop(self, log: str) -> None:
        """Remove a log; a log of that name appended to later starts again at 0. Unknown names are no error."""

    async def load(self, key: str) -> bytes | None:
        """The value under a key, or None."""

    async def save(self, key: str, value: bytes | None, expected: bytes | None) -> bool:
        """Compare-and-set, durable when it returns True; False if the present value is not `expected`."""

    async def scan(self, prefix: str) -> dict[str, bytes]:
        """All keys that begin with `prefix`, in key order, with their values."""
