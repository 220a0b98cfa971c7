"""Layout `entries`: every record is an entry of the stream, readable and writable by any Redis client."""

from collections.abc import Sequence

from korvet_fast import _native
from korvet_fast._native import encode_append, encode_commands
from korvet_fast.errors import CodecError, Errors, KorvetError
from korvet_fast.store.redis.connection.pipeline import Word
from korvet_fast.store.redis.stream.ids import pack_id
from korvet_fast.store.redis.stream.layout import EXPANDED, DecodedReply
from korvet_fast.store.redis.stream.scripts import CLOSE, FORGET, GUARD_AND_ADD
from korvet_fast.store.redis.stream.state import headers_field
from korvet_fast.store.redis.stream.transaction import AppendTransaction
from korvet_fast.store.types import LogFormat, RecordBatch
from korvet_fast.types import Buffer

_MULTI = encode_commands([["MULTI"]])
_PREFIX = len("$4\r\nXADD\r\n")
_ENTRY = len("*2\r\n")  # the bytes before each id in a reply


class Entries:
    """See `Layout`. Offsets within a batch are consecutive, and so are its ids; the guard adds the first record."""

    def put(
        self, transaction: AppendTransaction, key: str, log_format: LogFormat, batches: Sequence[RecordBatch]
    ) -> None:
        """See `Layout.put`."""
        parts = []
        size = number = 0
        first = None if transaction.batches else ["EVAL", GUARD_AND_ADD, *transaction.opening]
        for batch in batches:
            packed = _pack(key, log_format, batch, first)
            parts.append(packed)
            count = batch.last - batch.first + 1
            size += _measure(packed, key, count, first)
            number += count
            first = None
        transaction.parts += parts
        transaction.commands += number
        transaction.last = batches[-1].last
        transaction.add(batches, size, number)
        row = transaction.rows[-1]
        if not row.timed:
            row.latest, row.timed = transaction.last >> log_format.bits, True

    def renew(self, transaction: AppendTransaction, key: str, log_format: LogFormat) -> None:
        """See `Layout.renew`."""
        transaction.parts[0] = _pack(
            key, log_format, transaction.batches[0], ["EVAL", GUARD_AND_ADD, *transaction.opening]
        )

    def pack(
        self, transaction: AppendTransaction, key: str, state_key: str, log_format: LogFormat
    ) -> tuple[list[Buffer], int]:
        """See `Layout.pack`."""
        closing = _close(transaction)
        return [_MULTI, *transaction.parts, encode_commands(closing)], transaction.commands + len(closing) + 1

    def list_ids(self, transaction: AppendTransaction, log_format: LogFormat) -> list[str]:
        """See `Layout.list_ids`."""
        offsets = (range(batch.first, batch.last + 1) for batch in transaction.batches)
        return [pack_id(offset, log_format.bits) for each in offsets for offset in each]

    def unpack(self, reply: Buffer, log_format: LogFormat, start: int, max_bytes: int, epoch: int) -> DecodedReply:
        """See `Layout.unpack`."""
        data, end, seen, skipped = _native.decode_records(
            reply, log_format.bits, start, max_bytes, log_format.compression, epoch
        )
        return DecodedReply([data] if data else [], end, seen, skipped)


def _close(transaction: AppendTransaction) -> list[list[Word]]:
    """The commands that end a transaction; they compare what its guard compares."""
    size, number, time = transaction.totals
    closing: list[list[Word]] = []
    if transaction.forgotten:
        closing.append(["EVAL", FORGET, *transaction.opening, *map(headers_field, transaction.forgotten)])
    fields: list[Word] = ["end", transaction.end_field, "size", size, "count", number, "time", time]
    for producer, headers in transaction.headers.items():
        fields += [headers_field(producer), headers]
    return [*closing, ["EVAL", CLOSE, *transaction.opening, *fields], ["EXEC"]]


def _pack(key: str, log_format: LogFormat, batch: RecordBatch, first: list[Word] | None) -> bytes:
    try:
        return encode_append(key, batch.data, batch.first, log_format.bits, EXPANDED, first)
    except CodecError as error:
        raise KorvetError(Errors.INVALID_RECORD, f"it cannot become entries of a stream: {error}") from None


def _measure(packed: bytes, key: str, count: int, first: list[Word] | None) -> int:
    """The bytes of records at rest, counted as in a reply to XRANGE: without the words before the ids."""
    before = _PREFIX + _length(key)
    size = len(packed) - count * (before - _ENTRY)
    if first:
        words = packed[1 : packed.index(b"\r")]
        lengths = len(encode_commands([first])) - len(f"*{len(first)}\r\n")
        size -= lengths - before + len(words) - len(str(int(words) - len(first) + 2))
    return size


def _length(word: str) -> int:
    """Bytes of a word in a command."""
    return len(word) + len(str(len(word))) + 5
