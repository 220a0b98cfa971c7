"""The fields of a request's body, in order. All numbers are big-endian and signed; what is left over is ignored."""

import struct
from struct import Struct
from typing import Final, NamedTuple

_SHORT: Final = Struct(">h")
_FETCH: Final = Struct(">iqi")
_PRODUCE: Final = Struct(">ii")
_OFFSETS: Final = Struct(">iqi")


class Malformed(Exception):
    """The body breaks the protocol: 0.7 closes the connection."""


class FetchBody(NamedTuple):
    """From where to read, and how many bytes at most."""

    topic: str
    partition: int
    offset: int
    max_size: int


class ProduceBody(NamedTuple):
    """A set of messages for one partition; -1: any."""

    topic: str
    partition: int
    messages: memoryview


class OffsetsBody(NamedTuple):
    """A time in ms, -1 (the end) or -2 (the start), and how many offsets at most."""

    topic: str
    partition: int
    time: int
    most: int


class Body:
    """Reads one frame, of which the request's number was read. All of its methods raise `Malformed`."""

    __slots__ = ("_at", "_frame")

    def __init__(self, frame: bytearray) -> None:
        self._frame = memoryview(frame)
        self._at = _SHORT.size

    def read_count(self) -> int:
        """The number of bodies of a multi request."""
        (count,) = self._take(_SHORT)
        if count < 0:
            raise Malformed(f"a count of {count}")
        return int(count)

    def read_fetch(self) -> FetchBody:
        return FetchBody(self._read_string(), *self._take(_FETCH))

    def read_produce(self) -> ProduceBody:
        topic = self._read_string()
        partition, length = self._take(_PRODUCE)
        return ProduceBody(topic, partition, self._read_bytes(length))

    def read_offsets(self) -> OffsetsBody:
        return OffsetsBody(self._read_string(), *self._take(_OFFSETS))

    def _read_string(self) -> str:
        (length,) = self._take(_SHORT)
        try:
            return str(self._read_bytes(length), "utf-8")
        except UnicodeDecodeError:
            raise Malformed("a topic's name is not UTF-8") from None

    def _read_bytes(self, length: int) -> memoryview:
        start, end = self._at, self._at + length
        if length < 0 or end > len(self._frame):
            raise Malformed(f"a length of {length}, and {len(self._frame) - start} bytes are left")
        self._at = end
        return self._frame[start:end]

    def _take(self, fields: Struct) -> tuple[int, ...]:
        try:
            values = fields.unpack_from(self._frame, self._at)
        except struct.error:
            raise Malformed("the request ends inside of its fields") from None
        self._at += fields.size
        return values
