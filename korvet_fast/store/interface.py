"""What a store is: nine verbs over logs and keys, with no Kafka in them. Both engines, one contract suite.

A *log* is a named sequence of record batches; each batch covers a range of offsets, and the ranges rise. A name is
`topic:partition` to core; here it is letters, digits, `.`, `_` and `-`, a colon, and a number. A *key* is a string
with a small value, compared and set whole.

A program takes a log over (`attach`) before it appends to it; who had it before is refused from then on.

All methods are called on one event loop. A method that has nothing to wait for completes without suspending.
Failures of disk or server raise `StoreError`; nothing may be reported as stored after one.
"""

from asyncio import Future
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

from korvet_fast.core.types import Buffer
from korvet_fast.errors import StoreError

ENTRIES: Final = "entries"  # a layout: every record is an entry of its own
BATCHES: Final = "batches"  # a layout: record batches are kept whole, at offsets without gaps


class Form(NamedTuple):
    """How a log is laid out. Fixed when the log is made, but for `compression`."""

    bits: int = 0  # an offset is (ms << bits) | sequence, where the store has ids of that kind; 0 where it has not
    single: bool = False  # layout `entries`; else `batches`
    compression: int = 0  # `single` only: the codec (0 to 4, as in a batch's attributes) a read packs the records in


WHOLE: Final = Form()  # whole batches, dense offsets


class Entry(NamedTuple):
    """One record batch on its way in: its bytes, already stamped, and what a log must know of it.

    Offsets within a batch are consecutive. `first` may lie above the end of the log where gaps are legal (`single`).
    """

    data: Buffer
    first: int  # offset of its first record
    last: int  # offset of its last record
    timestamp: int  # the largest record time in it, in ms


class Appending(NamedTuple):
    """An append under way. Both futures end with None, a `StoreError` (the outcome may be unknown), or `Stale`.

    `stored` ends first, and `durable` never ends well where it does not. They are shared between appends and refuse to
    be cancelled: a task that awaits one is cancelled only when it ends. Use `asyncio.shield` where that may take too
    long.
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
    """`start` <= offsets held < `end`; those below `durable` are durable.

    Not every offset in between needs to exist. Records below `removed` were there once, and were taken away; from there
    to `start` nothing ever was.
    """

    start: int
    end: int
    durable: int
    size: int  # bytes at rest
    latest: int = -1  # the largest record time at rest, in ms; may be that of a record just below `start`
    removed: int = 0


class Attached(NamedTuple):
    """What a log looks like to the program that has just taken it over."""

    bounds: Bounds  # the next append goes to `bounds.end` or above
    epoch: int  # larger than that of any program that had the log before; appends are fenced with it
    top: int  # the offset after the last record really there; below `bounds.end` where records were lost, or never were
    headers: bytes  # `single` only: heads (61 bytes) of the last 5 batches of each idempotent producer, offsets rising
    epochs: tuple[
        tuple[int, int], ...
    ] = ()  # `single` only: each epoch of the log, with the first offset it could write


class Stale(Exception):
    """Another program was here: nothing of the append was stored. `end` is where the log ends, -1 if that is unknown.

    `fenced`: it has taken the log over, and this program is not attached any more. Otherwise it only added something:
    ask for the `bounds` and go on there.
    """

    def __init__(self, end: int, fenced: bool = False) -> None:
        super().__init__(end, fenced)
        self.end = end
        self.fenced = fenced


class Detached(StoreError):
    """The log is not attached: it has to be, before anything is appended."""


ABSENT: Final = None  # as `expected`: the key must not exist; as `value`: the key is deleted


class Change(NamedTuple):
    """A key that is to be compared and set. `value` the same as `expected`: it is only compared."""

    key: str
    value: bytes | None
    expected: bytes | None


class Store(Protocol):
    """The nine verbs, and what a program does to own a log. `open` and `close` frame them.

    The attributes hold from the beginning; nothing else may be called outside of `open` and `close`.
    """

    layouts: tuple[str, ...]  # those it can keep a log in, the default first
    shared: bool  # several programs may work on it at a time
    syncs: bool  # without being told otherwise, it stores with `sync`

    def listen(self, forked: Callable[[str], None]) -> None:
        """`forked` is told, in a sentence, that records stored before may be gone: the server's history broke.

        By then every append under way has ended with `StoreError`, and no log is attached.
        """

    def declare(self, log: str, form: Form) -> None:
        """How a log is laid out, for those who do not attach it, and anew when its compression changes."""

    async def attach(self, log: str, form: Form, *, epoch: int, floor: int) -> Attached:
        """Take a log over: whoever attached it before, this program included, is refused from now on.

        The epoch will be `epoch` at least, the next offset `floor` at least. What this program appended before is
        either in the log now, or will never be.
        """

    def follow(self, log: str, end: int, grown: Callable[[], None]) -> Callable[[], None]:
        """Call `grown` once, as soon as another program has put something at or above `end`; the result ends it."""

    def refusal(self, log: str | None, sync: bool, copies: int) -> str | None:
        """Why the store cannot keep what is appended so at this moment, in a sentence for its operator, or None.

        `log` None: whichever. `copies`: how many are asked for, the store's own included.
        """

    async def changed(self, prefix: str) -> int:
        """A number that is another one after any key that begins with `prefix` was set, by whatever program.

        `prefix` ends with its first "/".
        """

    async def open(self) -> None:
        """Make ready: recover what a crash left. Raises `StoreError` if the store cannot be used."""

    async def close(self) -> None:
        """Flush everything, mark the shutdown as clean, let go of the store."""

    def append(
        self, log: str, entries: Sequence[Entry], at: int, *, sync: bool, copies: int = 1, piece: Piece = LARGE
    ) -> Appending:
        """Compare-and-append, all entries or none; order of calls is order in the log. Raises `Detached`.

        `at` must be the end of the log (a log that does not exist ends at 0), as the last append, `attach` or `bounds`
        left it, else `Stale`. Returns before anything is awaited, so a caller's next append follows this one. `sync`
        asks that `durable` be reached soon; without it, `durable` ends together with `stored` and the data is flushed
        when the system pleases. `copies`: how many must have it before it is `durable`, the store's own included.
        `durable` covers the whole log, so no entries with `sync` make durable what is there already. `piece` holds for
        this append, whatever earlier ones were told. A log that is `single` takes one entry at a time.
        """

    async def read(self, log: str, start: int, max_bytes: int, limit: int) -> Page:
        """Whole batches from the one that contains `start`, or the next one above, up to `limit` (an offset, excluded).

        About `max_bytes` at most, but always one whole batch if there is one. An unknown log reads empty.
        `next` is the offset after the last batch, or `start` if there was none.
        """

    async def bounds(self, log: str) -> Bounds:
        """Where the log starts and ends at this moment. An unknown log is `Bounds(0, 0, 0, 0)`."""

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
        """Remove a log; a log of that name appended to later starts again at 0. Unknown names are no error.

        Whoever has it attached is refused from now on.
        """

    def show(self, log: str, group: str, offset: int | None) -> None:
        """Where the store has tools of its own, let them see, soon, that a group of consumers has read below `offset`.

        None: it reads the log no more. Nothing is promised, and nothing ever read back.
        """

    async def load(self, key: str) -> bytes | None:
        """The value under a key, or None."""

    async def save(self, key: str, value: bytes | None, expected: bytes | None, *others: Change) -> bool:
        """Compare-and-set, durable when it returns True; False if the present value is not `expected`.

        `others` are set with it, or nothing is; what their keys begin with, up to the first "/", is the same.
        """

    async def scan(self, prefix: str) -> dict[str, bytes]:
        """All keys that begin with `prefix`, in key order, with their values. `prefix` has a "/" in it."""
