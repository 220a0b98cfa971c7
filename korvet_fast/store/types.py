"""The plain values of a store: its arguments, its results, and its errors (a leaf)."""

from asyncio import Future
from dataclasses import dataclass
from typing import Final, NamedTuple

from korvet_fast.errors import StoreError
from korvet_fast.types import Buffer

ENTRIES: Final = "entries"  # a layout: every record is an entry of its own
BATCHES: Final = "batches"  # a layout: record batches are kept whole, at offsets without gaps


class LogFormat(NamedTuple):
    """How a log is laid out. Fixed when the log is made, but for `compression`."""

    bits: int = 0  # an offset is (ms << bits) | sequence, where the store has ids of that kind; 0 where it has not
    entries_layout: bool = False  # layout `entries`; else `batches`
    # Layout `entries` only: the codec that a read compresses the records with; 0 to 4, as in a batch's attributes.
    compression: int = 0


WHOLE: Final = LogFormat()  # whole batches, dense offsets


class RecordBatch(NamedTuple):
    """One record batch to append: its bytes, already stamped, and the fields that a log needs of it.

    Offsets within a batch are consecutive. In the layout `entries`, `first` may lie above the end of the log.
    """

    data: Buffer
    first: int  # offset of its first record
    last: int  # offset of its last record
    timestamp: int  # the largest record time in it, in ms


@dataclass(slots=True)  # not a NamedTuple: each append reads its fields, and those of a tuple are slow to read
class Appending:
    """An append under way.

    Both futures end with None, a `StoreError` (the outcome may be unknown), or `OffsetConflict`. They may be one
    future; if not, `stored` ends first. `durable` never ends well where `stored` does not. They are shared between
    appends and refuse to be cancelled: a task that awaits one is cancelled only when it ends. Use `asyncio.shield`
    where that may take too long.
    """

    stored: "Future[None]"  # the store has it: it survives the end of this process
    durable: "Future[None]"  # done when the append survives as the store promises (embedded: a power failure)
    at_once: bool = False  # both have ended well already


class SegmentLimits(NamedTuple):
    """How large a segment of a log may get; an append that would pass either begins a new one.

    Segments are what `LogStore.apply_retention` takes away. An engine that keeps none may ignore it.
    """

    size: int  # bytes; one append is never divided, and may be larger
    span: int  # ms of record time, from the segment's first batch to the append's first


LARGE: Final = SegmentLimits(1 << 30, 7 * 24 * 3600 * 1000)


class ReadResult(NamedTuple):
    """The result of a read: whole batches in order, as they are at rest, and the offset after them."""

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
    lost: int = 0  # records below it were lost, and nobody was told before the log was acquired: the log was deleted


class LeadershipGrant(NamedTuple):
    """A log's state for the program that has just acquired the log."""

    bounds: Bounds  # the next append goes to `bounds.end` or above
    epoch: int  # larger than that of any program that had the log before; appends are fenced with it
    # The offset after the last record; below `bounds.end` where records were lost, or never were.
    last_record_end: int
    epochs: tuple[tuple[int, int], ...] = ()  # layout `entries` only: each epoch, with the first offset it could write


class OffsetConflict(Exception):
    """Another program was here: nothing of the append was stored. `end` is where the log ends, -1 if that is unknown.

    `fenced`: it has acquired the log, and this program has it no more. Otherwise it only added something: ask for the
    `bounds` and go on there. `given_up`: fenced because this program gave the log up to another one, which asked.
    """

    def __init__(self, end: int, fenced: bool = False, given_up: bool = False) -> None:
        super().__init__(end, fenced, given_up)
        self.end = end
        self.fenced = fenced
        self.given_up = given_up


class NotLeader(StoreError):
    """The log is not acquired: it has to be, before anything is appended."""


class CannotLead(StoreError):
    """This broker may not lead the log before an operator has done what the text says."""


@dataclass(slots=True)
class Spent:
    """Work of one kind since the store was opened: how often it was done, and the seconds that it took in all."""

    count: int = 0
    seconds: float = 0.0


class StoreTimes(NamedTuple):
    """What a store waits for; None: it never does."""

    flushes: Spent | None = None  # of logs to the disk; those that failed too
    round_trips: Spent | None = None  # to a server, with commands of which all are answered
    syncs: Spent | None = None  # until a server has on its disk, or on others, what it had answered; failures too


ABSENT: Final = None  # as `expected`: the key must not exist; as `value`: the key is deleted


class CompareAndSet(NamedTuple):
    """A key that is to be compared and set. `value` the same as `expected`: it is only compared."""

    key: str
    value: bytes | None
    expected: bytes | None
