"""The 61 bytes in front of a batch's records, and whole batches by them.

The format: https://kafka.apache.org/documentation/#recordbatch. The checksum covers everything from the attributes on.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from korvet_fast.errors import CodecError
from korvet_reference.checksum import crc32c
from korvet_reference.compression import NONE, compress
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

    @property
    def producer_sequence(self) -> tuple[int, int, int, int] | None:
        """(producer id, its epoch, sequence number of the first record, how many records); None for no producer."""
        if self.producer_id < 0:
            return None
        return self.producer_id, self.producer_epoch, self.base_sequence, self.count


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
    seal(out)
    return out


def read_batches(data: Bytes) -> Iterator[tuple[Batch, memoryview]]:
    """Every batch of `data`, to the last byte, with its bytes. Raises as `read_header`."""
    view = memoryview(data).cast("B")
    at = 0
    while at < len(view):
        batch = read_header(view, at)
        at += batch.size
        yield batch, view[batch.start : at]


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
    and base sequence; `compression`: 16 more say that they are part of a transaction.

    Raises BAD_COUNT (no records), BAD_OFFSET, OVERSIZE.
    """
    if not times:
        raise CodecError("BAD_COUNT", "a batch needs a record")
    if base_offset + last_delta > LAST:
        raise CodecError("BAD_OFFSET", "the batch's last offset does not fit 64 bits")
    codec = compression & ~TRANSACTIONAL
    header = Batch(
        start=0,
        size=0,
        base_offset=base_offset,
        last_offset=base_offset + last_delta,
        count=len(times),
        leader_epoch=-1,
        attributes=compression,
        compression=codec,
        log_append_time=False,
        transactional=compression != codec,
        control=False,
        first_timestamp=times[0],
        max_timestamp=max(times),
        producer_id=origin[0],
        producer_epoch=origin[1],
        base_sequence=origin[2],
    )
    return write_batch(header, payload if codec == NONE else compress(codec, payload))


def read_only(view: memoryview) -> Batch:
    """The header of what must be exactly one batch."""
    batch = read_header(view, 0)
    if batch.size < len(view):
        raise CodecError("TRAILING_BYTES", "bytes after the batch")
    return batch


def sound(data: memoryview) -> bool:
    return int.from_bytes(data[CRC_AT:CRC_END], "big") == crc32c(data[CRC_END:])


def seal(data: bytearray | memoryview) -> None:
    struct.pack_into(">I", data, CRC_AT, crc32c(data[CRC_END:]))
