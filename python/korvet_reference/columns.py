"""Batches to columns and back, in Arrow's layout.

A column of byte strings is one run of bytes and the n + 1 offsets into it; nulls are zeros in a run of n bytes.
"""

from array import array
from collections.abc import Mapping
from typing import final

from korvet_fast.errors import CodecError
from korvet_reference.compression import NONE, check_known
from korvet_reference.header import HEADER, TRANSACTIONAL, new_batch, read_batches, record_offset, record_time
from korvet_reference.records import Headers, Record, read_payload, read_records, write_record
from korvet_reference.varint import Bytes

KEY = ("key_offsets", "key", "key_valid")
VALUE = ("value_offsets", "value", "value_valid")
HEADER_KEY = ("header_key_offsets", "header_key")
HEADER_VALUE = ("header_value_offsets", "header_value", "header_value_valid")
KNOWN = {"offset", "timestamp", "header_offsets", *KEY, *VALUE, *HEADER_KEY, *HEADER_VALUE}

Cells = list[bytes | None]


@final
class Column(array):  # type: ignore[type-arg]  # array takes no argument before Python 3.12
    """A buffer of numbers or bytes; its typecode is `q`, `i` or `B`."""


def to_columns(batches: Bytes, limit: int) -> dict[str, Column]:
    """The records of all batches, column by column; control batches are skipped, checksums are not looked at.

    `limit` bounds the decompressed bytes of all batches together. Raises as `read_header`, UNKNOWN_COMPRESSION,
    CORRUPT_COMPRESSION, DECOMPRESSION_LIMIT, BAD_COUNT, BAD_RECORD, BAD_OFFSET.
    """
    offsets: list[int] = []
    times: list[int] = []
    keys: Cells = []
    values: Cells = []
    headers: Headers = []
    header_offsets = [0]
    for batch, data in read_batches(batches):
        if batch.control:
            continue
        payload = read_payload(batch.compression, data[HEADER.size :], limit)
        if batch.compression != NONE:
            limit -= len(payload)
        for record in read_records(batch.count, payload):
            offsets.append(record_offset(batch, record.offset_delta))
            times.append(record_time(batch, record.timestamp_delta))
            keys.append(record.key)
            values.append(record.value)
            headers += record.headers
            header_offsets.append(len(headers))
    return {
        "offset": Column("q", offsets),
        "timestamp": Column("q", times),
        **_write_cells(KEY, keys),
        **_write_cells(VALUE, values),
        "header_offsets": Column("i", header_offsets),
        **_write_cells(HEADER_KEY, [key for key, _ in headers]),
        **_write_cells(HEADER_VALUE, [value for _, value in headers]),
    }


def build_batch(
    columns: Mapping[str, Bytes],
    compression: int,
    base_offset: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
) -> bytearray:
    """Build one batch from columns as `to_columns` gives them.

    `offset` may be left out (dense), and so may the key columns (all null) and the header columns. Raises
    UNKNOWN_COMPRESSION, BAD_COLUMNS, BAD_OFFSET, BAD_COUNT (no records), OUT_OF_RANGE (times too far apart), OVERSIZE.
    """
    check_known(compression & ~TRANSACTIONAL)
    if unknown := columns.keys() - KNOWN:
        raise CodecError("BAD_COLUMNS", f"there is no column {min(unknown)}")
    times = _numbers(columns, "timestamp", "q")
    offsets = _numbers(columns, "offset", "q") if "offset" in columns else None
    if offsets is not None and len(offsets) != len(times):
        raise CodecError("BAD_COLUMNS", "the columns offset and timestamp differ in length")
    keys = _read_cells(columns, KEY, len(times)) if columns.keys() & set(KEY) else [None] * len(times)
    values = _read_cells(columns, VALUE, len(times))
    headers = _read_headers(columns, len(times))

    payload = bytearray()
    delta = -1
    for place, time in enumerate(times):
        before, delta = delta, place if offsets is None else offsets[place] - base_offset
        if not before < delta < 1 << 31:
            raise CodecError("BAD_OFFSET", "offsets do not rise within 31 bits above the base offset")
        if not -(1 << 63) <= time - times[0] < 1 << 63:
            raise CodecError("OUT_OF_RANGE", "the times of a batch are too far apart")
        payload += write_record(Record(time - times[0], delta, keys[place], values[place], headers[place]))
    return new_batch(
        bytes(payload), compression, times, base_offset, delta, (producer_id, producer_epoch, base_sequence)
    )


def _write_cells(names: tuple[str, ...], cells: Cells) -> dict[str, Column]:
    offsets = [0]
    for cell in cells:
        offsets.append(offsets[-1] + len(cell or b""))
    found = (
        Column("i", offsets),
        Column("B", b"".join(cell or b"" for cell in cells)),
        Column("B", [cell is not None for cell in cells]),
    )
    return dict(zip(names, found, strict=False))  # the keys of headers are never null


def _read_cells(columns: Mapping[str, Bytes], names: tuple[str, ...], count: int | None) -> Cells:
    """The byte strings of the columns with these names; `count` of them, if it is known how many there must be."""
    data = _bytes(columns, names[1])
    offsets = _numbers(columns, names[0], "i")
    _check_offsets(names[0], offsets, len(data))
    cells = len(offsets) - 1
    valid = _bytes(columns, names[2]) if len(names) > 2 else b"\1" * cells
    if len(valid) != cells or (count is not None and count != cells):
        raise CodecError("BAD_COLUMNS", f"the column {names[0]} has the wrong length")
    return [data[offsets[at] : offsets[at + 1]] if valid[at] else None for at in range(cells)]


def _read_headers(columns: Mapping[str, Bytes], count: int) -> list[Headers]:
    """The headers of each of `count` records."""
    if not columns.keys() & {"header_offsets", *HEADER_KEY, *HEADER_VALUE}:
        return [[] for _ in range(count)]
    offsets = _numbers(columns, "header_offsets", "i")
    keys = _read_cells(columns, HEADER_KEY, None)
    values = _read_cells(columns, HEADER_VALUE, len(keys))
    _check_offsets("header_offsets", offsets, len(keys))
    if len(offsets) - 1 != count:
        raise CodecError("BAD_COLUMNS", "the columns header_offsets and timestamp differ in length")
    pairs = [(key or b"", value) for key, value in zip(keys, values, strict=True)]
    return [pairs[offsets[at] : offsets[at + 1]] for at in range(count)]


def _check_offsets(name: str, offsets: list[int], end: int) -> None:
    """They must begin at 0 or above, not fall, and not lead past `end`."""
    if not offsets or offsets != sorted(offsets) or offsets[0] < 0 or offsets[-1] > end:
        raise CodecError("BAD_COLUMNS", f"the column {name} does not cut what it should")


def _bytes(columns: Mapping[str, Bytes], name: str) -> bytes:
    if name not in columns:
        raise CodecError("BAD_COLUMNS", f"the column {name} is missing")
    return bytes(columns[name])


def _numbers(columns: Mapping[str, Bytes], name: str, typecode: str) -> list[int]:
    data = _bytes(columns, name)
    numbers = array(typecode)
    if len(data) % numbers.itemsize:
        raise CodecError("BAD_COLUMNS", f"the column {name} is not a whole number of numbers")
    numbers.frombytes(data)
    return list(numbers)
