"""Redis's wire format. Source: https://redis.io/docs/latest/develop/reference/protocol-spec/ (RESP2 and RESP3)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, final

from korvet_fast.errors import CodecError
from korvet_reference.varint import Bytes

DEEPEST = 8
MOST_DIGITS = 1024
SMALLEST = 3  # bytes of the smallest reply
BULKS = b"$=!"
ARRAYS = b"*~>%|"
NUMBER = re.compile(rb"[+-]?[0-9]{1,%d}" % MOST_DIGITS)
DOUBLE = re.compile(rb"-?inf|nan|[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


@final
@dataclass(frozen=True, slots=True)
class ReplyError:
    """An error reply: returned, not raised, because it is data."""

    message: str


@dataclass(slots=True)
class _Level:
    """An array that is still open. An attribute only describes the reply that follows it, and is dropped."""

    missing: int
    attribute: bool
    items: list[Any] = field(default_factory=list)


def pack(commands: Sequence[Sequence[Bytes | str | int]]) -> bytes:
    """A pipeline of commands as arrays of bulk strings."""
    out = bytearray()
    for command in commands:
        out += b"*%d\r\n" % len(command)
        for word in command:
            data = bytes(word) if isinstance(word, Bytes) else str(word).encode()
            out += b"$%d\r\n%b\r\n" % (len(data), data)
    return bytes(out)


@final
class Replies:
    """Replies of at most `limit` bytes each, out of a byte stream."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = bytearray()  # of an unfinished element
        self._used = 0  # bytes of the current reply whose elements are done
        self._open: list[_Level] = []
        self._dead: CodecError | None = None

    @property
    def pending(self) -> int:
        """Bytes of the unfinished reply so far."""
        return self._used + len(self._held)

    def feed(self, data: Bytes) -> list[Any]:
        """All replies that `data` completes.

        Simple string to str, bulk and verbatim string to bytes, integer and big number to int, array, set and push to
        list, map to a list of keys and values in turn, null to None, double to float, bool to bool, error to
        ReplyError. Raises BAD_RESP, OVERSIZE; the object is then dead and raises the same again.
        """
        if self._dead is not None:
            raise CodecError(self._dead.code, self._dead.message)
        self._held += data
        replies: list[Any] = []
        try:
            while (size := self._element_size()) is not None:
                element = bytes(self._held[:size])
                del self._held[:size]
                self._used += size
                self._take(element, replies)
        except CodecError as error:
            self._dead = error
            raise
        return replies

    def _element_size(self) -> int | None:
        """Bytes of the element at the front of what is held, or None if it is not all there."""
        room = self._limit - self._used
        end = self._held.find(b"\r\n")
        size = end + 2
        if end < 0 or size > room:
            if len(self._held) > room:
                raise CodecError("OVERSIZE", f"a reply is larger than {self._limit} bytes")
            return None
        if self._held[0] in BULKS and self._held[1:end] != b"-1":
            size += _length(bytes(self._held[1:end])) + 2
            if size > room:
                raise CodecError("OVERSIZE", f"a reply is larger than {self._limit} bytes")
        return size if size <= len(self._held) else None

    def _take(self, element: bytes, replies: list[Any]) -> None:
        """Use up one whole element."""
        line, _, body = element.partition(b"\r\n")
        kind, text = line[:1], line[1:]
        if kind and kind in ARRAYS and text != b"-1":
            value: Any = self._enter(kind, _length(text))
            if value is None:
                return
        elif kind and kind in BULKS and text != b"-1":
            value = _bulk(kind, body)
        else:
            value = _scalar(kind, text)
        while self._open:
            level = self._open[-1]
            level.items.append(value)
            level.missing -= 1
            if level.missing:
                return
            self._open.pop()
            if level.attribute:
                return
            value = level.items
        self._used = 0
        replies.append(value)

    def _enter(self, kind: bytes, count: int) -> list[Any] | None:
        """Open an array, unless it is an empty one, which is returned. Maps and attributes count pairs."""
        count *= 2 if kind in b"%|" else 1
        if len(self._open) == DEEPEST:
            raise CodecError("BAD_RESP", "arrays are nested too deeply")
        if count > (self._limit - self._used) // SMALLEST:
            raise CodecError("OVERSIZE", f"a reply is larger than {self._limit} bytes")
        if count:
            self._open.append(_Level(count, kind == b"|"))
        return [] if count == 0 and kind != b"|" else None


def _bulk(kind: bytes, body: bytes) -> bytes | ReplyError:
    if not body.endswith(b"\r\n"):
        raise CodecError("BAD_RESP", "a bulk string does not end where it should")
    body = body[:-2]
    if kind == b"=":
        if body[3:4] != b":":
            raise CodecError("BAD_RESP", "a verbatim string without its format")
        return body[4:]
    return body if kind == b"$" else ReplyError(_text(body))


def _scalar(kind: bytes, text: bytes) -> Any:
    match kind:
        case b"+":
            return _text(text)
        case b"-":
            return ReplyError(_text(text))
        case b":":
            return _integer(text)
        case b"(" if NUMBER.fullmatch(text):
            return int(text)
        case b"," if DOUBLE.fullmatch(text):
            return float(text)
        case b"#" if text in (b"t", b"f"):
            return text == b"t"
        case b"_" if not text:
            return None
        case b"$" | b"*" if text == b"-1":
            return None
    raise CodecError("BAD_RESP", "a line that is no reply")


def _text(data: bytes) -> str:
    """Redis puts what it was sent into its messages, so they need not be UTF-8."""
    return data.decode(errors="replace")


def _integer(text: bytes) -> int:
    if not NUMBER.fullmatch(text) or not -(1 << 63) <= int(text) < 1 << 63:
        raise CodecError("BAD_RESP", "not an integer of 64 bits")
    return int(text)


def _length(text: bytes) -> int:
    length = _integer(text)
    if length < 0:
        raise CodecError("BAD_RESP", "a length below zero")
    return length
