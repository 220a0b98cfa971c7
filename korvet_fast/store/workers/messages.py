"""What workers say to each other over the Unix socket, as bytes: a frame is a length, a verb, a number and fields.

length (4 bytes, of what follows) | verb (1) | number (4) | fields, each a length (4; -1: None) and that many bytes

Numbers are big-endian. The number joins an answer to its question; each side counts its own questions.
"""

import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

LIMIT: Final = 64 << 20  # bytes of a frame; a value of the registry has to fit in
HEAD: Final = struct.Struct(">I")  # the length
_BODY = struct.Struct(">BI")
_FIELD = struct.Struct(">i")
_NONE = -1

Fields: TypeAlias = Sequence[bytes | None]


class Verb(IntEnum):
    """Questions, and what answers them."""

    HELLO = 1  # number of the worker -> nothing
    LOAD = 2  # key -> value
    SAVE = 3  # key, value, expected, and so on in threes -> b"1", or b"" if a present value is not as expected
    SCAN = 4  # prefix -> key, value, key, value, …
    VERSION = 5  # prefix -> a number in digits
    RELEASE = 6  # number of a worker, name of a log -> nothing: that worker does not own the log, or is about to say so
    ANSWER = 7
    PART = 8  # the first fields of an answer; more follow
    FAILURE = 9  # a sentence in place of an answer
    GOODBYE = 10  # whatever was not answered has not been done


class Message(NamedTuple):
    """One frame."""

    verb: Verb
    number: int
    fields: Fields = ()


def check_size(fields: Fields) -> int:
    """The bytes of a frame with these fields, but for its length. Raises `ValueError` if they are more than `LIMIT`."""
    size = _BODY.size + sum(_FIELD.size + len(field or b"") for field in fields)
    if size > LIMIT:
        raise ValueError(f"{size} bytes, and workers tell each other at most {LIMIT} at once")
    return size


def pack_message(message: Message) -> bytes:
    """The frame. Raises `ValueError` if it would be larger than `LIMIT`."""
    parts = [b"", _BODY.pack(message.verb, message.number)]
    for field in message.fields:
        parts.append(_FIELD.pack(_NONE if field is None else len(field)))
        if field:
            parts.append(field)
    parts[0] = HEAD.pack(check_size(message.fields))
    return b"".join(parts)


def read_length(head: bytes) -> int:
    """How many bytes of a frame follow its first four. Raises `ValueError` for a frame that is too large or small."""
    (size,) = HEAD.unpack(head)
    if not _BODY.size <= size <= LIMIT:
        raise ValueError(f"a frame of {size} bytes; there are from {_BODY.size} to {LIMIT}")
    return int(size)


def unpack_message(body: bytes) -> Message:
    """The message in a frame, without its length. Raises `ValueError` if it is none."""
    if len(body) < _BODY.size:
        raise ValueError(f"a frame of {len(body)} bytes")
    verb, number = _BODY.unpack_from(body)
    fields: list[bytes | None] = []
    at = _BODY.size
    while at < len(body):
        if at + _FIELD.size > len(body):
            raise ValueError(f"the frame ends within a length, at byte {at}")
        (size,) = _FIELD.unpack_from(body, at)
        at += _FIELD.size
        if size == _NONE:
            fields.append(None)
        elif 0 <= size <= len(body) - at:
            fields.append(body[at : at + size])
            at += size
        else:
            raise ValueError(f"a field of {size} bytes at byte {at}, and {len(body) - at} are left")
    return Message(Verb(verb), number, fields)
