"""What a bare loop (bare_loop.py) and a bare relay (relay_loop.py) have in common: frames are cut and answered.

They answer only what the load generator sends, at the generator's versions, for one topic of one partition.
"""

import asyncio
import struct
from typing import NamedTuple, cast

PRODUCE, FETCH, CREATE_TOPICS, DELETE_TOPICS = 0, 1, 19, 20
_PREFIX = struct.Struct(">ihhi")
_CLIENT_ID_AT = 12
_RECORDS_AT = 57  # of a batch's header: how many records it holds
_UNKNOWN_TOPIC = 3
_EARLIEST = -2


class Topic:
    """The only one: whether it is there, and its end offset."""

    def __init__(self) -> None:
        self.end = 0
        self.error_code = 0


class Produced(NamedTuple):
    """A batch of a Produce request: its topic, how many records, and where it lies."""

    topic: bytes
    records: int
    start: int
    end: int

    def answer(self, correlation: int, base: int) -> bytes:
        """The answer of Produce v9."""
        return b"".join(
            (
                struct.pack(">ibb", correlation, 0, 2),
                bytes((len(self.topic) + 1,)) + self.topic,
                struct.pack(">bihqqqbb", 2, 0, 0, base, -1, 0, 1, 0),
                struct.pack(">bbib", 0, 0, 0, 0),
            )
        )


def find_batch(received: bytearray, start: int) -> Produced:
    """The batch of the Produce v9 whose frame begins at `start`: of one topic and one partition."""
    at = _skip_client_id(received, start) + 1 + 2 + 4 + 1  # no transaction, acks, timeout, one topic
    name, at = _read_name(received, at)
    size, at = _read_unsigned(received, at + 1 + 4)  # one partition, its number
    (records,) = struct.unpack_from(">i", received, at + _RECORDS_AT)
    return Produced(name, records, at, at + size - 1)


class Wanted(NamedTuple):
    """What a Fetch request asks for."""

    topic: bytes
    offset: int
    max_bytes: int

    def answer(self, correlation: int, size: int, end: int) -> tuple[bytes, bytes]:
        """What stands before and behind so many bytes of batches in the answer of Fetch v12."""
        before = struct.pack(">ibihibb", correlation, 0, 0, 0, 0, 2, len(self.topic) + 1) + self.topic
        before += struct.pack(">bihqqqbi", 2, 0, 0, end, end, 0, 1, -1) + encode_unsigned(size + 1)
        return before, bytes(3)


def find_wanted(received: bytearray, start: int) -> Wanted:
    """The only partition of the Fetch v12 whose frame begins at `start`."""
    at = _skip_client_id(received, start) + 4 + 4 + 4 + 4 + 1 + 4 + 4 + 1  # up to the only topic
    name, at = _read_name(received, at)
    offset, _, _, max_bytes = struct.unpack_from(">qiqi", received, at + 1 + 4 + 4)  # one partition, number, epoch
    return Wanted(name, offset, max_bytes)


def _skip_client_id(received: bytearray, start: int) -> int:
    (size,) = struct.unpack_from(">h", received, start + _CLIENT_ID_AT)
    return start + _CLIENT_ID_AT + 2 + int(size) + 1  # no tagged fields


def _read_name(received: bytearray, at: int) -> tuple[bytes, int]:
    end = at + received[at]
    return bytes(received[at + 1 : end]), end


def _read_unsigned(received: bytearray, at: int) -> tuple[int, int]:
    value = shift = 0
    while received[at] >= 0x80:
        value |= (received[at] & 0x7F) << shift
        shift += 7
        at += 1
    return value | received[at] << shift, at + 1


def encode_unsigned(value: int) -> bytes:
    """A varint of Kafka."""
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


class Answers(asyncio.Protocol):
    """One connection. Small requests are answered here, the others by who inherits."""

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self.received = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but name

    def data_received(self, data: bytes) -> None:
        self.received += data
        answers: list[bytes] = []
        at = 0
        while len(self.received) - at >= _PREFIX.size:
            size, key, _version, correlation = _PREFIX.unpack_from(self.received, at)
            if len(self.received) - at < 4 + size:
                break
            answer = self.answer(key, correlation, at, at + 4 + size)
            if answer:
                answers += (struct.pack(">i", len(answer)), answer)
            at += 4 + size
        del self.received[:at]
        if answers:
            self.transport.write(b"".join(answers))

    def answer(self, key: int, correlation: int, start: int, end: int) -> bytes:
        """The answer to the request that lies from `start` to `end` in what was received; nothing: it comes later."""
        if key in (CREATE_TOPICS, DELETE_TOPICS):
            self.topic.end, self.topic.error_code = 0, 0 if key == CREATE_TOPICS else _UNKNOWN_TOPIC
        topic = struct.pack(">ih1s", 1, 1, b"t")
        (time,) = struct.unpack_from(">q", self.received, end - 8)  # the end of a request for offsets
        offset = 0 if time == _EARLIEST else self.topic.end
        answers = {
            2: struct.pack(">ii", correlation, 0)
            + topic
            + struct.pack(">iihqqi", 1, 0, self.topic.error_code, -1, offset, 0),
            3: struct.pack(">iiih9sihii", correlation, 1, 0, 9, b"127.0.0.1", 0, -1, 0, 0),
            18: struct.pack(">ihi", correlation, 0, 0),
            CREATE_TOPICS: struct.pack(">ii", correlation, 0) + topic + struct.pack(">hh", 0, -1),
            DELETE_TOPICS: struct.pack(">ii", correlation, 0) + topic + struct.pack(">h", 0),
        }
        return answers[key]
