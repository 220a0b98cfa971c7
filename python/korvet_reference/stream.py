"""Batches into Redis streams, record by record: an entry's id is that of the record's offset.

An entry has the fields `key` and `value` (absent: null), `timestamp` (ms) and `header.NAME` for each header in order; a
header whose value is null is the field `null.header.NAME`, empty.
"""

from collections.abc import Sequence
from typing import TypeAlias

from korvet_fast.errors import CodecError
from korvet_reference.header import HEADER, LAST, read_only, record_time
from korvet_reference.ids import check_bits
from korvet_reference.records import Record, read_payload, read_records
from korvet_reference.resp import encode_command_parts, encode_commands
from korvet_reference.varint import Bytes

Word: TypeAlias = "Bytes | str | int"

MOST_HEADERS = 3500  # of a record: a script can pass on a few thousand arguments at most


def encode_append(
    key: Bytes | str | int,
    batch: Bytes,
    base: int,
    bits: int,
    limit: int,
    first: Sequence[Bytes | str | int] | None = None,
) -> bytes:
    """One batch as commands that append its records at the offsets `base`, `base` + 1 and so on, one for each.

    `first`: the words before the first record's id in place of `XADD key`. Raises as `read_header`, TRAILING_BYTES,
    BAD_ATTRIBUTES (a control batch), BAD_COUNT (no records), OUT_OF_RANGE (no id is 0-0; offsets beyond 63 bits; more
    than 62 bits), UNKNOWN_COMPRESSION, CORRUPT_COMPRESSION, DECOMPRESSION_LIMIT, and record by record BAD_RECORD,
    BAD_OFFSET (not the next one), TOO_MANY_ELEMENTS.
    """
    view = memoryview(batch).cast("B")
    header = read_only(view)
    if header.control:
        raise CodecError("BAD_ATTRIBUTES", "a control batch holds no records to append")
    if header.count <= 0:
        raise CodecError("BAD_COUNT", "a batch needs a record")
    check_bits(bits)
    if base < 1 or base + header.count - 1 > LAST:
        raise CodecError("OUT_OF_RANGE", "these offsets have no stream ids")
    payload = read_payload(header.compression, view[HEADER.size :], limit)
    commands: list[list[Bytes | str | int]] = []
    for place, record in enumerate(read_records(header.count, payload)):
        if record.offset_delta != place:
            raise CodecError("BAD_OFFSET", "the offsets of a batch's records are not consecutive")
        if len(record.headers) > MOST_HEADERS:
            raise CodecError("TOO_MANY_ELEMENTS", "a record has too many headers for a stream")
        head = ["XADD", key] if first is None or place else [*first]
        offset = base + place
        entry_id = f"{offset >> bits}-{offset & ((1 << bits) - 1)}"
        commands.append([*head, entry_id, *_fields(record, record_time(header, record.timestamp_delta))])
    return encode_commands(commands)


def encode_append_batches(
    scripts: tuple[Word, Word],
    keys: tuple[Word, Word],
    compared: tuple[Word, Word],
    end: Word,
    totals: tuple[int, int, int],
    batches: Sequence[tuple[Bytes, int, int, int]],
    bits: int,
) -> list[Bytes]:
    """Whole batches as a transaction that appends them, in parts: MULTI, EVAL, XADDs, EVAL, EXEC.

    `scripts`, `keys`: before and behind; of the stream and of its state. `compared`: fencing token, and end before.
    `end`, `totals`: the state's fields afterwards. Raises OUT_OF_RANGE (a negative offset, more than 62 bits).
    """
    guard, close = scripts
    commands: list[Sequence[Word]] = [("MULTI",), ("EVAL", guard, 2, *keys, *compared)]
    for data, first, *_ in batches:
        if first < 0:
            raise CodecError("OUT_OF_RANGE", "a negative offset has no stream id")
        if bits:
            check_bits(bits)
        entry_id = f"{first >> bits}-{first & ((1 << bits) - 1)}" if bits else f"{first}-1"
        commands.append(("XADD", keys[0], entry_id, "batch", data))
    size, count, time = totals
    fields = ("end", end, "size", size, "count", count, "time", time)
    return encode_command_parts([*commands, ("EVAL", close, 2, *keys, *compared, *fields), ("EXEC",)])


def _fields(record: Record, time: int) -> list[Bytes | str | int]:
    fields: list[Bytes | str | int] = []
    if record.key is not None:
        fields += ["key", record.key]
    if record.value is not None:
        fields += ["value", record.value]
    fields += ["timestamp", time]
    for name, value in record.headers:
        fields += [b"header." + name, value] if value is not None else [b"null.header." + name, b""]
    return fields
