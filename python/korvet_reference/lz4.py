"""LZ4 frames. Source: lz4_Frame_format.md and lz4_Block_format.md of the LZ4 project."""

from korvet_fast.errors import CodecError
from korvet_reference.reader import Reader
from korvet_reference.varint import Bytes

MAGIC = bytes.fromhex("04224d18")
STORED = 1 << 31
WINDOW = 64 * 1024
PLAIN_BLOCK = 64 * 1024
PRIMES = (2654435761, 2246822519, 3266489917, 668265263, 374761393)
MASK = 0xFFFFFFFF


def decompress(data: Bytes, most: int) -> bytes:
    """The frames in `data`, decompressed. Raises CORRUPT_COMPRESSION, DECOMPRESSION_LIMIT (more than `most` bytes)."""
    reader = Reader(data)
    out = bytearray()
    while reader.remaining:
        _frame(reader, out, most)
    return bytes(out)


def compress(data: Bytes) -> bytes:
    """One frame of stored blocks: valid LZ4, and nobody has to trust a compressor written for clarity."""
    descriptor = bytes([0b0110_0000, 0x40])  # version 1, independent blocks; of 64 KiB
    out = bytearray(MAGIC + descriptor + bytes([xxh32(descriptor) >> 8 & 0xFF]))
    for at in range(0, len(data), PLAIN_BLOCK):
        block = data[at : at + PLAIN_BLOCK]
        out += (len(block) | STORED).to_bytes(4, "little") + block
    return bytes(out + bytes(4))


def _frame(reader: Reader, out: bytearray, most: int) -> None:
    """Append one frame's content to `out`."""
    begin = reader.at
    if reader.take(4) != MAGIC:
        raise CodecError("CORRUPT_COMPRESSION", "not an lz4 frame")
    flags, size_class = reader.take(2)
    # Version 1, no reserved bit, no dictionary, a block size from 64 KiB to 4 MiB.
    if flags >> 6 != 1 or flags & 0b11 or size_class & 0b1000_1111 or size_class < 0x40:
        raise CodecError("CORRUPT_COMPRESSION", "lz4 frame flags that are not legal")
    linked, block_sums, sized, summed = not flags & 0x20, flags & 0x10, flags & 0x08, flags & 0x04
    content_size = _little(reader, 8) if sized else None
    covered = reader.data[begin : reader.at]
    given = _little(reader, 1)
    if xxh32(covered[4:]) >> 8 & 0xFF != given:
        raise CodecError("CORRUPT_COMPRESSION", "an lz4 frame header fails its checksum")

    start = len(out)
    block_most = 1 << (8 + 2 * (size_class >> 4))
    while size := _little(reader, 4):
        block = reader.take(size & ~STORED)
        if len(block) > block_most:
            raise CodecError("CORRUPT_COMPRESSION", "an lz4 block is larger than its frame allows")
        if block_sums and xxh32(block) != _little(reader, 4):
            raise CodecError("CORRUPT_COMPRESSION", "an lz4 block fails its checksum")
        if size & STORED:
            if len(out) + len(block) > most:
                raise CodecError("DECOMPRESSION_LIMIT", f"more than {most} bytes of lz4")
            out += block
        else:
            reach = max(start, len(out) - WINDOW) if linked else len(out)
            _block(block, out, reach, len(out) + block_most, most)
    content = out[start:]
    if summed and xxh32(content) != _little(reader, 4):
        raise CodecError("CORRUPT_COMPRESSION", "an lz4 frame fails its checksum")
    if content_size not in (None, len(content)):
        raise CodecError("CORRUPT_COMPRESSION", "an lz4 frame's size is not the one announced")


def _block(block: memoryview, out: bytearray, reach: int, end: int, most: int) -> None:
    """Append what a block stands for. It may copy from position `reach` of `out` on, and fill it to `end`."""
    reader = Reader(block)
    while True:
        token = _little(reader, 1)
        literals = reader.take(_length(reader, token >> 4))
        _check_room(len(out) + len(literals), end, most)
        out += literals
        if not reader.remaining:
            return
        back = _little(reader, 2)
        size = _length(reader, token & 0x0F) + 4
        if not 0 < back <= len(out) - reach:
            raise CodecError("CORRUPT_COMPRESSION", "an lz4 match reaches out of its window")
        _check_room(len(out) + size, end, most)
        for _ in range(size):  # one by one: a match may reach into itself
            out.append(out[-back])


def _check_room(size: int, end: int, most: int) -> None:
    if size > end:
        raise CodecError("CORRUPT_COMPRESSION", "an lz4 block gives more than its frame allows")
    if size > most:
        raise CodecError("DECOMPRESSION_LIMIT", f"more than {most} bytes of lz4")


def _length(reader: Reader, nibble: int) -> int:
    """A length of 15 goes on in further bytes, to the first that is not 255."""
    length = nibble
    more = 255 if nibble == 15 else 0
    while more == 255:
        more = _little(reader, 1)
        length += more
    return length


def _little(reader: Reader, size: int) -> int:
    return int.from_bytes(reader.take(size), "little")


def xxh32(data: Bytes) -> int:
    """The 32-bit xxHash of `data` with seed 0. Source: xxhash_spec.md of the xxHash project."""
    one, two, three, four, five = PRIMES
    lanes = [(one + two) & MASK, two, 0, -one & MASK]
    whole = len(data) // 16 * 16
    for at in range(0, whole, 4):
        lane = at // 4 % 4
        word = int.from_bytes(data[at : at + 4], "little")
        lanes[lane] = _rotate(lanes[lane] + word * two, 13) * one & MASK
    mixed = sum(_rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True))
    value = len(data) + (mixed if whole else five)
    words = whole + (len(data) - whole) // 4 * 4
    for at in range(whole, words, 4):
        value = _rotate(value + int.from_bytes(data[at : at + 4], "little") * three, 17) * four
    for byte in data[words:]:
        value = _rotate(value + byte * five, 11) * one
    value &= MASK
    value = (value ^ value >> 15) * two & MASK
    value = (value ^ value >> 13) * three & MASK
    return value ^ value >> 16


def _rotate(value: int, bits: int) -> int:
    value &= MASK
    return (value << bits | value >> (32 - bits)) & MASK
