"""Redis's wire format. Source: https://redis.io/docs/latest/develop/reference/protocol-spec/ (RESP2 and RESP3)."""

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, final

from korvet_fast.errors import CodecError
from korvet_reference.varint import Bytes

DEEPEST = 8
MOST_DIGITS = 1024
SMALLEST = 3  # bytes of the smallest reply
LARGE = 4096  # bytes of a part of its own
UNBOUND = (1 << 64) - 1  # where all is there already
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


def encode_commands(commands: Sequence[Sequence[Bytes | str | int]]) -> bytes:
    """A pipeline of commands as arrays of bulk strings."""
    return b"".join(b"*%d\r\n" % len(command) + b"".join(map(pack_word, command)) for command in commands)


def encode_command_parts(commands: Sequence[Sequence[Bytes | str | int]]) -> list[Bytes]:
    """As `encode_commands`, in parts: an argument of 4 KiB and more is one, and a buffer is the very object given."""
    parts: list[Bytes] = []
    packed = b""
    for command in commands:
        packed += b"*%d\r\n" % len(command)
        for word in command:
            data = _bytes(word)
            packed += b"$%d\r\n" % len(data)
            if len(data) < LARGE:
                packed += data
            else:
                parts += [packed, word if isinstance(word, Bytes) else data]
                packed = b""
            packed += b"\r\n"
    return [*parts, packed] if packed else parts


def pack_word(word: Bytes | str | int) -> bytes:
    """One bulk string."""
    data = _bytes(word)
    return b"$%d\r\n%b\r\n" % (len(data), data)


def _bytes(word: Bytes | str | int) -> bytes:
    return bytes(word) if isinstance(word, Bytes) else str(word).encode()


@final
class Replies:
    """Replies of at most `limit` bytes each, out of a byte stream, parsed or (`raw`) as they came."""

    def __init__(self, limit: int, raw: bool = False) -> None:
        self._limit = limit
        self._raw = raw
        self._held = bytearray()  # of an unfinished element
        self._used = 0  # bytes of the current reply whose elements are done
        self._open: list[_Level] = []
        self._dead: CodecError | None = None
        self._group = bytearray()  # the elements of an unfinished group
        self._missing = 0  # replies still to come of the group begun
        self._joined: deque[int] = deque()

    @property
    def pending(self) -> int:
        """Bytes of the unfinished reply so far, or of the unfinished group."""
        return (len(self._group) if self._raw else self._used) + len(self._held)

    def join(self, count: int) -> None:
        """The next `count` replies, after those joined before, come out of `feed` as one buffer.

        Raises BAD_VALUE for no replies, and where replies are parsed.
        """
        if count == 0 or not self._raw:
            raise CodecError("BAD_VALUE", "these replies cannot be joined")
        self._joined.append(count)

    def feed(self, data: Bytes) -> list[Any]:
        """All replies that `data` completes; if they are `raw`, a bytearray for each, or for each group of them.

        Simple string to str, bulk and verbatim string to bytes, integer and big number to int, array, set and push to
        list, map to a list of keys and values in turn, null to None, double to float, bool to bool, error to
        ReplyError. Raises BAD_RESP, OVERSIZE; the object is then dead and raises the same again.
        """
        if self._dead is not None:
            raise CodecError(self._dead.code, self._dead.message)
        self._held += data
        parsed: list[Any] = []
        raw: list[bytearray] = []
        try:
            self._begin()
            while (size := self._element_size()) is not None:
                element = bytes(self._held[:size])
                del self._held[:size]
                self._used += size
                self._take(element, parsed)
                if self._raw:
                    self._collect(element, parsed, raw)
        except CodecError as error:
            self._dead = error
            raise
        return raw if self._raw else parsed

    def _begin(self) -> None:
        """A group begins with its first byte, and then knows how many replies it has."""
        if self._held and self._missing == 0:
            self._missing = self._joined.popleft() if self._joined else 1

    def _collect(self, element: bytes, parsed: list[Any], raw: list[bytearray]) -> None:
        """Keep an element that was used up; whether a reply ended with it shows in `parsed`."""
        self._group += element
        self._missing -= len(parsed)
        parsed.clear()
        if self._missing == 0:
            raw.append(self._group)
            self._group = bytearray()
            self._begin()

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


def parse_reply(raw: Bytes) -> Any:
    """The reply at the front of `raw`; what follows it is not looked at. Raises TRUNCATED, BAD_RESP, OVERSIZE."""
    return _first(bytearray(raw))


def parse_replies(raw: Bytes) -> list[Any]:
    """All replies of `raw`, one behind the other. Raises TRUNCATED, BAD_RESP, OVERSIZE."""
    rest = bytearray(raw)
    found = []
    while rest:
        found.append(_first(rest))
    return found


def _first(rest: bytearray) -> Any:
    """The reply at the front, which is taken away."""
    parser = Replies(UNBOUND)
    parser._held = rest
    found: list[Any] = []
    while not found:
        size = parser._element_size()
        if size is None:
            raise CodecError("TRUNCATED", "the input ends inside a reply")
        element = bytes(rest[:size])
        del rest[:size]
        parser._take(element, found)
    return found[0]


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
