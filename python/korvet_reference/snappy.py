"""Snappy: raw, and in the framing of the Java library (xerial) that nearly every Kafka client writes.

Sources: format_description.txt of the Snappy project, `SnappyOutputStream` of snappy-java.
"""

from korvet_fast.errors import CodecError
from korvet_reference.reader import Reader
from korvet_reference.varint import Bytes, write_unsigned

MAGIC = b"\x82SNAPPY\0"
VERSIONS = b"\0\0\0\1\0\0\0\1"  # this one, and the lowest that can read it
PLAIN_BLOCK = 32 * 1024


def decompress(data: Bytes, most: int) -> bytes:
    """`data` decompressed. Raises CORRUPT_COMPRESSION, DECOMPRESSION_LIMIT (more than `most` bytes), TRUNCATED."""
    out = bytearray()
    reader = Reader(data)
    if bytes(data[:8]) != MAGIC:
        _raw(reader, out, most)
        return bytes(out)
    reader.take(16)
    while reader.remaining:
        size = reader.integer(4, signed=False)
        if size == 0:
            raise CodecError("CORRUPT_COMPRESSION", "an empty snappy block")
        _raw(Reader(reader.take(size)), out, most)
    return bytes(out)


def compress(data: Bytes) -> bytes:
    """`data` in the xerial framing, all of it as literals: valid Snappy without a search for repetitions."""
    out = bytearray(MAGIC + VERSIONS)
    for at in range(0, len(data), PLAIN_BLOCK):
        plain = data[at : at + PLAIN_BLOCK]
        last = len(plain) - 1
        # Tag 61 stands for a literal whose length, less one, follows in two bytes.
        tag = bytes([last << 2]) if last < 60 else bytes([61 << 2]) + last.to_bytes(2, "little")
        block = write_unsigned(len(plain)) + tag + plain
        out += len(block).to_bytes(4, "big") + block
    return bytes(out)


def _raw(reader: Reader, out: bytearray, most: int) -> None:
    """Append what one raw block, all that `reader` has, stands for."""
    size = reader.unsigned(64)
    if size > 0xFFFFFFFF:
        raise CodecError("CORRUPT_COMPRESSION", "a snappy size beyond 32 bits")
    start, end = len(out), len(out) + size
    if end > most:
        raise CodecError("DECOMPRESSION_LIMIT", f"more than {most} bytes of snappy")
    while reader.remaining:
        tag = reader.integer(1, signed=False)
        kind, upper = tag & 3, tag >> 2
        if kind == 0:
            length = upper + 1 if upper < 60 else _little(reader, upper - 59) + 1
            literal = reader.take(length)
            if len(out) + length > end:
                raise CodecError("CORRUPT_COMPRESSION", "a snappy literal is too long")
            out += literal
            continue
        if kind == 1:
            length, back = (upper & 7) + 4, upper >> 3 << 8 | _little(reader, 1)
        else:
            length, back = upper + 1, _little(reader, 2 if kind == 2 else 4)
        if not 0 < back <= len(out) - start or len(out) + length > end:
            raise CodecError("CORRUPT_COMPRESSION", "a snappy copy reaches out of its block")
        for _ in range(length):  # one by one: a copy may reach into itself
            out.append(out[-back])
    if len(out) != end:
        raise CodecError("CORRUPT_COMPRESSION", "a snappy block is shorter than it says")


def _little(reader: Reader, size: int) -> int:
    return int.from_bytes(reader.take(size), "little")
