"""Entries of streams, decoded into version 2 batches."""

import re

from korvet_fast.errors import CodecError
from korvet_reference.compression import check_known
from korvet_reference.header import HEADER, LAST, LENGTH_END, new_batch, read_only
from korvet_reference.ids import check_bits
from korvet_reference.json_headers import read_members
from korvet_reference.records import Headers, Record, write_record
from korvet_reference.varint import Bytes
from korvet_reference.xrange import (
    Fields,
    base_offset_after,
    offset_after,
    read_entries,
    to_base_offset,
    to_offset,
)

DECIMAL = re.compile(rb"-?[0-9]{1,19}")


class _Batch:
    """A batch under construction."""

    def __init__(self, base: int) -> None:
        self.base = base
        self.times: list[int] = []
        self.payload = bytearray()
        self.delta = 0

    def fits(self, offset: int, time: int) -> bool:
        """Whether the format can tell this record in one batch with the first."""
        return offset - self.base < 1 << 31 and (not self.times or -(1 << 63) <= time - self.times[0] < 1 << 63)

    def write(self, offset: int, time: int, record: Record) -> bytes:
        """The record as it would stand in this batch."""
        delta = time - self.times[0] if self.times else 0
        return write_record(Record(delta, offset - self.base, record.key, record.value, record.headers))

    def add(self, offset: int, time: int, written: bytes) -> None:
        self.times.append(time)
        self.payload += written
        self.delta = offset - self.base


def decode_records(
    reply: Bytes, bits: int, start: int, max_bytes: int, compression: int, leader_epoch: int
) -> tuple[bytearray, int, int, int]:
    """The records from `start` on in a reply to XRANGE: (batches one behind the other, next, seen, skipped).

    `max_bytes` of batches before compression, but one record at least. Entries whose ids are no offsets are skipped.
    Raises UNKNOWN_COMPRESSION, OUT_OF_RANGE (more than 62 bits), BAD_RESP.
    """
    check_known(compression)
    check_bits(bits)
    batches: list[_Batch] = []
    following, seen, skipped, size = start, 0, 0, 0
    for time, sequence, fields, _ in read_entries(reply):
        offset = to_offset(time, sequence, bits)
        if offset is None:
            skipped += 1
            following = max(following, offset_after(time, bits))
        elif offset >= start:
            stamp, record = _read_record(fields, time)
            batch = batches[-1] if batches and batches[-1].fits(offset, stamp) else _Batch(offset)
            written = batch.write(offset, stamp, record)
            more = len(written) + (0 if batch.times else HEADER.size)
            if batches and size + more > max_bytes:
                break
            if not batch.times:
                batches.append(batch)
            batch.add(offset, stamp, written)
            size += more
            following = min(offset + 1, LAST)
        seen += 1
    out = bytearray()
    for batch in batches:
        made = new_batch(bytes(batch.payload), compression, batch.times, batch.base, batch.delta)
        made[LENGTH_END : LENGTH_END + 4] = leader_epoch.to_bytes(4, "big", signed=True)
        out += made
    return out, following, seen, skipped


def decode_batches(reply: Bytes, bits: int, start: int, max_bytes: int) -> tuple[list[memoryview], int, int, int]:
    """The batches that do not end below `start` in a reply to XRANGE: (views of them, next, seen, skipped).

    They are what stands in the only field, `batch`, of an entry with the id of their base offset; other entries are
    skipped. With 0 `bits` that id is `<base offset>-1`. `max_bytes` of them, but one at least. Raises OUT_OF_RANGE
    (more than 62 bits), BAD_RESP.
    """
    check_bits(bits)
    view = memoryview(reply).cast("B")
    found: list[memoryview] = []
    following, seen, skipped = start, 0, 0
    for time, sequence, fields, end in read_entries(reply):
        offset = to_base_offset(time, sequence, bits)
        last = _last_offset(fields, offset)
        if last is None:
            skipped += 1
            after = base_offset_after(time, sequence, bits) if offset is None else min(offset + 1, LAST)
            following = max(following, after)
        elif last >= start:
            blob = view[end - 2 - len(fields[0][1]) : end - 2]
            if found and sum(map(len, found)) + len(blob) > max_bytes:
                break
            found.append(blob)
            following = min(last + 1, LAST)
        seen += 1
    return found, following, seen, skipped


def _last_offset(fields: Fields, offset: int | None) -> int | None:
    """The last offset of the batch in these fields, or None if they are not those of a batch at `offset`."""
    if [name for name, _ in fields] != [b"batch"]:
        return None
    try:
        header = read_only(memoryview(fields[0][1]))
    except CodecError:
        return None
    return header.last_offset if header.base_offset == offset else None


def _read_record(fields: Fields, time: int) -> tuple[int, Record]:
    """Time and content of a record. `time`: that of the id, which counts if no field tells another."""
    known: dict[bytes, bytes] = {}
    headers: Headers = []
    for name, value in fields:
        stamp = DECIMAL.fullmatch(value) is not None and -LAST - 1 <= int(value) <= LAST
        members = read_members(value) if name == b"headers" else None
        if name not in known and (name in (b"key", b"value") or (name == b"timestamp" and stamp)):
            known[name] = value
        elif name.startswith(b"header."):
            headers.append((name.removeprefix(b"header."), value))
        elif name.startswith(b"null.header.") and not value:
            headers.append((name.removeprefix(b"null.header."), None))
        elif members is not None:
            headers += members
        else:
            headers.append((name, value))
    return int(known.get(b"timestamp", time)), Record(0, 0, known.get(b"key"), known.get(b"value"), headers)
