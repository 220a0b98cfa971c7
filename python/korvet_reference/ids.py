"""Offsets and Redis stream ids: an offset is the id's time in ms, shifted left by `bits`, and its sequence number."""

from korvet_fast.errors import CodecError


def check_bits(bits: int) -> None:
    """Raises `CodecError` OUT_OF_RANGE for a number of bits that leaves nothing for the time."""
    if not 0 <= bits < 63:
        raise CodecError("OUT_OF_RANGE", f"{bits} bits of sequence number")
