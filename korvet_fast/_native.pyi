"""
The native contract: bytes in, bytes and numbers out, one call per batch or more.

Every failure raises `korvet_fast.errors.CodecError(code, message)`; the codes are listed in rust/codec/src/error.rs.
A wrong type of argument is a `TypeError`. Buffers may be any object with the buffer protocol, C-contiguous, and must
not be written to during the call.
"""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, SupportsIndex, final

from _typeshed import SupportsGetItem
from typing_extensions import Buffer, CapsuleType

__all__ = [
    "ArrowColumns",
    "ArrowRecords",
    "Batch",
    "Column",
    "ColumnRows",
    "FileMapping",
    "Flusher",
    "Frames",
    "Lines",
    "MessageCells",
    "ProduceRun",
    "Replies",
    "ReplyError",
    "RowRun",
    "Schema",
    "allocate_small_objects",
    "assign_offsets",
    "batch_headers",
    "build_batch",
    "build_rows",
    "decode_batches",
    "decode_records",
    "down_convert",
    "encode_append",
    "encode_append_batches",
    "encode_command_parts",
    "encode_commands",
    "find_time",
    "give_back_small_objects",
    "match_names",
    "parse_replies",
    "parse_reply",
    "recompress",
    "reserve",
    "row_places",
    "slice_batches",
    "to_arrow",
    "to_columns",
    "to_messages",
    "to_values",
    "up_convert",
    "validate_batch",
    "whole_messages",
    "write_messages",
]

@final
class ArrowColumns:
    """
    Records as one Arrow struct array, one field for each column. `pyarrow.record_batch(columns)` takes it without a
    copy; the memory is freed when neither the columns nor anything made of them is used any more.
    """
    def __arrow_c_array__(self, /, requested_schema: Any | None = None) -> tuple[CapsuleType, CapsuleType]:
        """The capsules (`arrow_schema`, `arrow_array`) of Arrow's `PyCapsule` interface; no other schema can be had."""
    def __len__(self, /) -> int:
        """Rows."""
    @property
    def nbytes(self, /) -> int:
        """Bytes of all Arrow buffers."""
    @property
    def next(self, /) -> int:
        """The offset where reading goes on: behind the last batch that was used or skipped, at most `end`."""
    @property
    def whole(self, /) -> bool:
        """False: there is another whole batch in the data; call again on the same data with `start` = `next`."""

@final
class ArrowRecords:
    """
    Records as one Arrow record batch, read in place: anything with `__arrow_c_array__`, as a `pyarrow.RecordBatch`.

    Columns by name: value (needed), key, topic, partition, headers; others are not looked at. value and key are string or
    binary, topic is string, partition int32, headers list<struct<key: string, value: binary or string>>, strings and lists
    with offsets of 32 or 64 bits, nothing dictionary-encoded.
    """
    def __new__(cls, /, batch: Any, topic: str | None) -> ArrowRecords:
        """
        `topic`: where all rows go; None: to the topic in the column of that name.

        Raises `BAD_COLUMNS` for a column that is missing or of another type, and for a topic that is null, naming the row.
        """
    def batches(
        self,
        /,
        sequences: Mapping[str, Sequence[int]],
        keyless: SupportsIndex,
        compression: SupportsIndex,
        max_bytes: SupportsIndex,
        max_record: SupportsIndex,
        producer_id: SupportsIndex,
        producer_epoch: SupportsIndex,
        now: SupportsIndex,
    ) -> list[tuple[str, int, int, bytearray]]:
        """
        (topic, partition, records, version 2 batch): full batches as they fill, then the rest by topic and partition. Rows of
        a partition keep their order.

        `sequences`: topic -> the next sequence number of each partition, so many partitions it has. A row goes to the
        partition its column `partition` names, else to Kafka's choice for its key; rows without key to partition `keyless`
        (modulo the number of partitions), and from there to the next one each time a batch is full. A batch holds at most
        `max_bytes` of records before compression, one record at least; `max_record` bounds a record. All have the time `now`,
        in ms. `producer_id` and `producer_epoch` -1: no idempotent producer, and no sequence numbers in the batches.

        Raises `UNKNOWN_COMPRESSION`, `BAD_VALUE` (`sequences` without one of the topics, or without partitions), and naming the
        row `BAD_COLUMNS` (a partition that there is not, a header that is null or has no key) and `OVERSIZE`.
        """
    def topics(self, /) -> list[str]:
        """The distinct topics, in order of first use."""

@final
class Batch:
    """One version 2 batch's header, and where it lies in the data it was found in."""
    @property
    def attributes(self, /) -> int:
        """All flags, as written."""
    @property
    def base_offset(self, /) -> int:
        """Offset of the first record."""
    @property
    def base_sequence(self, /) -> int:
        """Its sequence number for the first record, or -1."""
    @property
    def compression(self, /) -> int:
        """0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."""
    @property
    def control(self, /) -> bool:
        """Holds a broker's markers, not records."""
    @property
    def count(self, /) -> int:
        """How many records."""
    @property
    def first_timestamp(self, /) -> int:
        """Time of the first record, in ms."""
    @property
    def last_offset(self, /) -> int:
        """Offset of the last record."""
    @property
    def leader_epoch(self, /) -> int:
        """Epoch of the leader that stored it, or -1."""
    @property
    def log_append_time(self, /) -> bool:
        """All records have the time of append."""
    @property
    def max_timestamp(self, /) -> int:
        """Largest time, in ms, as written in the header (`validate_batch` computes it from the records)."""
    @property
    def producer_epoch(self, /) -> int:
        """Its epoch, or -1."""
    @property
    def producer_id(self, /) -> int:
        """The idempotent producer, or -1."""
    @property
    def producer_sequence(self, /) -> tuple[int, int, int, int] | None:
        """(producer id, its epoch, its sequence number for the first record, how many records); None for no producer."""
    @property
    def size(self, /) -> int:
        """Bytes, header included."""
    @property
    def start(self, /) -> int:
        """Position in the data given."""
    @property
    def transactional(self, /) -> bool:
        """Part of a transaction."""

@final
class Column:
    """A buffer of numbers or bytes, readable by `NumPy` and Arrow without a copy (format `q`, `i` or `B`)."""
    def __buffer__(self, flags: SupportsIndex, /) -> memoryview:
        """A read-only view, for those who ask by method (PEP 688)."""
    def __len__(self, /) -> int:
        """How many numbers, or bytes."""

@final
class ColumnRows:
    """
    A producer's column of values, with one of keys or None: each a list of bytes and None (views of bytes are copied), or
    an Arrow array of binary. They are read in place, and must not be written to while the rows are used.
    """
    def __len__(self, /) -> int:
        """How many rows."""
    def __new__(cls, /, keys: Any | None, values: Any) -> ColumnRows:
        """
        Raises `TypeError` naming the row for anything but bytes, `BAD_COLUMNS` for an array of another type, and
        `BAD_VALUE` for columns of different lengths.
        """
    def choose(self, /, partitions: SupportsIndex) -> Column:
        """
        The partition of each row's key, out of `partitions`, as Java's client chooses it (murmur2); -1 for a null key.
        Raises `BAD_VALUE` for no partitions.
        """
    def runs(self, /, chosen: Buffer | None, most_bytes: SupportsIndex, most_rows: SupportsIndex) -> list[RowRun]:
        """
        Runs of rows for one partition each, at most `most_bytes` and `most_rows` of them, one row at least: full ones as
        they fill, then the rest by their first row. `chosen`: i[n], the partition of each row; None: -1 for all.

        Raises `BAD_COLUMNS` if `chosen` is not one number for each row.
        """

@final
class FileMapping:
    """
    A stretch of a file, mapped for reading; it may reach beyond the file's end, for what is yet to be written.

    The stretch is unmapped when its last view has gone; the file may be closed, renamed and removed before.
    """
    def __new__(cls, /, fd: SupportsIndex, position: SupportsIndex, size: SupportsIndex) -> FileMapping:
        """
        `size` bytes from `position` on, a multiple of the page size, of the open file `fd`.

        Raises `MemoryError` if the process may not map as much, `OSError` for what else the kernel says.
        """
    def cached(self, /, start: SupportsIndex, end: SupportsIndex) -> memoryview | None:
        """
        A view of bytes `start` to `end`, counted from the mapping's start; None if not all of them are in the page cache.

        Reading these bytes does not wait, unless memory becomes so short meanwhile that they are dropped. Bytes
        beyond the file's end are not there. `BAD_VALUE` for bytes outside of the mapping; raises `OSError`.
        """

@final
class Flusher:
    """Flushes files to the disk on threads of its own, which never take the interpreter's lock."""
    def __new__(cls, /, threads: SupportsIndex) -> Flusher:
        """At most `threads` logs are flushed side by side. The first thread begins at once. Raises `OSError` if it cannot."""
    def close(self, /) -> None:
        """Wait until everything given is done, and end the threads; `take` gives the last results."""
    def fileno(self, /) -> int:
        """A file descriptor that is readable when `take` has something to give; it stays this object's."""
    def flush(
        self,
        /,
        log: SupportsIndex,
        ticket: SupportsIndex,
        files: SupportsGetItem[int, str | PathLike[str]],
        directories: SupportsGetItem[int, str | PathLike[str]],
    ) -> None:
        """
        Make durable: the data of files, in order, and then the entries of directories.

        Jobs of one `log`, a number of the caller's, are done in the order given; what has gathered while one is under way
        is one flush. `ticket` comes back with the result.
        """
    def spent(self, /) -> tuple[int, float]:
        """(how many flushes ended so far, the seconds that the disk took for them); jobs done together are one flush."""
    def take(self, /) -> list[tuple[int, str | None]]:
        """(ticket, None or why it failed) of what was done since this was last asked."""

@final
class Frames:
    """
    Cuts a byte stream into frames: a signed 32-bit big-endian length, then that many bytes.

    Keeps the unfinished remainder. Memory grows as bytes arrive, never from the announced length alone: at most
    max(64 KiB, 2 x received) is reserved. One copy per frame, and of a large one only of what came first: the rest may be
    read into its place (`rest`).
    """
    def __new__(cls, /, limit: SupportsIndex) -> Frames:
        """Frames of at most `limit` bytes each."""
    def advance(self, /, count: SupportsIndex) -> bytearray | None:
        """So many bytes were put into what `rest` gave: the frame, if it is whole now. `BAD_VALUE` for more than fit."""
    @property
    def announced(self, /) -> int:
        """Length of the unfinished frame as its prefix announced it; 0 while that is not known."""
    def feed(self, /, data: Buffer, most: SupportsIndex = ...) -> list[bytearray]:
        """
        The frames that `data` completes, without their length prefix: the first `most` of them, if that is given.

        Bytes behind these frames are kept, and cut when `feed` is called again; `data` may be empty then.
        `NEGATIVE_LENGTH`, `OVERSIZE` (length > limit): the object is then dead and raises the same again; frames that
        the same data completed before are lost with it.
        """
    @property
    def limit(self, /) -> int:
        """Largest legal length in bytes. May be changed at any time; holds from the next length prefix on."""
    @limit.setter
    def limit(self, /, limit: SupportsIndex) -> None: ...
    @property
    def pending(self, /) -> int:
        """Bytes held now, length prefixes included: of the unfinished frame, and of frames beyond `most`."""
    def rest(self, /) -> memoryview | None:
        """
        Where to put the bytes that come next, 64 KiB or more of the unfinished frame; None where `feed` is to have them.

        `advance` tells how many bytes were put there, before any other call. The view must be gone before `rest` again.
        """

@final
class Lines:
    """
    Cuts a byte stream into lines without their ends (`\\n` or `\\r\\n`), and PRODUCE lines that follow each other into runs.

    A run is given as one piece, with the ends of its lines, 64 KiB at most unless one line is longer; `ProduceRun` reads
    it. A line of more than `limit` bytes is given as a piece that is one line end, and nothing comes after it.
    """
    def __new__(cls, /, limit: SupportsIndex) -> Lines:
        """Lines of at most `limit` bytes each, their ends not counted."""
    def advance(self, /, count: SupportsIndex) -> bytearray | None:
        """There is no place that bytes could have been put into: always `BAD_VALUE`."""
    @property
    def announced(self, /) -> int:
        """Always 0: how long a line will be is not known before its end is there."""
    def feed(self, /, data: Buffer, most: SupportsIndex = ...) -> list[bytearray]:
        """The lines and runs that `data` completes, `most` of them; what is behind them is kept for the next call."""
    @property
    def pending(self, /) -> int:
        """Bytes held now."""
    def rest(self, /) -> memoryview | None:
        """Always None: all bytes go through `feed`."""

@final
class MessageCells:
    """
    Keys, values, headers and times of a run of messages, while more may join.

    `room`: bytes of memory that are left for them; `most`: messages there may be.
    """
    def __len__(self, /) -> int:
        """How many messages."""
    def __new__(
        cls, /, value: Any, key: Any, headers: Any, header_bytes: SupportsIndex, timestamp: SupportsIndex | None
    ) -> MessageCells:
        """
        A run of one message, without room for others. `header_bytes`, `timestamp`: as in `add`.

        Raises `TypeError` for a value or key that is neither bytes nor None.
        """
    def add(
        self,
        /,
        value: Any,
        key: Any,
        headers: Any,
        header_bytes: SupportsIndex = 0,
        timestamp: SupportsIndex | None = None,
    ) -> int:
        """
        Take one more message; its index, or -1 without room for it, and for a value or key that is neither bytes nor None.

        `header_bytes`: what its headers take in a batch. `timestamp`: in ms; None: the present.
        """
    def build(
        self,
        /,
        compression: SupportsIndex,
        producer_id: SupportsIndex,
        producer_epoch: SupportsIndex,
        base_sequence: SupportsIndex,
    ) -> bytes | memoryview | None:
        """
        The messages as one version 2 batch: as `RowRun.build`, each with its time. None: some of them have headers.

        Raises as `build_rows`.
        """
    def columns(self, /) -> ColumnRows:
        """Keys and values."""
    def forget(self, /) -> None:
        """Drop keys, values and headers; the times stay. Nothing but these may be asked for any more."""
    def grant(self, /, room: SupportsIndex, most: SupportsIndex) -> None:
        """There is memory for `room` bytes more, and for `most` messages in all."""
    def headers(self, /) -> list[Any]:
        """The headers of each message, () for none."""
    def join(self, /, place: type, run: Any, value: Any, key: Any) -> Any | None:
        """
        As `add`, for a message without headers that is sent now: `place(run, index)`, or None where `add` gives -1.

        The garbage collector does not look at the places: of thousands in a list it would find each time that they refer
        to their run. So a run must not refer to one of its places for longer than somebody waits there.
        """
    def key(self, /, place: SupportsIndex) -> bytes | None:
        """The key of the message at a place."""
    def keys(self, /) -> list[bytes | None]:
        """The key of each message."""
    @property
    def most(self, /) -> int: ...
    @most.setter
    def most(self, /, value: SupportsIndex) -> None: ...
    def part(self, /, places: SupportsGetItem[int, SupportsIndex]) -> MessageCells:
        """The messages at these places as a run of their own, without room for others."""
    @staticmethod
    def place(place: type, run: Any, index: SupportsIndex) -> Any:
        """`place(run, index)` for a message that is there, as `join` makes it."""
    def remove(self, /, place: SupportsIndex) -> None:
        """The message at a place leaves the run."""
    @property
    def room(self, /) -> int: ...
    @room.setter
    def room(self, /, value: SupportsIndex) -> None: ...
    def set_times(self, /, timestamp: SupportsIndex) -> None:
        """All messages have this time."""
    @property
    def size(self, /) -> int:
        """Bytes of their records in a batch, at most."""
    def time(self, /, place: SupportsIndex) -> int:
        """The time of the message at a place, in ms."""
    def times(self, /) -> Column:
        """All times, q[n]."""
    def values(self, /) -> list[bytes | None]:
        """The value of each message."""

@final
class ProduceRun:
    """A run of PRODUCE lines, as `Lines` gives it: read, made into batches, answered."""
    def __new__(cls, /, data: Buffer) -> ProduceRun:
        """Read the lines of `data`. What is wrong with one of them is told in its answer."""
    @property
    def all(self, /) -> bool:
        """Whether the lines ask for acks=all: all of them do, or none."""
    def answer(
        self,
        /,
        outcomes: SupportsGetItem[int, tuple[str, SupportsIndex, SupportsIndex]],
        refused: SupportsGetItem[int, str],
    ) -> bytes:
        """
        The answers to all lines, in their order, each with its end.

        `outcomes`: of each batch (an error as `CODE|message`, or nothing; its first offset; the high watermark).
        `refused`: of each topic without partitions an error likewise.
        """
    def build(
        self, /, plans: SupportsGetItem[int, tuple[SupportsIndex, SupportsIndex, SupportsIndex]], now: SupportsIndex
    ) -> tuple[list[tuple[int, int, bytearray]], list[int]]:
        """
        Make the records into sealed batches with base offset 0, all of the time `now` in ms, each as (number of its topic
        in `topics`, partition, batch); and the second number of each topic after it.

        `plans`: of each topic (how many partitions, 0: no records of it; the turn of the next record without a key; bytes
        that a batch of several records may have). A key chooses FNV-1a of 32 bits modulo partitions.
        """
    @property
    def topics(self, /) -> list[str]:
        """The topics that lines name, in the order of their first lines; legal names all."""

@final
class Replies:
    """RESP2 and RESP3 replies out of a byte stream, parsed or (`raw`) as they came."""
    def __new__(cls, /, limit: SupportsIndex, raw: bool = False) -> Replies:
        """Replies of at most `limit` bytes each."""
    def feed(self, /, data: Buffer) -> list[Any]:
        """
        The replies that `data` completes; if they are `raw`, a bytearray for each, or for each group.

        Simple string -> str, bulk and verbatim string -> bytes, integer and big number -> int, array, set and push ->
        list, map -> list of keys and values in turn (as RESP2 gives it), null -> None, double -> float, boolean -> bool,
        error -> `ReplyError`, not raised; an attribute is left out. Nested to 8 levels. `BAD_RESP`, `OVERSIZE` (a reply
        above the limit), `raw` or not: the object is then dead and raises the same again. A raw reply that is whole in
        `data` is copied once; nothing is looked at twice however it is cut.
        """
    def join(self, /, count: SupportsIndex) -> None:
        """
        The next `count` replies, after those joined before, come out of `feed` as one buffer, one behind the other.

        A reply that is not joined is a buffer of its own. `BAD_VALUE` for a count of 0, and where replies are parsed.
        """
    @property
    def pending(self, /) -> int:
        """Bytes held of what is unfinished: of a reply, or (`raw`) of a group."""

@final
class ReplyError:
    """An error reply of Redis. `message` begins with a word for programs, as `WRONGTYPE`."""
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __new__(cls, /, message: str) -> ReplyError:
        """An error reply of this text."""
    def __repr__(self, /) -> str:
        """As it would be written in Python."""
    @property
    def message(self, /) -> str:
        """The whole text."""

@final
class RowRun:
    """Rows of a `ColumnRows` that go to one partition, in order."""
    def __len__(self, /) -> int:
        """How many rows."""
    def build(
        self,
        /,
        timestamp: SupportsIndex,
        compression: SupportsIndex,
        producer_id: SupportsIndex,
        producer_epoch: SupportsIndex,
        base_sequence: SupportsIndex,
    ) -> bytes | memoryview:
        """
        One version 2 batch of them, all with the time `timestamp` in ms. The checksum is set, the leader epoch is -1. -1
        for producer id, epoch and sequence if there is no idempotent producer. `compression`: 16 more say that the batch is
        part of a transaction.

        Raises `BAD_COUNT` for no rows, `UNKNOWN_COMPRESSION`, and `OVERSIZE` beyond 2 GiB.
        """
    def halves(self, /) -> tuple[RowRun, RowRun]:
        """The first and the second half."""
    def keys(self, /) -> list[bytes | None]:
        """Their keys; None for a null, and for all without a column of keys."""
    @property
    def partition(self, /) -> int:
        """Where they go; -1: nobody chose."""
    def rows(self, /) -> list[int]:
        """The numbers of the rows."""
    @property
    def size(self, /) -> int:
        """Bytes of their records in a batch, at most."""
    def values(self, /) -> list[bytes | None]:
        """Their values."""

@final
class Schema:
    """
    A message shape, compiled once from a table of fields.

    A row is a tuple `(name, kind, since, until, nullable, default, tag, fields)`; shapes/field.py says what each means.
    A missing or absent value is the row's default; `...` as default is the kind's zero.
    """
    def __new__(
        cls,
        /,
        name: str,
        fields: SupportsGetItem[int, tuple[Any, ...]],
        lowest: SupportsIndex,
        highest: SupportsIndex,
        flexible: SupportsIndex,
    ) -> Schema:
        """Compile `fields` for the versions `lowest` to `highest`, flexible (KIP-482) from `flexible` on. `BAD_SCHEMA`."""
    def decode(self, /, data: Buffer, version: SupportsIndex, limit: SupportsIndex) -> dict[str, Any]:
        """
        The values of a message: every field of the table, whatever the version.

        `limit`: array elements and unknown tagged fields in all, which bounds memory. All of the data must be used.
        Records are views of the data. Unknown tagged fields are kept as `values["_tagged"] = {tag: bytes}`.

        `UNSUPPORTED_VERSION`, `TRUNCATED`, `TRAILING_BYTES`, `NEGATIVE_LENGTH`, `VARINT_OVERFLOW`, `BAD_UTF8`,
        `UNEXPECTED_NULL`, `COUNT_EXCEEDS_INPUT`, `TOO_MANY_ELEMENTS`, `DUPLICATE_TAG`, `OVERSIZE` (a string beyond
        32,767 bytes).
        """
    def encode(self, /, values: Mapping[str, Any], version: SupportsIndex) -> bytes:
        """
        The bytes of a message. What is missing in `values` becomes its default; tagged fields that equal it are left out;
        fields of other versions are left out. A struct within it may be a tuple: its first fields, in the table's order.

        `UNSUPPORTED_VERSION`; `BAD_VALUE` with the path of the field, also for a key that no version has.
        """
    def frame(self, /, values: Mapping[str, Any], version: SupportsIndex) -> list[Any]:
        """
        As `encode`, behind a 32-bit length, and cut in parts: records of 4 KiB and more are the very objects given.
        `OUT_OF_RANGE` above 2 GiB.
        """
    @property
    def name(self, /) -> str:
        """The name that the schema was made with; begins every error message."""

def allocate_small_objects() -> bool:
    """
    Allocate the interpreter's objects of up to 512 bytes from pools that `give_back_small_objects` can give back.

    False, and nothing changes, if somebody chose another allocator than the interpreter's (PYTHONMALLOC, tracemalloc),
    if this process may not take 16 GiB of addresses (`ulimit -v`), or if the system's pages are larger than 16 KiB.
    """

def assign_offsets(
    batch: Buffer,
    base_offset: SupportsIndex,
    leader_epoch: SupportsIndex,
    max_timestamp: SupportsIndex | None,
    log_append_time: SupportsIndex | None,
) -> None:
    """
    Write the base offset and the leader epoch into one whole batch, in place. The checksum does not cover them.

    `max_timestamp` corrects the one in the header; `log_append_time` sets the timestamp type and the largest timestamp,
    and wins over `max_timestamp`; both in ms. The checksum is computed again only if one of the two changed anything.
    Raises `BAD_VALUE` for a read-only buffer, `BAD_OFFSET` if the last offset would not fit 64 bits, and `TRUNCATED`,
    `BAD_MAGIC`, `BAD_LENGTH`, `TRAILING_BYTES` if this is not exactly one batch.
    """

def batch_headers(data: Buffer, verify: bool) -> list[Batch]:
    """
    The headers of the whole version 2 batches at the front of `data`.

    Stops without an error at the first batch that is incomplete, is no version 2 batch, or (`verify`) fails its
    checksum or has an offset that is not above the one before.
    """

def build_batch(
    columns: Mapping[str, Buffer],
    compression: SupportsIndex,
    base_offset: SupportsIndex,
    producer_id: SupportsIndex,
    producer_epoch: SupportsIndex,
    base_sequence: SupportsIndex,
) -> bytearray:
    """
    Build one version 2 batch from columns as `to_columns` gives them. The checksum is set, the leader epoch is -1.

    `offset` may be left out (then offsets are dense from `base_offset`), the three of `key` (all null) and the six of
    the headers. -1 for producer id, epoch and sequence if there is no idempotent producer. `compression`: 16 more say that
    the batch is part of a transaction. Raises `BAD_COLUMNS` for
    names missing or unknown and for columns that disagree, `BAD_OFFSET` for offsets that do not rise, or leave the 31
    bits above `base_offset`, `BAD_COUNT` for no records, `OUT_OF_RANGE` for times too far apart, `UNKNOWN_COMPRESSION`,
    and `OVERSIZE` beyond 2 GiB.
    """

def build_rows(
    keys: Any | None,
    values: Any,
    timestamps: Buffer,
    compression: SupportsIndex,
    producer_id: SupportsIndex,
    producer_epoch: SupportsIndex,
    base_sequence: SupportsIndex,
) -> bytes | memoryview:
    """
    One version 2 batch of columns as `ColumnRows` takes them. `timestamps`: q[n], in ms. The rest as `RowRun.build`.

    Raises as `ColumnRows` and `RowRun.build`, `BAD_COLUMNS` if there is not one time for each value, and `OUT_OF_RANGE` for
    times too far apart.
    """

def decode_batches(
    reply: Buffer, bits: SupportsIndex, start: SupportsIndex, max_bytes: SupportsIndex
) -> tuple[list[memoryview], int, int, int]:
    """
    Decode a raw reply to XRANGE whose entries are whole batches: (views of the batches, next, seen, skipped).

    Such an entry has the only field `batch`, with one version 2 batch, and the id of its base offset: with 0 `bits`
    that is `<base offset>-1`. The result has the batches that do not end below `start`, at most `max_bytes` of them but
    one at least, as views of `reply`. `next` and `seen` are those of `decode_records`; `skipped` counts the other
    entries. Checksums are not verified. Raises `BAD_RESP` and `OUT_OF_RANGE` as `decode_records`.
    """

def decode_records(
    reply: Buffer,
    bits: SupportsIndex,
    start: SupportsIndex,
    max_bytes: SupportsIndex,
    compression: SupportsIndex,
    leader_epoch: SupportsIndex,
) -> tuple[bytearray, int, int, int]:
    """
    Decode a raw reply to XRANGE whose entries are records: (version 2 batches one behind the other, next, seen, skipped).
    The batches hold the records from `start` on.

    `next`: the offset behind the last entry read, where the next read goes on; never below `start`. `seen`: how many
    entries were read; all of them, unless the rest would go beyond `max_bytes`, which bounds the batches before
    compression but not the first record. `skipped`: how many of these have an id that is no offset, because the
    sequence has more than `bits` bits or the time has too many; no consumer can be given such an entry, and `next` goes
    past it. A new batch begins where an offset is 2^31 or a time 2^63 ms away from the first in its batch. All batches
    have time of creation, and no producer.

    Entries of other programs: without a `timestamp` in decimal digits the id's time counts. If `headers` is a JSON
    object its members become headers, strings as text, null as null, anything else as the JSON it is written in. Any
    other field, and a repeated one, becomes a header of its name. Raises `BAD_RESP` for anything that is not an array
    of entries with rising ids (an error reply too), `OUT_OF_RANGE` for more than 62 `bits`, `UNKNOWN_COMPRESSION`, and
    `OVERSIZE` for a batch beyond 2 GiB.
    """

def down_convert(batches: Buffer, start: SupportsIndex, end: SupportsIndex) -> int:
    """
    Write the bytes of Kafka 0.7's log from position `start` up to `end` over the front of `batches`, as far as these have
    them without a gap; returns how many bytes that are.

    They may begin and end inside a message. Nothing where no message covers `start`. `batches`: whole batches of a log in
    the format `legacy`, whose content is lost. Raises the errors of a batch's header, `BAD_RECORD` and `BAD_OFFSET`.
    """

def encode_append(
    key: Buffer | str | int,
    batch: Buffer,
    base: SupportsIndex,
    bits: SupportsIndex,
    limit: SupportsIndex,
    first: SupportsGetItem[int, Buffer | str | int] | None = None,
) -> bytes:
    """
    Encode one version 2 batch as Redis commands that append its records to a stream, `XADD key id field value …` for
    each.

    The ids stand for the offsets `base`, `base` + 1 and so on: an id is `ms-sequence`, its offset `(ms << bits) |
    sequence`. Fields: `key` and `value` (absent: null), `timestamp` (ms; of a batch with time of append that time),
    `header.NAME` for each header in order, and for one whose value is null `null.header.NAME` with an empty value.
    `first`: the arguments in front of the first record's id in place of `XADD key`, for example those of a script that
    checks something before it adds the record. `limit` bounds the decompressed bytes.

    Raises `TRUNCATED`, `BAD_MAGIC`, `BAD_LENGTH`, `BAD_OFFSET`, `TRAILING_BYTES` if this is not exactly one batch;
    `BAD_ATTRIBUTES` (a control batch), `BAD_COUNT` (no records), `OUT_OF_RANGE` (`base` below 1, as no id is 0-0; offsets
    beyond 63 bits; more than 62 `bits`), the codes of decompression, and for each record `BAD_RECORD`, `BAD_OFFSET` (not
    the next offset), `TOO_MANY_ELEMENTS` (more than 3,500 headers, too many arguments for a script).
    """

def encode_append_batches(
    scripts: tuple[Buffer | str | int, Buffer | str | int],
    keys: tuple[Buffer | str | int, Buffer | str | int],
    compared: tuple[Buffer | str | int, Buffer | str | int],
    end: Buffer | str | int,
    totals: tuple[SupportsIndex, SupportsIndex, SupportsIndex],
    batches: SupportsGetItem[int, tuple[Buffer, SupportsIndex, SupportsIndex, SupportsIndex]],
    bits: SupportsIndex,
) -> list[Any]:
    """
    Encode a transaction that appends whole batches to a stream: MULTI, `EVAL guard 2 key state token end`, `XADD key id
    batch DATA` for each, `EVAL close 2 key state token end` with the state's fields as they are afterwards, EXEC.

    `scripts`: guard and close. `keys`: of the stream and of its state. `compared`: the fencing token, and the end before.
    `end`, `totals`: the fields `end`; `size`, `count` and `time`. `batches`: each a tuple of its bytes, its first
    offset, and what is not looked at. An id is `ms-sequence`, its offset `(ms << bits) | sequence`; without `bits` it is
    `<offset>-1`. In parts: a batch of 4 KiB and more is one, the very object given. Raises `OUT_OF_RANGE` (a negative
    offset, more than 62 `bits`).
    """

def encode_command_parts(commands: SupportsGetItem[int, SupportsGetItem[int, Buffer | str | int]]) -> list[Any]:
    """
    As `encode_commands`, in parts: an argument of 4 KiB and more is a part of its own, and a buffer among these is the
    very object given.
    """

def encode_commands(commands: SupportsGetItem[int, SupportsGetItem[int, Buffer | str | int]]) -> bytes:
    """Encode a pipeline of Redis commands as RESP arrays of bulk strings. Text becomes UTF-8, an int its digits."""

def find_time(
    batch: Buffer, ms: SupportsIndex, limit: SupportsIndex, start: SupportsIndex = ...
) -> tuple[int, int] | None:
    """
    (offset, timestamp) of the first record in this one batch with `start` <= offset whose time in ms is at or after `ms`,
    or None.

    All records of a batch with time of append have that time. `limit` bounds the decompressed bytes. Records behind the
    one found are not looked at, and decompressed at most a piece of about 1 MiB with it. Raises `TRUNCATED`, `BAD_MAGIC`,
    `BAD_LENGTH`, `TRAILING_BYTES`, `BAD_COUNT`, `BAD_RECORD`, `BAD_OFFSET` and the codes of decompression.
    """

def give_back_small_objects() -> int:
    """Give the memory of all empty pools back to the system; how many bytes that was. Others run meanwhile."""

def match_names(pattern: str, names: SupportsGetItem[int, str]) -> list[str]:
    """
    The `names` that the regular expression fits from end to end, the very objects given.

    The language is RE2's but for `\\Q..\\E` and classes beyond ASCII. `BAD_PATTERN` for a pattern that cannot be read (one
    with back-references or look-around, say), has more than 16 KiB, takes more than 512 KiB compiled, or needs more than
    6 million steps of one or two nanoseconds on these names.
    """

def parse_replies(raw: Buffer) -> list[Any]:
    """All replies of `raw`, one behind the other, as `Replies` would give them. Raises as `parse_reply`."""

def parse_reply(raw: Buffer) -> Any:
    """
    The reply at the front of `raw`, as `Replies` would give it; what follows it is not looked at.

    `TRUNCATED` if it is not all there, `BAD_RESP`, `OVERSIZE` (an array that no memory holds).
    """

def recompress(batch: Buffer, compression: SupportsIndex, limit: SupportsIndex) -> bytearray:
    """
    The same one batch with another compression; every other header field is kept, checksum and length are new.

    `limit` bounds the decompressed bytes. Raises as `assign_offsets`, `UNKNOWN_COMPRESSION`, `CORRUPT_COMPRESSION`,
    `DECOMPRESSION_LIMIT`, `OVERSIZE`. With the compression it has, it comes back as it is.
    """

def reserve(size: SupportsIndex) -> bytearray:
    """
    A bytearray of `size` bytes that hold whatever was in memory: for somebody who fills all of it before it is read.

    `bytearray(size)` writes zeros first, which costs a quarter of what reading a page from the page cache does.
    """

def row_places(
    ended: SupportsGetItem[int, tuple[RowRun, SupportsIndex, SupportsIndex]], count: SupportsIndex
) -> tuple[list[int], list[int]]:
    """
    Partitions and offsets of `count` rows, in their order. `ended`: runs, where each went, and the offset of its first
    row, -1 if that is not known; the others follow it. Rows of no run have -1 and -1.

    Raises `BAD_VALUE` for a row that is not below `count`.
    """

def slice_batches(
    data: Buffer, start: SupportsIndex, limit: SupportsIndex, max_bytes: SupportsIndex
) -> tuple[int, int, int]:
    """
    (from, to, next): the slice `data[from:to]` holds the whole batches with offsets `start` <= o < `limit`, and `next`
    is the offset after them; (0, 0, start) if there are no such batches.

    At most `max_bytes`, but at least one whole batch if data has it. A batch is taken only if its last offset is below
    `limit`. Only headers are read, no checksum is verified.
    """

def to_arrow(
    batches: Buffer,
    topic: str,
    partition: SupportsIndex,
    columns: SupportsGetItem[int, str],
    start: SupportsIndex,
    end: SupportsIndex,
    max_rows: SupportsIndex,
    max_bytes: SupportsIndex,
    limit: SupportsIndex,
    aborted: SupportsGetItem[int, tuple[SupportsIndex, SupportsIndex]] = ...,
) -> ArrowColumns:
    """
    The records `start` <= offset < `end` in the version 2 batches of a Fetch answer, as Arrow columns.

    `columns`: which and in this order, out of key binary, value binary, topic string, partition int32, offset int64,
    timestamp timestamp[us, tz=UTC], timestampType int32 (0 time of creation, 1 of append), headers list<element:
    struct<key: string, value: binary>> (null for a record without any; header keys that are not UTF-8 are mended). All are
    nullable.

    The checksum of each batch that is used is verified. Batches wholly below `start` are skipped without decompression,
    control batches too, and a last batch that is cut off is left. No further batch is taken after `max_rows` rows or
    `max_bytes` bytes of Arrow; one is at least. `limit` bounds the decompressed bytes of one batch. `aborted`: (producer
    id, first offset) as an answer with isolation level `read_committed` has them; the batches of those transactions are
    left out.

    Raises `BAD_COLUMNS` (a name unknown or given twice), `BAD_MAGIC`, `BAD_LENGTH`, `BAD_OFFSET`, and, naming the batch's
    base offset, `BAD_CRC`, `UNKNOWN_COMPRESSION`, `CORRUPT_COMPRESSION`, `DECOMPRESSION_LIMIT`, `BAD_COUNT`, `BAD_RECORD`,
    `BAD_OFFSET`, `OUT_OF_RANGE` (a time beyond 64 bits of µs), `OVERSIZE` (a column beyond 2 GiB).
    """

def to_columns(batches: Buffer, limit: SupportsIndex) -> dict[str, Column]:
    """
    The records of version 2 batches as columns in Arrow's layout: n records, h headers in all, times in ms. All of the
    data must be batches.

    `offset` q[n], `timestamp` q[n], `key_offsets` i[n+1], `key` B[], `key_valid` B[n] (0 or 1 each), `value_offsets`,
    `value`, `value_valid` likewise, `header_offsets` i[n+1] (record to headers), `header_key_offsets` i[h+1],
    `header_key` B[], `header_value_offsets` i[h+1], `header_value` B[], `header_value_valid` B[h].
    `limit` bounds the decompressed bytes of all batches together. Control batches are skipped, checksums not looked at.
    Raises `TRUNCATED`, `BAD_MAGIC`, `BAD_LENGTH`, `BAD_OFFSET`, `BAD_COUNT`, `BAD_RECORD`, `UNKNOWN_COMPRESSION`,
    `CORRUPT_COMPRESSION`, `DECOMPRESSION_LIMIT`, and `OVERSIZE` for a column beyond 2 GiB.
    """

def to_messages(batch: Buffer, limit: SupportsIndex) -> tuple[bytearray, int]:
    """
    One version 2 batch of a producer as one for a log in the format `legacy`, each record a message of magic 1; and how many
    offsets it takes. The producer's id, epoch and sequence are kept.

    `limit` bounds the decompressed bytes. Raises `BAD_RECORD` for a record with a key, with headers or without a value,
    `OVERSIZE`, and as `to_columns`.
    """

def to_values(
    batches: Buffer, offset: SupportsIndex, max_bytes: SupportsIndex, limit: SupportsIndex
) -> tuple[bytearray, int]:
    """
    The payloads of the messages in `batches` of a log in the format `legacy`, as version 2 batches with the time of append,
    and the offset after them. The first message is the one that covers `offset`, or the next.

    The messages in a wrapper have consecutive offsets from the wrapper's own; those before `offset` are left out, unless
    there are no others. About `max_bytes`, but one record at least if there is one. `limit` bounds the decompressed bytes;
    fewer records are given where it is reached, and `DECOMPRESSION_LIMIT` is raised if there are none. Raises the errors of
    a batch's header, `BAD_RECORD`, `BAD_OFFSET`, and those of a message as `up_convert`.
    """

def up_convert(
    messages: Buffer, largest: SupportsIndex, limit: SupportsIndex, size: SupportsIndex
) -> list[tuple[bytearray, int]]:
    """
    Check a message set of Kafka 0.6 or 0.7, and make it into batches for a log in the format `legacy`, each with the number
    of offsets it takes: as many as its messages have bytes.

    A record's value is one message as it was sent, without its LENGTH. A wrapper that holds more messages than it has
    bytes is stored as what it holds. What is left over behind the last whole message is left out. Batches have about
    `size` bytes, and base offset and times 0. `largest`: bytes of a payload; `limit` bounds the decompressed bytes of all
    wrappers together. Raises, message by message, `TRUNCATED` (not one whole message), `BAD_LENGTH`, `BAD_MAGIC`,
    `OVERSIZE` (a payload), `BAD_CRC`; then `UNKNOWN_COMPRESSION` and for what wrappers hold the same, but `OVERSIZE`,
    `NESTED_COMPRESSION` (more than 8), `CORRUPT_COMPRESSION`, `DECOMPRESSION_LIMIT` (more than `limit`, or than 64 times the
    payload and 1 MiB; or more than 8 MiB of messages in place of wrappers).
    """

def validate_batch(
    records: Buffer, limit: SupportsIndex
) -> tuple[int, int, int, int, tuple[int, int, int, int] | None]:
    """
    Validate a version 2 batch as a producer sends it. All of the data must be that batch. Verified are length, magic,
    checksum, attributes, count, offsets, and the structure of every record. The result is what an append needs to know:
    (size, count, largest time in ms, flags, `producer_sequence` as of a `Batch`).

    The largest time is the true one, computed from the records. `flags`: the attributes that only brokers and
    transactions set: 8 time of append, 16 transactional, 32 control; 0 for most batches. Compressed records are
    decompressed to be verified, a piece of about 1 MiB at a time; `limit` bounds the bytes that they may become.
    `DECOMPRESSION_LIMIT` is raised after no more work than `limit` bytes are, so that a caller may try with little and
    leave the rest to a thread. Raises, in this order: `TRUNCATED`, `BAD_MAGIC`, `BAD_LENGTH`, `TRUNCATED`, `BAD_OFFSET`,
    `BAD_CRC`, `BAD_ATTRIBUTES` (what only a broker sets, or nobody; transactional without a producer id),
    `UNKNOWN_COMPRESSION`, `BAD_COUNT`, `BAD_VALUE` (a producer id without epoch or sequence), `CORRUPT_COMPRESSION`,
    `DECOMPRESSION_LIMIT`, and for each record `BAD_RECORD`, `BAD_OFFSET`. Several batches are verified one after the
    other, within one `limit`, and then refused: `TRAILING_BYTES`; no data is `BAD_COUNT`.
    """

def whole_messages(messages: Buffer) -> int:
    """How many bytes of `messages`, from its beginning, are whole messages of Kafka 0.7 with right checksums."""

def write_messages(
    batches: Buffer,
    start: SupportsIndex,
    limit: SupportsIndex,
    encoding: SupportsIndex,
    messages: SupportsIndex,
    size: SupportsIndex,
    value: SupportsIndex,
    decompressed: SupportsIndex,
) -> tuple[bytearray, int, int, bool]:
    """
    (text, messages, next, full): the messages of these batches from offset `start` up to `limit` (excluded), written as
    `offset:value,offset:value`.

    `encoding` of values: 0 plain (line ends, NUL and what is no UTF-8 become U+FFFD), 1 percent, 2 base64. At most so many
    `messages`, and no more after `size` bytes of text; a value may have `value` bytes, and batches may decompress to
    `decompressed`. `next`: the offset to go on from; `full`: a limit ended it. Raises `OVERSIZE` for a first value that
    is too large, `DECOMPRESSION_LIMIT`, `BAD_VALUE` for another encoding, and what broken batches give.
    """
