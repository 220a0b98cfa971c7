"""Plain values that every floor may use (a leaf)."""

from typing import NamedTuple, TypeAlias

# collections.abc.Buffer comes with Python 3.12.
Buffer: TypeAlias = bytes | bytearray | memoryview

LATEST = -1  # ListOffsets: the offset after the last record
EARLIEST = -2
MAX_TIMESTAMP = -3  # the record with the largest time


class Address(NamedTuple):
    """Where a broker listens, or where clients are told to reach it."""

    host: str
    port: int
