"""Offsets and Redis stream ids: an offset is the id's time in ms, shifted left by `bits`, and its sequence number."""

from korvet_fast.errors import CodecError
from korvet_reference.columns import Column
from korvet_reference.varint import Bytes


def pack_ids(offsets: Bytes, bits: int) -> Column:
    """int64 offsets[n] to int64[2n]: time and sequence number of each, in turn.

    Raises OUT_OF_RANGE for a negative offset, or `bits` that leave nothing for the time; BAD_VALUE for other numbers.
    """
    check_bits(bits)
    ids = Column("q")
    for offset in _longs(offsets):
        if offset < 0:
            raise CodecError("OUT_OF_RANGE", f"the offset {offset} is negative")
        ids.extend((offset >> bits, offset & ((1 << bits) - 1)))
    return ids


def unpack_ids(ids: Bytes, bits: int) -> Column:
    """int64[2n], time and sequence number in turn, to int64 offsets[n].

    Raises OUT_OF_RANGE for negative numbers, a sequence of `bits` bits or more and a time that does not fit above it;
    BAD_LENGTH for half an id; BAD_VALUE for other numbers.
    """
    check_bits(bits)
    numbers = _longs(ids)
    if len(numbers) % 2:
        raise CodecError("BAD_LENGTH", "an id without sequence number")
    offsets = Column("q")
    for at in range(0, len(numbers), 2):
        time, sequence = numbers[at], numbers[at + 1]
        if not (0 <= time < 1 << (63 - bits) and 0 <= sequence < 1 << bits):
            raise CodecError("OUT_OF_RANGE", f"the id {time}-{sequence} is no offset with {bits} bits")
        offsets.append(time << bits | sequence)
    return offsets


def check_bits(bits: int) -> None:
    if not 0 <= bits < 63:
        raise CodecError("OUT_OF_RANGE", f"{bits} bits of sequence number")


def _longs(data: Bytes) -> list[int]:
    view = memoryview(data)
    if view.format not in ("q", "l") or view.itemsize != 8:
        raise CodecError("BAD_VALUE", "the buffer does not hold 64-bit integers")
    return view.cast("B").cast("q").tolist()
