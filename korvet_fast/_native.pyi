"""The native contract. (Written first by hand; generated from the Rust doc comments by `make stubs`.)"""

# pylint: skip-file
from collections.abc import Mapping, Sequence
from typing import Any, final

_Buffer = bytes | bytearray | memoryview  # anything with the buffer protocol, C-contiguous

# Every failure raises korvet_fast.errors.CodecError(code, message). Codes: see rust/codec/src/error.rs.

@final
class Frames:
    """Cuts a byte stream into frames: a signed 32-bit big-endian length, then that many bytes.

    Keeps the unfinished remainder; memory grows as bytes arrive, never from the announced length alone
    (at most max(64 KiB, 2 x received) is reserved). One copy per frame.
    """
    limit: int  # largest legal length; may be changed at any time, holds from the next length prefix on
    pending: int  # (read-only) bytes of the unfinished frame held now, length prefix included
    def __new__(cls, limit: int) -> Frames: ...
    def feed(self, data: _Buffer) -> list[bytearray]:
        """All frames that `data` completes, without their length prefix.
        NEGATIVE_LENGTH, OVERSIZE (length > limit): the object is then dead and raises the same again."""

@final
class Schema:
    """A message shape, compiled once from a table of fields (tuples, see shapes/field.py for the row's meaning)."""
    name: str
    def __new__(cls, name: str, fields: Sequence[tuple[Any, ...]], lowest: int, highest: int, flexible: int) -> Schema: ...
    def decode(self, data: _Buffer, version: int, limit: int) -> dict[str, Any]:
        """`limit`: array elements in all (bounds memory). All input must be used (TRAILING_BYTES)."""
    def encode(self, values: Mapping[str, Any], version: int) -> bytes: ...
    def frame(self, values: Mapping[str, Any], version: int) -> list[_Buffer]:
        """As encode, behind a 32-bit length; cut in parts so that records fields of 4 KiB and more are handed on, not copied."""

@final
class Batch:
    """One v2 batch's header, and where it lies in the data it was found in."""
    start: int  # position in the data given
    size: int  # bytes, header included
    base_offset: int
    last_offset: int  # base_offset + last offset delta
    count: int
    leader_epoch: int
    attributes: int
    compression: int  # 0 none 1 gzip 2 snappy 3 lz4 4 zstd
    log_append_time: bool
    transactional: bool
    control: bool
    first_timestamp: int
    max_timestamp: int  # as written in the header
    producer_id: int
    producer_epoch: int
    base_sequence: int

def check(records: _Buffer, limit: int) -> list[Batch]:
    """Verify v2 batches as a producer sends them, all of the data: length, magic, CRC, count, offsets, every
    record's structure (decompressed where needed; output <= min(64 x compressed + 1 MiB, limit)).
    max_timestamp of the result is the true one, computed from the records. GIL released above 16 KiB."""

def headers(data: _Buffer, verify: bool) -> list[Batch]:
    """Headers of the whole v2 batches at the front of data; stops without error at the first that is incomplete, or is no
    v2 batch, or (verify) fails its CRC or does not continue upward in offset."""

def span(data: _Buffer, start: int, limit: int, max_bytes: int) -> tuple[int, int, int]:
    """(from, to, next): the positions of the whole batches that hold offsets start <= o < limit; at most max_bytes but
    at least one whole batch if data has it. (0, 0, start) if none. No CRC: header walk only.
    A batch is taken only if its last offset < limit."""

def restamp(batch: bytearray | memoryview, base_offset: int, leader_epoch: int, max_timestamp: int | None, log_append_time: int | None) -> None:
    """Rewrite in place. Offset and epoch lie outside the CRC. max_timestamp (to mend a header) and
    log_append_time (sets timestamp type 1 and max_timestamp) change the CRC, recomputed only if anything changed."""

def recompress(batch: _Buffer, compression: int, limit: int) -> bytearray:
    """The same batch with another compression; every other header field kept, CRC and length new."""

def find_time(batch: _Buffer, ms: int, limit: int) -> tuple[int, int] | None:
    """(offset, timestamp) of the first record in this v2 batch whose time is >= ms, or None."""

@final
class Column:
    """A buffer of numbers or bytes, readable by NumPy and Arrow without a copy (format 'q', 'i' or 'B')."""

def columns(batches: _Buffer, limit: int) -> dict[str, Column]:
    """v2 batches -> columns, in Arrow's layout. n records, h headers in all:
    offset q[n], timestamp q[n], key_offsets i[n+1], key B[], key_valid B[n] (0/1 bytes),
    value_offsets, value, value_valid likewise, header_offsets i[n+1] (record -> headers),
    header_key_offsets i[h+1], header_key B[], header_value_offsets i[h+1], header_value B[], header_value_valid B[h].
    limit bounds decompressed output in all (DECOMPRESSION_LIMIT). Control batches are skipped."""

def assemble(columns: Mapping[str, _Buffer], compression: int, base_offset: int, producer_id: int, producer_epoch: int, base_sequence: int) -> bytearray:
    """Columns (as above; offset, and the key and header columns may be left out) -> one v2 batch, CRC set."""

def lift(messages: _Buffer, limit: int, now: int) -> bytearray:
    """Magic 0 and 1 message set -> one v2 batch (compression none, base_offset 0); magic 0 records get time `now`. One level of nesting at most."""

def lower(batches: _Buffer, magic: int, limit: int) -> bytearray:
    """v2 batches -> uncompressed message set of magic 0 or 1 (headers, null-ness of magic 0 times are lost), offsets kept."""

def pack_ids(offsets: _Buffer, bits: int) -> Column:
    """int64 offsets[n] -> int64[2n]: ms and sequence of the stream id of each, in turn. OUT_OF_RANGE for a negative offset."""

def unpack_ids(ids: _Buffer, bits: int) -> Column:
    """int64[2n] (ms, sequence in turn) -> int64 offsets[n]. OUT_OF_RANGE for sequence >= 2^bits or ms >= 2^(63-bits) or negatives."""

def pack(commands: Sequence[Sequence[_Buffer | str | int]]) -> bytes:
    """A pipeline of Redis commands as RESP arrays of bulk strings."""

@final
class Replies:
    """RESP2 and RESP3 replies out of a byte stream. An error reply is returned (a RedisError value), not raised."""
    def __new__(cls, limit: int) -> Replies: ...
    pending: int
    def feed(self, data: _Buffer) -> list[Any]:
        """Complete replies: simple string -> str, bulk -> bytes, integer/big -> int, array/set/push -> list, map -> dict as list of pairs? -> list of pairs flattened,
        null -> None, double -> float, bool -> bool, error -> ReplyError. Nested to 8 levels. limit: bytes of one reply. BAD_RESP, OVERSIZE."""

@final
class ReplyError:
    message: str
