"""Plain values that every floor may use (a leaf)."""

from typing import NamedTuple, Protocol, TypeAlias

# collections.abc.Buffer comes with Python 3.12.
Buffer: TypeAlias = bytes | bytearray | memoryview


class File(Protocol):
    """An open file; it stays open as long as somebody holds it."""

    fd: int

    def caches(self, position: int, length: int) -> bool:
        """Whether so many bytes can be had without waiting for the disk. False too where that cannot be known."""

    def read(self, position: int, length: int) -> bytes:
        """So many bytes; waits for the disk. Raises `OSError`, also if the file ends before."""


class Slice:
    """`length` bytes of a file from `position` on, to be sent from there: they never pass through our memory."""

    __slots__ = ("file", "length", "position")

    def __init__(self, file: File, position: int, length: int) -> None:
        self.file = file
        self.position = position
        self.length = length

    def __len__(self) -> int:
        return self.length

    def behind(self, size: int) -> "Slice":
        """What is left of it behind the first `size` bytes."""
        return Slice(self.file, self.position + size, self.length - size)


Part: TypeAlias = Buffer | Slice

LATEST = -1  # ListOffsets: the offset after the last record
EARLIEST = -2
MAX_TIMESTAMP = -3  # the record with the largest time


class Address(NamedTuple):
    """Where a broker listens, or where clients are told to reach it."""

    host: str
    port: int
