"""Message sets of magic 0 and 1 (Kafka 0.8 to 0.10), lifted to version 2 batches and lowered from them.

The format: https://kafka.apache.org/documentation/#messageset. Messages one after another, each behind its offset and
size; a compressed message holds a whole set in its value.
"""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from korvet_fast.errors import CodecError
from korvet_reference.compression import NONE, ZSTD, check_known, decompress
from korvet_reference.header import HEADER, new_batch, read_batches, record_offset, record_time
from korvet_reference.reader import Reader
from korvet_reference.records import Record, read_payload, read_records, write_record
from korvet_reference.varint import Bytes

SMALLEST = (14, 22)  # bytes of a message with neither key nor value, by magic
LOG_APPEND_TIME = 1 << 3


@dataclass(frozen=True, slots=True)
class _Message:
    magic: int
    compression: int
    log_append_time: bool
    timestamp: int | None  # magic 0 has none
    key: bytes | None
    value: bytes | None


def up_convert(messages: Bytes, limit: int, now: int) -> bytearray:
    """One version 2 batch: not compressed, base offset 0, dense offsets. Magic 0 gets the time `now`, in ms.

    `limit` bounds the decompressed bytes of all wrappers together. Raises, message by message, as `_read_message`;
    for a compressed one CORRUPT_COMPRESSION, DECOMPRESSION_LIMIT, BAD_COUNT (nothing in it), and for what it holds also
    NESTED_COMPRESSION and BAD_MAGIC (not the wrapper's); OUT_OF_RANGE (times too far apart); BAD_COUNT (no messages).
    """
    payload = bytearray()
    times: list[int] = []
    for message, time in _flatten(messages, limit):
        times.append(now if time is None else time)
        delta = times[-1] - times[0]
        if not -(1 << 63) <= delta < 1 << 63:
            raise CodecError("OUT_OF_RANGE", "the times of a batch are too far apart")
        payload += write_record(Record(delta, len(times) - 1, message.key, message.value, []))
    return new_batch(bytes(payload), NONE, times, 0, len(times) - 1)


def down_convert(batches: Bytes, magic: int, limit: int) -> bytearray:
    """An uncompressed message set of magic 0 or 1, offsets kept; headers are lost, control batches skipped.

    `limit` bounds the decompressed bytes of all batches together. Raises BAD_VALUE (magic), and as `to_columns`.
    """
    if magic not in (0, 1):
        raise CodecError("BAD_VALUE", "messages are of magic 0 or 1")
    out = bytearray()
    for batch, data in read_batches(batches):
        if batch.control:
            continue
        payload = read_payload(batch.compression, data[HEADER.size :], limit)
        if batch.compression != NONE:
            limit -= len(payload)
        for record in read_records(batch.count, payload):
            offset = record_offset(batch, record.offset_delta)
            time = record_time(batch, record.timestamp_delta)
            stamped = magic == 1 and batch.log_append_time
            out += _write_message(offset, _Message(magic, NONE, stamped, time, record.key, record.value))
    return out


def _flatten(messages: Bytes, limit: int) -> Iterator[tuple[_Message, int | None]]:
    """All messages, those in compressed ones too, with their times."""
    for message in _read_messages(messages):
        if message.compression == NONE:
            yield message, message.timestamp
            continue
        if message.value is None:
            raise CodecError("BAD_RECORD", "a compressed message has no value")
        inner = decompress(message.compression, message.value, limit, old_lz4=True)
        limit -= len(inner)
        if not inner:
            raise CodecError("BAD_COUNT", "a compressed message holds no messages")
        for held in _read_messages(inner):
            if held.compression != NONE:
                raise CodecError("NESTED_COMPRESSION", "a compressed message in a compressed message")
            if held.magic != message.magic:
                raise CodecError("BAD_MAGIC", "a message in a wrapper of another magic")
            yield held, message.timestamp if message.log_append_time else held.timestamp


def _read_messages(data: Bytes) -> Iterator[_Message]:
    """The messages of a set, all of the data."""
    reader = Reader(data)
    while reader.remaining:
        reader.take(8)  # the offset; a lifted set gets new ones
        size = reader.integer(4)
        if size < SMALLEST[0]:
            raise CodecError("BAD_LENGTH", "a message size is smaller than a message")
        yield _read_message(reader.take(size))


def _read_message(data: memoryview) -> _Message:
    """Raises, in this order: BAD_MAGIC, BAD_LENGTH, BAD_CRC, UNKNOWN_COMPRESSION, BAD_RECORD."""
    reader = Reader(data)
    crc, magic, attributes = reader.integer(4, signed=False), reader.integer(1), reader.integer(1)
    if magic not in (0, 1):
        raise CodecError("BAD_MAGIC", f"magic {magic}")
    if len(data) < SMALLEST[magic]:
        raise CodecError("BAD_LENGTH", "a message size is smaller than a message of magic 1")
    if crc != zlib.crc32(data[4:]):
        raise CodecError("BAD_CRC", "a message fails its checksum")
    compression = attributes & 0b0111
    check_known(compression)
    if compression == ZSTD:
        raise CodecError("UNKNOWN_COMPRESSION", "messages older than version 2 have no zstd")
    try:
        timestamp = reader.integer(8) if magic == 1 else None
        key, value = _read_nullable(reader), _read_nullable(reader)
        if reader.remaining:
            raise CodecError("TRAILING_BYTES", f"{reader.remaining} bytes after the value")
    except CodecError as error:
        raise CodecError("BAD_RECORD", str(error)) from error
    return _Message(magic, compression, magic == 1 and bool(attributes & LOG_APPEND_TIME), timestamp, key, value)


def _write_message(offset: int, message: _Message) -> bytes:
    body = struct.pack(">bb", message.magic, LOG_APPEND_TIME if message.log_append_time else 0)
    if message.magic == 1:
        body += struct.pack(">q", message.timestamp)
    for cell in (message.key, message.value):
        body += struct.pack(">i", -1) if cell is None else struct.pack(">i", len(cell)) + cell
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def _read_nullable(reader: Reader) -> bytes | None:
    """Bytes behind a 32-bit length, where -1 stands for null."""
    size = reader.integer(4)
    if size < -1:
        raise CodecError("NEGATIVE_LENGTH", f"a length of {size}")
    return None if size == -1 else bytes(reader.take(size))
