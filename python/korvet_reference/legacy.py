"""Message sets of Kafka 0.6 and 0.7, and the batches that a log in the format `legacy` keeps of them.

A set is messages one after another, each behind its LENGTH; a compressed one holds a whole set. In such a log the value
of a record is one message as it was sent, and its offset is the position that the message has in 0.7's log.
"""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from korvet_fast.errors import CodecError
from korvet_reference.compression import NONE, SNAPPY, decompress
from korvet_reference.header import (
    HEADER,
    LOG_APPEND_TIME,
    Batch,
    new_batch,
    read_batches,
    read_only,
    record_offset,
    seal,
)
from korvet_reference.records import Record, read_payload, read_records, write_record
from korvet_reference.varint import Bytes

LENGTH = 4  # bytes of the LENGTH in front of a message
CODEC = 0b11  # the attribute bits that say how the payload is compressed
NESTED = 8  # wrappers around each other that are opened
RATIO, SPARE = 64, 1 << 20  # a wrapper may hold so many times its payload, and so many bytes
REPLACED = 8 << 20  # bytes that messages may take which a set's wrappers are replaced by
XERIAL = b"\x82SNAPPY\0"
AROUND = 24  # bytes of a record beside its value, at most


@dataclass(frozen=True, slots=True)
class _Message:
    data: bytes  # as it was sent, without its LENGTH
    attributes: int
    crc: int
    payload: bytes

    @property
    def compression(self) -> int:
        if self.attributes & CODEC == CODEC:
            raise CodecError("UNKNOWN_COMPRESSION", "messages of 0.7 have no codec 3")
        return self.attributes & CODEC

    def check(self) -> None:
        if self.crc != zlib.crc32(self.payload):
            raise CodecError("BAD_CRC", "a message fails its checksum")


class _Budget:
    """Bytes that may still be decompressed."""

    def __init__(self, left: int) -> None:
        self.left = left

    def open(self, message: _Message) -> Iterator[_Message]:
        """The messages in a wrapper and in the wrappers inside it, in order."""
        bound = min(RATIO * len(message.payload) + SPARE, self.left)
        inner = _Budget(bound)
        try:
            yield from _open(message, NESTED, inner)
        finally:
            self.left -= bound - inner.left


def up_convert(messages: Bytes, largest: int, limit: int, size: int) -> list[tuple[bytearray, int]]:
    """A message set, checked as 0.7.2 does, as batches of about `size` bytes, each with the offsets it takes.

    Raises, message by message, TRUNCATED (not one whole message), BAD_LENGTH, BAD_MAGIC, OVERSIZE (a payload above
    `largest`), BAD_CRC; then UNKNOWN_COMPRESSION, and for what wrappers hold the same but OVERSIZE, NESTED_COMPRESSION,
    CORRUPT_COMPRESSION, DECOMPRESSION_LIMIT (more than `limit` in all, or than 64 times a payload and 1 MiB; or more
    than 8 MiB of messages in place of wrappers).
    """
    for message in _read_messages(messages):
        if len(message.payload) > largest:
            raise CodecError("OVERSIZE", f"a message of {len(message.payload)} bytes, and {largest} are taken")
        message.check()
    kept: list[_Message] = []
    budget, replaced = _Budget(limit), 0
    for message in _read_messages(messages):
        held = list(budget.open(message)) if message.compression != NONE else []
        if len(held) <= LENGTH + len(message.data):
            kept.append(message)
            continue
        kept += held
        replaced += sum(LENGTH + len(inner.data) for inner in held)
        if replaced > REPLACED:
            raise CodecError("DECOMPRESSION_LIMIT", "wrappers hold far more messages than they have bytes")
    pieces: list[tuple[bytearray, int]] = []
    payload, count, span = bytearray(), 0, 0
    for message in kept:
        if count and HEADER.size + len(payload) + LENGTH + len(message.data) > size:
            pieces.append((_finish(payload, count, span), span))
            payload, count, span = bytearray(), 0, 0
        payload += write_record(Record(0, span, None, message.data, []))
        count, span = count + 1, span + LENGTH + len(message.data)
    return [*pieces, (_finish(payload, count, span), span)] if count else pieces


def down_convert(batches: bytearray | memoryview, start: int, end: int) -> int:
    """Write the bytes of 0.7's log from `start` up to `end` over the front of `batches`; how many that are.

    As far as they are there without a gap. Nothing where no message covers `start`. Raises the errors of a batch's
    header, BAD_RECORD, BAD_OFFSET; the content of `batches` is lost then, too.
    """
    out = _read_span(bytes(batches), start, end)
    memoryview(batches)[: len(out)] = out
    return len(out)


def _read_span(batches: bytes, start: int, end: int) -> bytearray:
    out, following = bytearray(), start
    for batch, data in read_batches(batches):
        if batch.last_offset < following:
            continue
        for at, value in _read_values(batch, data):
            after = at + LENGTH + len(value)
            if after <= following:
                continue
            if at > following or following >= end:
                return out
            out += (struct.pack(">i", len(value)) + value)[following - at : min(after, end) - at]
            following = min(after, end)
    return out


def whole_messages(messages: Bytes) -> int:
    """How many bytes, from the beginning, are whole messages with right checksums."""
    whole = 0
    try:
        for message in _read_messages(messages):
            message.check()
            whole += LENGTH + len(message.data)
    except CodecError:
        pass  # what stands there is torn, or no message
    return whole


def to_messages(batch: Bytes, limit: int) -> tuple[bytearray, int]:
    """One batch of a producer as messages of magic 1, and the offsets they take.

    Raises BAD_RECORD for a record with a key, with headers or without a value, and as `to_columns`.
    """
    view = memoryview(batch).cast("B")
    header = read_only(view)
    payload, span = bytearray(), 0
    for record in read_records(header.count, read_payload(header.compression, view[HEADER.size :], limit)):
        if record.key is not None or record.headers or record.value is None:
            raise CodecError("BAD_RECORD", "messages of 0.7 are values only")
        message = struct.pack(">BBI", 1, 0, zlib.crc32(record.value)) + record.value
        payload += write_record(Record(0, span, None, message, []))
        span += LENGTH + len(message)
    origin = header.producer_id, header.producer_epoch, header.base_sequence
    return _finish(payload, header.count, span, origin), span


def to_values(batches: Bytes, offset: int, max_bytes: int, limit: int) -> tuple[bytearray, int]:
    """The payloads of the messages in `batches` as version 2 batches, and the offset after them.

    The first message is the one that covers `offset`, or the next. About `max_bytes`, but one record at least. Raises
    DECOMPRESSION_LIMIT if there is nothing to give without more than `limit`, the errors of a batch's header, of a
    message, BAD_RECORD, BAD_OFFSET.
    """
    view = _View(offset, max_bytes)
    budget = _Budget(limit)
    for batch, data in read_batches(batches):
        if batch.last_offset < offset:
            continue
        try:
            room = all(
                view.add(batch, at, value, budget) for at, value in _read_values(batch, data) if view.wants(at, value)
            )
        except CodecError as error:
            if error.code != "DECOMPRESSION_LIMIT":
                raise
            view.seal(batch)
            if not view.out:
                raise
            break
        view.seal(batch)
        if not room:
            break
        view.following = max(view.following, batch.last_offset + 1)  # a batch of no records takes offsets too
    return view.out, view.following


class _View:
    """The batches written so far, and the batch under way, whose records begin at `base`."""

    def __init__(self, offset: int, max_bytes: int) -> None:
        self.out = bytearray()
        self.following = offset
        self._max_bytes = max_bytes
        self._run, self._count, self._base = bytearray(), 0, 0

    def wants(self, at: int, value: bytes) -> bool:
        return at + LENGTH + len(value) > self.following

    def add(self, batch: Batch, at: int, value: bytes, budget: _Budget) -> bool:
        """Append what a message holds; False if there is no room for all of it."""
        after = at + LENGTH + len(value)
        message = _parse(value)
        if message.compression == NONE:
            return self._push(at, after, message.payload)
        self.seal(batch)
        skip = max(self.following - at, 0)
        if skip:
            skip = max(min(skip, len(list(budget.open(message))) - 1), 0)
        try:
            for place, inner in enumerate(budget.open(message)):
                if place >= skip and not self._push(at + place, at + place + 1, inner.payload):
                    return False
        except CodecError as error:
            if error.code != "DECOMPRESSION_LIMIT" or not self._count:
                raise
            return False  # a wrapper inside was too large; those before it are an answer
        self.following = after
        self.seal(batch)
        return True

    def _push(self, at: int, after: int, value: bytes) -> bool:
        written = len(self.out) + (HEADER.size + len(self._run) if self._count else 0)
        if written and written + len(value) + AROUND > self._max_bytes:
            return False
        if not self._count:
            self._base = at
        self._run += write_record(Record(0, at - self._base, None, value, []))
        self._count += 1
        self.following = after
        return True

    def seal(self, batch: Batch) -> None:
        """End the batch under way, if there is one."""
        if self._count:
            times = [batch.max_timestamp] * self._count
            made = new_batch(bytes(self._run), NONE, times, self._base, self.following - self._base - 1)
            struct.pack_into(">i", made, 12, batch.leader_epoch)
            struct.pack_into(">h", made, 21, LOG_APPEND_TIME)
            seal(made)
            self.out += made
            self._run, self._count = bytearray(), 0


def _finish(payload: bytearray, count: int, span: int, origin: tuple[int, int, int] = (-1, -1, -1)) -> bytearray:
    return new_batch(bytes(payload), NONE, [0] * count, 0, span - 1, origin)


def _read_values(batch: Batch, data: memoryview) -> Iterator[tuple[int, bytes]]:
    """The offset of each record, and its message."""
    for record in read_records(batch.count, read_payload(batch.compression, data[HEADER.size :], 0)):
        offset = record_offset(batch, record.offset_delta)
        if record.value is None:
            raise CodecError("BAD_RECORD", "a record that holds no message")
        yield offset, record.value


def _open(message: _Message, depth: int, budget: _Budget) -> Iterator[_Message]:
    if depth == 0:
        raise CodecError("NESTED_COMPRESSION", "too many compressed messages inside each other")
    if message.compression == SNAPPY and not message.payload.startswith(XERIAL):
        raise CodecError("CORRUPT_COMPRESSION", "snappy in messages of 0.7 is framed")
    messages = decompress(message.compression, message.payload, budget.left)
    budget.left -= len(messages)
    for inner in _read_messages(messages):
        inner.check()
        if inner.compression == NONE:
            yield inner
        else:
            yield from _open(inner, depth - 1, budget)


def _read_messages(messages: Bytes) -> Iterator[_Message]:
    """The whole messages of a set. Raises TRUNCATED if there is not one, BAD_LENGTH, and as `_parse`."""
    rest, first = bytes(messages), True
    while rest:
        length = struct.unpack_from(">i", rest)[0] if len(rest) >= LENGTH else 1 << 31
        if length < 0:
            raise CodecError("BAD_LENGTH", "a message has a negative length")
        if len(rest) < LENGTH + length:
            if first:
                raise CodecError("TRUNCATED", "the set ends inside its first message")
            return
        yield _parse(rest[LENGTH : LENGTH + length])
        rest, first = rest[LENGTH + length :], False


def _parse(data: bytes) -> _Message:
    """A message without its LENGTH. Raises BAD_LENGTH, BAD_MAGIC, BAD_LENGTH (too short for its magic)."""
    if not data:
        raise CodecError("BAD_LENGTH", "a message of no bytes")
    magic = data[0]
    if magic > 1:
        raise CodecError("BAD_MAGIC", f"magic {magic}")
    if len(data) < 5 + magic:
        raise CodecError("BAD_LENGTH", "a message is smaller than its header")
    (crc,) = struct.unpack_from(">I", data, 1 + magic)
    return _Message(data, data[1] if magic else 0, crc, data[5 + magic :])
