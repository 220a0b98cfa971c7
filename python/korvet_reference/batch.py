"""Version 2 record batches as bytes: checked, walked, stamped, searched, recompressed.

The format: https://kafka.apache.org/documentation/#recordbatch. A header of 61 bytes, then records, which may be
compressed as a whole.
"""

import struct
from collections.abc import Iterator
from dataclasses import replace

from korvet_fast.errors import CodecError
from korvet_reference.compression import NONE, check_known, compress
from korvet_reference.header import (
    CONTROL,
    CRC_END,
    HEADER,
    LAST,
    LENGTH_END,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    Batch,
    read_batches,
    read_header,
    read_only,
    record_offset,
    record_time,
    seal,
    sound,
    write_batch,
)
from korvet_reference.records import read_payload, read_records
from korvet_reference.varint import Bytes

FROM_PRODUCERS = 0b0111 | LOG_APPEND_TIME | TRANSACTIONAL


def validate_batches(records: Bytes, limit: int) -> list[Batch]:
    """Verify batches as a producer sends them, all of the data; `max_timestamp` of the result is the true one.

    `limit` bounds the decompressed bytes of all batches together.

    Raises, batch by batch in this order: as `read_header`, BAD_CRC, BAD_ATTRIBUTES, UNKNOWN_COMPRESSION, BAD_COUNT,
    BAD_VALUE (a producer id without epoch or sequence), DECOMPRESSION_LIMIT, CORRUPT_COMPRESSION, and record by record
    BAD_RECORD, BAD_OFFSET.
    """
    found = []
    for batch, data in read_batches(records):
        _check_header(batch, data)
        payload = read_payload(batch.compression, data[HEADER.size :], limit)
        if batch.compression != NONE:
            limit -= len(payload)
        times = []
        for place, record in enumerate(read_records(batch.count, payload)):
            if record.offset_delta != place:
                raise CodecError("BAD_OFFSET", "the offsets of a batch's records are not consecutive")
            times.append(record_time(batch, record.timestamp_delta))
        found.append(replace(batch, max_timestamp=max(times)))
    return found


def validate_batch(records: Bytes, limit: int) -> tuple[int, int, int, int, tuple[int, int, int, int] | None]:
    """As `validate_batches`, of one batch: (size, count, max_timestamp, special flags, producer sequence).

    Raises, after everything else, BAD_COUNT for no batch and TRAILING_BYTES for several.
    """
    found = validate_batches(records, limit)
    if not found:
        raise CodecError("BAD_COUNT", "there is no record batch")
    if len(found) > 1:
        raise CodecError("TRAILING_BYTES", f"{len(found)} record batches where one is taken")
    (batch,) = found
    special = batch.attributes & (LOG_APPEND_TIME | TRANSACTIONAL | CONTROL)
    return batch.size, batch.count, batch.max_timestamp, special, batch.producer_sequence


def _check_header(batch: Batch, data: memoryview) -> None:
    if not sound(data):
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


def batch_headers(data: Bytes, verify: bool) -> list[Batch]:
    """Headers of the whole batches at the front of `data`.

    Stops without error at the first that is incomplete, or is no version 2 batch, or (`verify`) fails its checksum or
    does not continue upward in offset.
    """
    view = memoryview(data).cast("B")
    found: list[Batch] = []
    for batch in _front(view):
        continues = not found or found[-1].last_offset < batch.base_offset
        if verify and not (continues and sound(view[batch.start : batch.start + batch.size])):
            break
        found.append(batch)
    return found


def slice_batches(data: Bytes, start: int, limit: int, max_bytes: int) -> tuple[int, int, int]:
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


def assign_offsets(
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
    header = read_only(view)
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
        seal(view)


def recompress(batch: Bytes, compression: int, limit: int) -> bytearray:
    """The same batch with its records compressed by `compression`; length and checksum are new.

    Raises UNKNOWN_COMPRESSION, as `read_header`, TRAILING_BYTES, CORRUPT_COMPRESSION, DECOMPRESSION_LIMIT, OVERSIZE.
    """
    check_known(compression)
    view = memoryview(batch).cast("B")
    header = read_only(view)
    if header.compression == compression:
        return bytearray(view)
    payload = read_payload(header.compression, view[HEADER.size :], limit)
    flags = header.attributes & ~0b0111 | compression
    return write_batch(replace(header, attributes=flags), compress(compression, payload))


def find_time(batch: Bytes, ms: int, limit: int, start: int = -LAST - 1) -> tuple[int, int] | None:
    """(offset, timestamp) of the first record from `start` on whose time is at or after `ms`, or None.

    Raises as `read_header`, TRAILING_BYTES, UNKNOWN_COMPRESSION, CORRUPT_COMPRESSION, DECOMPRESSION_LIMIT, BAD_COUNT,
    BAD_RECORD, BAD_OFFSET; records behind the one found are not looked at.
    """
    view = memoryview(batch).cast("B")
    header = read_only(view)
    if header.log_append_time:
        there = header.max_timestamp >= ms and header.last_offset >= start
        return (max(header.base_offset, start), header.max_timestamp) if there else None
    for record in read_records(header.count, read_payload(header.compression, view[HEADER.size :], limit)):
        time = record_time(header, record.timestamp_delta)
        if time >= ms and (offset := record_offset(header, record.offset_delta)) >= start:
            return offset, time
    return None


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
