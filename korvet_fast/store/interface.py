"""The store's interface, without Kafka's terms. Both engines implement it, and one contract suite tests them.

A *log* is a named sequence of record batches; each batch covers a range of offsets, and the ranges rise. A name is
`topic:partition` to core; here it is letters, digits, `.`, `_` and `-`, a colon, and a number. A *key* is a string
with a small value, compared and set whole.

A `Store` is a `LogStore` (nine verbs) and a `KeyStore` (three). What every request does, append and read, it does to
an `OpenedLog`. What only some engines can do is a protocol of its own, under an attribute that is None where the engine
lacks it: `shared` (`SharedStore`, six verbs), `producers` (`ProducerHeaders`, two), `groups` (`GroupOffsetMirror`, one)
and `plain_files` (`PlainFiles`, two). A `CopyStore` is a `Store` with three verbs more: `core.replication` asks for
one, because it cannot work over an engine without them.

All methods are called on one event loop. A method that has nothing to wait for completes without suspending.
Failures of disk or server raise `StoreError`; nothing may be reported as stored after one. What a log refuses raises
`KorvetError`, with the names of errors that all floors share.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from korvet_fast.store.types import (
    LARGE,
    Appending,
    Bounds,
    CompareAndSet,
    LeadershipGrant,
    LogFormat,
    ReadResult,
    RecordBatch,
    SegmentLimits,
    StoreTimes,
)


class Append(Protocol):
    """The verb of every produce."""

    def __call__(
        self,
        batches: Sequence[RecordBatch],
        at: int,
        sync: bool,
        copies: int = 1,
        segment_limits: SegmentLimits = LARGE,
    ) -> Appending:
        """Compare-and-append, all batches or none; the order of the calls is the order in the log.

        `at` must be the end of the log (a log that does not exist ends at 0), as the last append, `SharedStore.acquire`
        or `bounds` left it, else `OffsetConflict`. Raises `NotLeader` where the engine is shared and the log is not
        acquired. Returns before anything is awaited, so a caller's next append follows this one. `sync` asks that
        `durable` be reached soon; without it, `durable` ends together with `stored` and the data is flushed when the
        system pleases. `copies`: how many must have it before it is `durable`, the store's own included. `durable`
        covers the whole log, so an append of no batches with `sync` makes the present content durable. `segment_limits`
        holds for this append only. A log in the layout `entries` takes one batch at a time.
        """


class Read(Protocol):
    """The verb of every fetch."""

    async def __call__(self, start: int, max_bytes: int, limit: int, *, copy: bool = False) -> ReadResult:
        """Whole batches from the one that contains `start`, or the next one above, up to `limit` (an offset, excluded).

        About `max_bytes` at most, but always one whole batch if there is one. A log that does not exist reads empty.
        `next` is the offset after the last batch, or `start` if there was none. `copy`: the caller looks into the
        bytes, and may write over those that can be written to. Without it they may lie in a file that somebody else can
        cut short: then only the kernel may touch them.
        """


@dataclass(frozen=True, slots=True)
class OpenedLog:
    """One log. Its user looks the log up by name once, so that no request passes through the store."""

    append: Append
    read: Read


class LogStore(Protocol):
    """Logs: opening them, their bounds, deleting records.

    The two attributes may be read before the store is open.
    """

    layouts: tuple[str, ...]  # the layouts that the store can keep a log in, the default first
    syncs: bool  # whether appends that leave it to the store have `sync`

    def open_log(self, log: str) -> OpenedLog:
        """A log to append to and to read. It need not exist: the first append makes it. Opening it again is cheap.

        It holds until the log is dropped or forgotten (`close_idle`), or the store closed. From then on it reads empty
        or raises `StoreError`.
        """

    async def bounds(self, log: str) -> Bounds:
        """Where the log starts and ends at this moment. An unknown log is `Bounds(0, 0, 0, 0)`."""

    async def find_time(self, log: str, ms: int, start: int = 0) -> ReadResult:
        """The first batch that ends at or above offset `start` and whose largest time is `ms` or later.

        A result of one, or of none. Where the batch begins below `start`, the record of that time may lie below it
        too: then ask again with the result's `next`.
        """

    async def truncate(self, log: str, end: int) -> Bounds:
        """Remove the offsets from `end` on, which are given out again; the batch that holds `end` goes whole.

        Returns the new bounds. Raises `KorvetError` OFFSET_OUT_OF_RANGE for an `end` outside of the log, and
        INVALID_REQUEST where the engine never gives an offset out twice.
        """

    async def delete_records(self, log: str, start: int) -> Bounds:
        """Remove the offsets below `start`: they are gone at once, on a crash too. Returns the new bounds.

        Raises `KorvetError` OFFSET_OUT_OF_RANGE for a `start` past the end, and NOT_LEADER_OR_FOLLOWER for one that
        was not durable, if another program has the log.
        """

    async def apply_retention(
        self, log: str, *, older_than: int | None = None, larger_than: int | None = None
    ) -> Bounds:
        """Remove whole segments from the front, as large as the engine keeps them. Returns the new bounds.

        `older_than` (a time in ms): segments whose records are all older. `larger_than` (bytes): segments for as long
        as the rest of the log holds at least so many bytes. Records that are not durable are never removed.
        """

    async def close_idle(self, wanted: Callable[[str], bool] | None = None) -> None:
        """Close the logs that nobody used since the last call; the next use of a log opens it again.

        That frees memory, open files, and notes beside the records that are out of date; no log changes. `wanted`:
        whether the caller has a log of this name (None: it has all). One that is not wanted was dropped, or soon will
        be; if another program can do that, it is forgotten here once nothing of it is under way. Raises `StoreError`.
        """

    async def drop(self, log: str) -> None:
        """Remove a log; a log of that name appended to later starts again at 0. Unknown names are no error.

        The program that has acquired it is refused from now on.
        """

    def durability_error(self, log: str | None, sync: bool, copies: int) -> str | None:
        """Why the store cannot keep an append so at this moment, in a sentence for its operator, or None.

        `log` None: any log. `copies`: how many are asked for, the store's own included.
        """


class KeyStore(Protocol):
    """Keys with small values, compared and set whole."""

    async def load(self, key: str) -> bytes | None:
        """The value under a key, or None."""

    async def save(self, key: str, value: bytes | None, expected: bytes | None, *others: CompareAndSet) -> bool:
        """Compare-and-set, durable when it returns True; False if the present value is not `expected`.

        `others` are set with it, or nothing is; what their keys begin with, up to the first "/", is the same.
        """

    async def scan(self, prefix: str) -> dict[str, bytes]:
        """All keys that begin with `prefix`, in key order, with their values. `prefix` has a "/" in it."""


class Processes(Protocol):
    """For an engine whose programs run under one kernel: it knows which of them have ended, however they did."""

    @property
    def own(self) -> str:
        """A name that only this process has."""

    def has_ended(self, name: str) -> bool:
        """Whether the process with this name has certainly ended; one that stands still has not."""


class SharedStore(Protocol):
    """The methods that an engine adds if several programs use it at a time.

    A program acquires a log before it appends to it; the program that had it before is refused from then on.
    """

    @property
    def processes(self) -> Processes | None:
        """None: only silence tells that another program is gone."""

    def declare(self, log: str, log_format: LogFormat) -> None:
        """Say how a log is laid out: before it is read without being acquired, and when its compression changes."""

    async def acquire(
        self, log: str, log_format: LogFormat, *, epoch: int, floor: int, durable: int = 0
    ) -> LeadershipGrant:
        """Take a log over: former acquirers, this program included, are refused from now on.

        The epoch will be `epoch` at least, the next offset `floor` at least. Earlier appends of this program are either
        in the log now, or will never be. `durable`: records below it are known to be durable. Where no record is left
        below `floor`, the log starts at `floor` from then on, and the offsets below count as removed.
        """

    async def is_leader(self, log: str) -> bool:
        """Whether the store says at this moment that nobody acquired the log since this program did."""

    def notify(
        self, log: str, end: int, on_append: Callable[[], None], wanted: Callable[[], bool] | None = None
    ) -> Callable[[], None]:
        """Call `on_append` once, as soon as another program has put something at or above `end`; the result ends it.

        `wanted` is asked now and then: if it says no, `on_append` is called as well, and then never again.
        """

    def on_data_loss(self, lost: Callable[[str], None]) -> None:
        """`lost` is told, in a sentence, that records stored before may be gone: the server's history broke.

        By then every append under way has ended with `StoreError`, and no log is acquired.
        """

    async def version(self, prefix: str) -> int:
        """A number that is another one after any key that begins with `prefix` was set, by whatever program.

        `prefix` ends with its first "/".
        """


class ProducerHeaders(Protocol):
    """For an engine that takes batches apart: it keeps their headers, by which a repeated batch is recognised."""

    def recent_headers(self, log: str) -> bytes:
        """The headers (61 bytes) of the last 5 batches of each idempotent producer, offsets rising.

        Those that `SharedStore.acquire` found, and those appended since. Layout `entries` only.
        """

    def forget_producer(self, log: str, producer: int) -> None:
        """Keep the headers of a producer no longer: here they go at once, in the store some time later."""


class GroupOffsetMirror(Protocol):
    """For an engine whose own tools show how far consumers have come: it tells them committed offsets."""

    def mirror_offset(self, log: str, group: str, offset: int | None) -> None:
        """A group of consumers has read below `offset`; None: it reads the log no more.

        Shown soon. Nothing is promised, and nothing ever read back.
        """


class PlainFiles(Protocol):
    """For an engine with a directory that people look into: small files of core's, each whole or not there."""

    async def read(self, name: str) -> bytes | None:
        """The file's content; None if there is no file. Raises `StoreError`."""

    async def write(self, name: str, data: bytes) -> None:
        """Replace the file's content, durably on return; one write of a name at a time.

        After a crash or a `StoreError` the file holds either the former content or this.
        """


class Store(LogStore, KeyStore, Protocol):
    """An engine: logs, keys, capabilities that not all have. Only attributes and times may be read before `open`."""

    @property
    def shared(self) -> SharedStore | None:
        """None: one program at a time can open it, and nothing happens behind its back."""

    @property
    def producers(self) -> ProducerHeaders | None:
        """None: batches are kept whole, and tell of their producers themselves."""

    @property
    def groups(self) -> GroupOffsetMirror | None:
        """None: nobody else looks into the store."""

    @property
    def plain_files(self) -> PlainFiles | None:
        """None: the engine has no directory, or several programs work on its files."""

    async def open(self) -> None:
        """Make ready: recover from a crash. Raises `StoreError` if the store cannot be used."""

    async def close(self) -> None:
        """Flush everything, mark the shutdown as clean, let go of the store."""

    def read_times(self) -> StoreTimes:
        """What it has waited for since it was opened. May be asked before `open` and after `close` too."""


class CopyStore(Store, Protocol):
    """An engine whose logs can be copies of logs elsewhere: they begin where those do (`core.replication`)."""

    async def restart(self, log: str, start: int) -> None:
        """Remove all records of the log; the next append goes to `start`. Raises `StoreError`.

        A crash in between may leave no log of that name.
        """

    async def set_aside(self, log: str) -> str:
        """Take a log out of the store, but keep its records; returns where a person finds them. Raises `StoreError`.

        From then on there is no log of that name, as after `drop`. Returns "" where there was none.
        """

    async def apply_retention_below(
        self, log: str, below: int | None, *, older_than: int | None = None, larger_than: int | None = None
    ) -> Bounds:
        """As `LogStore.apply_retention`, but only segments that end at `below` (an offset) or before it are removed."""
