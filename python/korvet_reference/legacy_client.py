"""A small client of Kafka 0.6 and 0.7, blocking: one connection, one request at a time."""

import socket
import struct
import zlib
from collections.abc import Sequence
from types import TracebackType
from typing import NamedTuple, Self

PRODUCE, FETCH, MULTIFETCH, MULTIPRODUCE, OFFSETS = range(5)
LATEST, EARLIEST = -1, -2


class FetchError(Exception):
    """The error that a FETCH is answered with: 1 offset out of range, 3 wrong partition, 4 invalid size, -1 unknown."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Message(NamedTuple):
    """A payload as it lies in the log, and the position behind it. `codec`: 0 none, 1 gzip, 2 snappy."""

    following: int
    codec: int
    payload: bytes


def encode_message(payload: bytes, codec: int = 0, magic: int = 1) -> bytes:
    """One message with its LENGTH."""
    head = bytes([magic, codec] if magic else [magic])
    data = head + struct.pack(">I", zlib.crc32(payload)) + payload
    return struct.pack(">i", len(data)) + data


def encode_name(topic: str) -> bytes:
    """A topic's name behind its length."""
    name = topic.encode()
    return struct.pack(">h", len(name)) + name


def produce_body(topic: str, partition: int, messages: bytes) -> bytes:
    """The fields of a PRODUCE; a MULTIPRODUCE has several of them."""
    return encode_name(topic) + struct.pack(">ii", partition, len(messages)) + messages


def fetch_body(topic: str, partition: int, offset: int, max_size: int) -> bytes:
    """The fields of a FETCH; a MULTIFETCH has several of them."""
    return encode_name(topic) + struct.pack(">iqi", partition, offset, max_size)


def encode_request(number: int, body: bytes) -> bytes:
    """A whole request."""
    return struct.pack(">ih", len(body) + 2, number) + body


def read_messages(data: bytes, offset: int) -> list[Message]:
    """The whole messages of a FETCH's answer, the first of which is at `offset`. Raises `ValueError` for a bad CRC."""
    found: list[Message] = []
    at = 0
    while len(data) - at >= 4:
        (length,) = struct.unpack_from(">i", data, at)
        message = data[at + 4 : at + 4 + length]
        if len(message) < length:
            break
        at += 4 + length
        magic = message[0]
        payload = message[5 + magic :]
        if struct.unpack_from(">I", message, 1 + magic)[0] != zlib.crc32(payload):
            raise ValueError(f"the message before position {offset + at} fails its checksum")
        found.append(Message(offset + at, message[1] & 3 if magic else 0, payload))
    return found


class LegacyClient:
    """One connection. All calls but those that produce wait for the answer; `socket` is for what they do not do."""

    def __init__(self, host: str, port: int, timeout: float = 60.0) -> None:
        self.socket = socket.create_connection((host, port), timeout)

    def produce(self, topic: str, partition: int, messages: bytes) -> None:
        """Send a set of messages; the broker never answers."""
        self.socket.sendall(encode_request(PRODUCE, produce_body(topic, partition, messages)))

    def multi_produce(self, sets: Sequence[tuple[str, int, bytes]]) -> None:
        """Send several sets in one request."""
        bodies = b"".join(produce_body(*one) for one in sets)
        self.socket.sendall(encode_request(MULTIPRODUCE, struct.pack(">h", len(sets)) + bodies))

    def fetch(self, topic: str, partition: int, offset: int, max_size: int = 1 << 20) -> bytes:
        """Bytes of the log. Raises `FetchError`."""
        self.socket.sendall(encode_request(FETCH, fetch_body(topic, partition, offset, max_size)))
        return _check(self.answer())

    def multi_fetch(self, positions: Sequence[tuple[str, int, int, int]]) -> list[bytes | FetchError]:
        """The bytes of each position, or its error."""
        bodies = b"".join(fetch_body(*one) for one in positions)
        self.socket.sendall(encode_request(MULTIFETCH, struct.pack(">h", len(positions)) + bodies))
        data = _check(self.answer())
        found: list[bytes | FetchError] = []
        while data:
            (size,) = struct.unpack_from(">i", data)
            try:
                found.append(_check(data[4 : 4 + size]))
            except FetchError as error:
                found.append(error)
            data = data[4 + size :]
        return found

    def offsets(self, topic: str, partition: int, time: int = LATEST, most: int = 1) -> list[int]:
        """Offsets of segments, highest first; the broker closes the connection where something is wrong."""
        self.socket.sendall(encode_request(OFFSETS, encode_name(topic) + struct.pack(">iqi", partition, time, most)))
        data = _check(self.answer())
        return list(struct.unpack(f">{(len(data) - 4) // 8}q", data[4:]))

    def answer(self) -> bytes:
        """The next answer, without its size. Raises `ConnectionError` if the broker closed the connection."""
        (size,) = struct.unpack(">i", self._receive(4))
        return self._receive(size)

    def _receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            if not more:
                raise ConnectionError("the broker closed the connection")
            data += more
        return data

    def close(self) -> None:
        """End the connection."""
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _check(answer: bytes) -> bytes:
    """The answer behind its error code. Raises `FetchError`."""
    (code,) = struct.unpack_from(">h", answer)
    if code:
        raise FetchError(code)
    return answer[2:]
