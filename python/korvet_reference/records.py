"""The records of a batch, read and written one after another."""

from collections.abc import Iterator
from dataclasses import dataclass

from korvet_fast.errors import CodecError
from korvet_reference.compression import NONE, check_known, decompress
from korvet_reference.reader import Reader
from korvet_reference.varint import Bytes, write_signed

Headers = list[tuple[bytes, bytes | None]]  # in order; keys may repeat


@dataclass(frozen=True, slots=True)
class Record:
    """One record; time and offset are differences to what the batch's header says."""

    timestamp_delta: int
    offset_delta: int
    key: bytes | None
    value: bytes | None
    headers: Headers


def read_payload(compression: int, data: memoryview, limit: int) -> Bytes:
    """The records of a batch, decompressed if need be.

    Raises UNKNOWN_COMPRESSION, CORRUPT_COMPRESSION, DECOMPRESSION_LIMIT.
    """
    check_known(compression)
    return data if compression == NONE else decompress(compression, data, limit)


def read_records(count: int, payload: Bytes) -> Iterator[Record]:
    """`count` records, which must fill `payload`. Raises BAD_COUNT (a negative one), BAD_RECORD."""
    if count < 0:
        raise CodecError("BAD_COUNT", "a batch's record count is negative")
    reader = Reader(payload)
    for _ in range(count):
        yield _read_record(reader)
    if reader.remaining:
        raise CodecError("BAD_RECORD", "bytes after the last record of a batch")


def write_record(record: Record) -> bytes:
    """The bytes of a record, its length in front."""
    out = bytearray(1)  # attributes, which have no meaning yet
    out += write_signed(record.timestamp_delta) + write_signed(record.offset_delta)
    out += _write_nullable(record.key) + _write_nullable(record.value)
    out += write_signed(len(record.headers))
    for key, value in record.headers:
        out += _write_nullable(key) + _write_nullable(value)
    return write_signed(len(out)) + out


def _read_record(reader: Reader) -> Record:
    try:
        body = Reader(_read_sized(reader))
        body.take(1)
        timestamp_delta, offset_delta = body.signed(64), body.signed()
        key, value = _read_nullable(body), _read_nullable(body)
        count = body.signed()
        if not 0 <= count <= body.remaining:
            raise CodecError("BAD_COUNT", f"{count} headers")
        headers = [(_read_sized(body), _read_nullable(body)) for _ in range(count)]
        if body.remaining:
            raise CodecError("TRAILING_BYTES", f"{body.remaining} bytes after the headers")
    except CodecError as error:
        raise CodecError("BAD_RECORD", str(error)) from error
    return Record(timestamp_delta, offset_delta, key, value, headers)


def _read_sized(reader: Reader) -> bytes:
    size = reader.signed()
    if size < 0:
        raise CodecError("NEGATIVE_LENGTH", f"a length of {size}")
    return bytes(reader.take(size))


def _read_nullable(reader: Reader) -> bytes | None:
    """Bytes behind their length, where -1 stands for null."""
    size = reader.signed()
    if size < -1:
        raise CodecError("NEGATIVE_LENGTH", f"a length of {size}")
    return None if size == -1 else bytes(reader.take(size))


def _write_nullable(data: bytes | None) -> bytes:
    return write_signed(-1) if data is None else write_signed(len(data)) + data
