"""A cursor over bytes that never reads past their end."""

import struct

from korvet_fast.errors import CodecError
from korvet_reference.varint import Bytes, read_signed, read_unsigned


class Reader:
    """Reads big-endian values one after another; each method raises TRUNCATED where the bytes end too early."""

    def __init__(self, data: Bytes) -> None:
        self.data = memoryview(data).cast("B")
        self.at = 0

    @property
    def remaining(self) -> int:
        return len(self.data) - self.at

    def take(self, size: int) -> memoryview:
        """The next `size` bytes, as a view."""
        if size > self.remaining:
            raise CodecError("TRUNCATED", f"{size} bytes are needed at {self.at}, {self.remaining} are left")
        self.at += size
        return self.data[self.at - size : self.at]

    def integer(self, size: int, signed: bool = True) -> int:
        return int.from_bytes(self.take(size), "big", signed=signed)

    def float64(self) -> float:
        (number,) = struct.unpack(">d", self.take(8))
        return float(number)

    def unsigned(self, width: int = 32) -> int:
        """An unsigned varint; also VARINT_OVERFLOW."""
        value, self.at = read_unsigned(self.data, self.at, width)
        return value

    def signed(self, width: int = 32) -> int:
        """A zigzag varint; also VARINT_OVERFLOW."""
        value, self.at = read_signed(self.data, self.at, width)
        return value
