"""A JSON object as headers. Source: RFC 8259."""

import json
import re
from collections.abc import Callable

from korvet_reference.records import Headers

DEEPEST = 32  # objects and arrays inside one another
SPACE = re.compile(r"[ \t\n\r]*")
STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
SCALAR = re.compile(r"true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
CLOSING = {"{": "}", "[": "]"}


class _NotJsonError(Exception):
    """The text cannot be read as JSON headers."""


def read_members(data: bytes) -> Headers | None:
    """The members of an object in their order: strings as text, null as None, anything else as the JSON it is.

    None if this is no JSON object, is nested too deeply, or holds half a character.
    """
    headers: Headers = []

    def member(at: int) -> int:
        middle = _skip(text, STRING, at)
        begin = _skip_colon(text, middle)
        end = _skip_value(text, begin, 1)
        written = text[begin:end]
        value = json.loads(written) if written.startswith('"') else None if written == "null" else written
        headers.append((json.loads(text[at:middle]).encode(), None if value is None else value.encode()))
        return end

    try:
        text = data.decode()
        end = _skip_list(text, _skip(text, SPACE, 0), "{", member)
    except (_NotJsonError, UnicodeError):
        return None
    return headers if _skip(text, SPACE, end) == len(text) else None


def _skip(text: str, what: re.Pattern[str], at: int) -> int:
    """The position behind what must stand at `at`."""
    found = what.match(text, at)
    if found is None:
        raise _NotJsonError
    return found.end()


def _skip_colon(text: str, at: int) -> int:
    at = _skip(text, SPACE, at)
    if not text.startswith(":", at):
        raise _NotJsonError
    return _skip(text, SPACE, at + 1)


def _skip_list(text: str, at: int, opening: str, member: Callable[[int], int]) -> int:
    """The position behind an object or array; `member` gives the position behind the member at a position."""
    if not text.startswith(opening, at):
        raise _NotJsonError
    at = _skip(text, SPACE, at + 1)
    if text.startswith(CLOSING[opening], at):
        return at + 1
    while True:
        at = _skip(text, SPACE, member(at))
        if not text.startswith(",", at):
            break
        at = _skip(text, SPACE, at + 1)
    if not text.startswith(CLOSING[opening], at):
        raise _NotJsonError
    return at + 1


def _skip_value(text: str, at: int, depth: int) -> int:
    """The position behind a value inside of `depth` others."""
    kind = text[at : at + 1]
    if kind == '"':
        return _skip(text, STRING, at)
    if kind not in ("{", "["):
        return _skip(text, SCALAR, at)
    if depth == DEEPEST:
        raise _NotJsonError

    def member(at: int) -> int:
        begin = _skip_colon(text, _skip(text, STRING, at)) if kind == "{" else at
        return _skip_value(text, begin, depth + 1)

    return _skip_list(text, at, kind, member)
