"""Version 2 record batches as bytes: checked, walked, stamped, searched, recompressed.

The format: https://kafka.apache.org/documentation/#recordbatch. A header of 61 bytes, then records, which may be
compressed as a whole. The checksum covers everything from the attributes on.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import final

from korvet_fast.errors import CodecError
from korvet_reference.checksum import crc32c
from korvet_reference.compression import NONE, check_known, compress
from korvet_reference.records import read_payload, read_records
from korvet_reference.varint import Bytes

# base offset, length, leader epoch, magic, checksum; then, under the checksum, attributes, last offset delta, first and
# max timestamp, producer id and epoch, base sequence, count
HEADER = struct.Struct(">qiibIhiqqqhii")
LENGTH_END = 12  # the length counts from here
MAGIC_AT = 16
CRC_AT = 17
CRC_END = 21
LOG_APPEND_TIME = 1 << 3
TRANSACTIONAL = 1 << 4
CONTROL = 1 << 5
FROM_PRODUCERS = 0b0111 | LOG_APPEND_TIME | TRANSACTIONAL
LAST = (1 << 63) - 1  # the highest offset


@final
@dataclass(frozen=True, slots=True)
class Batch:
    """One batch's header, and where it lies in the data it was found in."""

    start: int
    size: int
    base_offset: int
    last_offset: int
    count: int
    leader_epoch: int
    attributes: int
    compression: int
    log_append_time: bool
    transactional: bool
    control: bool
    first_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int


def read_header(data: memoryview, start: int) -> Batch:
    """The batch at `start`, all of which must be there.

    Raises, in this order: TRUNCATED (no room for a magic byte), BAD_MAGIC, BAD_LENGTH, TRUNCATED, BAD_OFFSET.
    """
    rest = data[start:]
    if len(rest) <= MAGIC_AT:
        raise CodecError("TRUNCATED", "the input ends inside a batch header")
    if rest[MAGIC_AT] != 2:
        raise CodecError("BAD_MAGIC", f"magic {rest[MAGIC_AT]}")
    size = LENGTH_END + int.from_bytes(rest[8:LENGTH_END], "big", signed=True)
    if size < HEADER.size:
        raise CodecError("BAD_LENGTH", "a batch length is smaller than the header")
    if size > len(rest):
        raise CodecError("TRUNCATED", "the input ends inside a batch")
    base, _, epoch, _, _, flags, delta, first, latest, producer, producer_epoch, sequence, count = HEADER.unpack_from(
        rest
    )
    if delta < 0 or base + delta > LAST:
        raise CodecError("BAD_OFFSET", "a batch's last offset is not possible")
    return Batch(
        start=start,
        size=size,
        base_offset=base,
        last_offset=base + delta,
        count=count,
        leader_epoch=epoch,
        attributes=flags,
        compression=flags & 0b0111,
        log_append_time=bool(flags & LOG_APPEND_TIME),
        transactional=bool(flags & TRANSACTIONAL),
        control=bool(flags & CONTROL),
        first_timestamp=first,
        max_timestamp=latest,
        producer_id=producer,
        producer_epoch=producer_epoch,
        base_sequence=sequence,
    )


def write_batch(batch: Batch, payload: bytes) -> bytearray:
    """The bytes of a batch with this header and these records; length and checksum are computed. Raises OVERSIZE."""
    length = HEADER.size - LENGTH_END + len(payload)
    if length >= 1 << 31:
        raise CodecError("OVERSIZE", "a batch cannot be larger than 2 GiB")
    out = bytearray(
        HEADER.pack(
            batch.base_offset,
            length,
            batch.leader_epoch,
            2,
            0,
            batch.attributes,
            batch.last_offset - batch.base_offset,
            batch.first_timestamp,
            batch.max_timestamp,
            batch.producer_id,
            batch.producer_epoch,
            batch.base_sequence,
            batch.count,
        )
    )
    out += payload
    _seal(out)
    return out


def read_batches(data: Bytes) -> Iterator[tuple[Batch, memoryview]]:
    """Every batch of `data`, to the last byte, with its bytes. Raises as `read_header`."""
    view = memoryview(data).cast("B")
    at = 0
    while at < len(view):
        batch = read_header(view, at)
        at += batch.size
        yield batch, view[batch.start : at]


def check(records: Bytes, limit: int) -> list[Batch]:
    """Verify batches as a producer sends them, all of the data; `max_timestamp` of the result is the true one.

    Raises, batch by batch in this order: as `read_header`, BAD_CRC, BAD_ATTRIBUTES, UNKNOWN_COMPRESSION, BAD_COUNT,
    BAD_VALUE (a producer id without epoch or sequence), DECOMPRESSION_LIMIT, CORRUPT_COMPRESSION, and record by record
    BAD_RECORD, BAD_OFFSET.
    """
    found = []
    for batch, data in read_batches(records):
        _check_header(batch, data)
        times = []
        for place, record in enumerate(
            read_records(batch.count, read_payload(batch.compression, data[HEADER.size :], limit))
        ):
            if record.offset_delta != place:
                raise CodecError("BAD_OFFSET", "the offsets of a batch's records are not consecutive")
            times.append(record_time(batch, record.timestamp_delta))
        found.append(replace(batch, max_timestamp=max(times)))
    return found


def _check_header(batch: Batch, data: memoryview) -> None:
    if not _sound(data):
        raise CodecError("BAD_CRC", "a batch fails its checksum")
    if batch.attributes & ~FROM_PRODUCERS:
        raise CodecError("BAD_ATTRIBUTES", "a producer sets attributes that are unknown or not its own")
    if batch.transactional and batch.producer_id < 0:
        raise CodecError("BAD_ATTRIBUTES", "a transactional batch has no producer id")
    check_known(batch.compression)
    if batch.count != batch.last_offset - batch.base_offset + 1:
        raise CodecError("BAD_COUNT", "a batch's record count and last offset disagree")
    if batch.producer_id >= 0 and (batch.producer_epoch < 0 or batch.base_sequence < 0):
        raise CodecError("BAD_VALUE", "a batch has a producer id without epoch or sequence")


def headers(data: Bytes, verify: bool) -> list[Batch]:
    """Headers of the whole batches at the front of `data`.

    Stops without error at the first that is incomplete, or is no version 2 batch, or (`verify`) fails its checksum or
    does not continue upward in offset.
    """
    view = memoryview(data).cast("B")
    found: list[Batch] = []
    for batch in _front(view):
        continues = not found or found[-1].last_offset < batch.base_offset
        if verify and not (continues and _sound(view[batch.start : batch.start + batch.size])):
            break
        found.append(batch)
    return found


def span(data: Bytes, start: int, limit: int, max_bytes: int) -> tuple[int, int, int]:
    """(from, to, next): where the batches lie that hold offsets `start` <= o < `limit`, and the offset after them.

    At most `max_bytes`, but one batch at least if there is one whose last offset is below `limit`; else (0, 0, start).
    """
    wanted = [batch for batch in _front(memoryview(data).cast("B")) if batch.last_offset >= start]
    found: list[Batch] = []
    for batch in wanted:
        if batch.last_offset >= limit or (found and batch.start + batch.size - found[0].start > max_bytes):
            break
        found.append(batch)
    if not found:
        return 0, 0, start
    return found[0].start, found[-1].start + found[-1].size, min(found[-1].last_offset + 1, LAST)


def restamp(
    batch: bytearray | memoryview,
    base_offset: int,
    leader_epoch: int,
    max_timestamp: int | None,
    log_append_time: int | None,
) -> None:
    """Rewrite one batch in place: its base offset and leader epoch, and what the other two ask for, in ms.

    `log_append_time` sets the timestamp type and wins over `max_timestamp`. The checksum changes only if one of them
    changes anything. Raises BAD_VALUE (read-only), as `read_header`, TRAILING_BYTES, BAD_OFFSET.
    """
    view = memoryview(batch).cast("B")
    if view.readonly:
        raise CodecError("BAD_VALUE", "the buffer is read-only")
    header = _read_only(view)
    if base_offset + header.last_offset - header.base_offset > LAST:
        raise CodecError("BAD_OFFSET", "the batch's last offset would not fit 64 bits")
    struct.pack_into(">q", view, 0, base_offset)
    struct.pack_into(">i", view, LENGTH_END, leader_epoch)
    flags, latest = header.attributes, header.max_timestamp
    if max_timestamp is not None:
        latest = max_timestamp
    if log_append_time is not None:
        flags, latest = flags | LOG_APPEND_TIME, log_append_time
    if (flags, latest) != (header.attributes, header.max_timestamp):
        struct.pack_into(">h", view, CRC_END, flags)
        struct.pack_into(">q", view, 35, latest)
        _seal(view)


def recompress(batch: Bytes, compression: int, limit: int) -> bytearray:
    """The same batch with its records compressed by `compression`; length and checksum are new.

    Raises UNKNOWN_COMPRESSION, as `read_header`, TRAILING_BYTES, CORRUPT_COMPRESSION, DECOMPRESSION_LIMIT, OVERSIZE.
    """
    check_known(compression)
    view = memoryview(batch).cast("B")
    header = _read_only(view)
    if header.compression == compression:
        return bytearray(view)
    payload = read_payload(header.compression, view[HEADER.size :], limit)
    flags = header.attributes & ~0b0111 | compression
    return write_batch(replace(header, attributes=flags), compress(compression, payload))


def find_time(batch: Bytes, ms: int, limit: int) -> tuple[int, int] | None:
    """(offset, timestamp) of the first record of this one batch whose time is at or after `ms`, or None.

    Raises as `read_header`, TRAILING_BYTES, UNKNOWN_COMPRESSION, CORRUPT_COMPRESSION, DECOMPRESSION_LIMIT, BAD_COUNT,
    BAD_RECORD, BAD_OFFSET; records behind the one found are not looked at.
    """
    view = memoryview(batch).cast("B")
    header = _read_only(view)
    if header.log_append_time:
        return (header.base_offset, header.max_timestamp) if header.max_timestamp >= ms else None
    for record in read_records(header.count, read_payload(header.compression, view[HEADER.size :], limit)):
        time = record_time(header, record.timestamp_delta)
        if time >= ms:
            return record_offset(header, record.offset_delta), time
    return None


def record_time(batch: Batch, delta: int) -> int:
    """A record's time in ms: its own, or that of append. Raises BAD_RECORD."""
    time = batch.max_timestamp if batch.log_append_time else batch.first_timestamp + delta
    if not -LAST - 1 <= time <= LAST:
        raise CodecError("BAD_RECORD", "a record's time does not fit 64 bits")
    return time


def record_offset(batch: Batch, delta: int) -> int:
    """A record's offset. Raises BAD_OFFSET."""
    offset = batch.base_offset + delta
    if not -LAST - 1 <= offset <= LAST:
        raise CodecError("BAD_OFFSET", "a record's offset does not fit 64 bits")
    return offset


def new_batch(
    payload: bytes,
    compression: int,
    times: list[int],
    base_offset: int,
    last_delta: int,
    origin: tuple[int, int, int] = (-1, -1, -1),
) -> bytearray:
    """One batch of these records, written one after another in `payload`. `times`: theirs; `origin`: producer id, epoch
    and base sequence. Raises BAD_COUNT (no records), BAD_OFFSET, OVERSIZE."""
    if not times:
        raise CodecError("BAD_COUNT", "a batch needs a record")
    if base_offset + last_delta > LAST:
        raise CodecError("BAD_OFFSET", "the batch's last offset does not fit 64 bits")
    header = Batch(
        start=0,
        size=0,
        base_offset=base_offset,
        last_offset=base_offset + last_delta,
        count=len(times),
        leader_epoch=-1,
        attributes=compression,
        compression=compression,
        log_append_time=False,
        transactional=False,
        control=False,
        first_timestamp=times[0],
        max_timestamp=max(times),
        producer_id=origin[0],
        producer_epoch=origin[1],
        base_sequence=origin[2],
    )
    return write_batch(header, payload if compression == NONE else compress(compression, payload))


def _front(view: memoryview) -> Iterator[Batch]:
    """Batches to the first that cannot be one."""
    at = 0
    while at < len(view):
        try:
            batch = read_header(view, at)
        except CodecError:
            return
        at += batch.size
        yield batch


def _read_only(view: memoryview) -> Batch:
    """The header of what must be exactly one batch."""
    batch = read_header(view, 0)
    if batch.size < len(view):
        raise CodecError("TRAILING_BYTES", "bytes after the batch")
    return batch


def _sound(data: memoryview) -> bool:
    return int.from_bytes(data[CRC_AT:CRC_END], "big") == crc32c(data[CRC_END:])


def _seal(data: bytearray | memoryview) -> None:
    struct.pack_into(">I", data, CRC_AT, crc32c(data[CRC_END:]))
