"""Variable-length integers: 7 bits a byte, lowest first, the top bit says that more follow.

Signed ones are zigzag: 0, -1, 1, -2 … become 0, 1, 2, 3 … Source: `ByteUtils` of Apache Kafka.
"""

from korvet_fast.errors import CodecError

Bytes = bytes | bytearray | memoryview


def read_unsigned(data: Bytes, at: int, width: int) -> tuple[int, int]:
    """An unsigned integer of `width` bits at position `at`, and the position after it.

    Overlong forms that fit are taken. Raises TRUNCATED, VARINT_OVERFLOW.
    """
    value = 0
    most = (width + 6) // 7
    for place in range(most):
        if at + place >= len(data):
            break
        byte = data[at + place]
        # Neither a bit beyond the width nor a call for yet another byte fits into the last one.
        if place == most - 1 and byte >> (width - 7 * place):
            raise CodecError("VARINT_OVERFLOW", f"a varint at {at} is wider than {width} bits")
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value, at + place + 1
    raise CodecError("TRUNCATED", f"the input ends inside a varint at {at}")


def read_signed(data: Bytes, at: int, width: int) -> tuple[int, int]:
    """As `read_unsigned`, for the zigzag form of a signed integer."""
    raw, after = read_unsigned(data, at, width)
    return (raw >> 1) ^ -(raw & 1), after


def write_unsigned(value: int) -> bytes:
    """The shortest form of an integer that is not negative."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def write_signed(value: int) -> bytes:
    """The shortest zigzag form of an integer."""
    return write_unsigned(value << 1 if value >= 0 else (-value << 1) - 1)
