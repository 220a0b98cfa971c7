"""How `produce` reads lines: each a value, or a key and a value, or a JSON object as `consume --json` writes it."""

import base64
import binascii
import json
from typing import Any, Final

import click

from korvet_fast.cli.assignment import split_assignments
from korvet_fast.client.producer import Message
from korvet_fast.client.producer.message import Headers
from korvet_fast.client.protocol.errors import ClientError

_FIELDS: Final = ("key", "value", "headers", "partition", "timestamp")
_IGNORED: Final = ("topic", "offset")  # `consume --json` writes them


def parse_headers(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> Headers:
    """Parse any number of NAME=VALUE. Raises `click.BadParameter`."""
    pairs = split_assignments(given, " is not NAME=VALUE, such as source=web")
    return [(name, value.encode(errors="surrogateescape")) for name, value in pairs]


def parse_separator(context: click.Context, parameter: click.Parameter, text: str | None) -> bytes | None:
    r"""Parse a text in which \t is a tab. Raises `click.BadParameter`."""
    if text == "":
        raise click.BadParameter("an empty text separates nothing; give one such as ':' or '\\t'")
    return None if text is None else text.replace("\\t", "\t").encode(errors="surrogateescape")


def split_keys(lines: list[bytes], separator: bytes, first: int) -> tuple[list[bytes], list[bytes]]:
    """The keys and the values of lines. `first`: the number of the first line. Raises `ClientError` for one without."""
    cells = [line.partition(separator) for line in lines]
    if not all(found for _, found, _ in cells):
        index = next(index for index, cell in enumerate(cells) if not cell[1])
        raise ClientError(
            f"line {first + index:,} has no {separator.decode(errors='replace')!r} between key and value: give another "
            "--key-separator, or none"
        )
    return [key for key, _, _ in cells], [value for _, _, value in cells]


def read_json(topic: str, line: bytes, number: int) -> Message:
    """The message of a JSON line. `number`: of the line. Raises `ClientError`."""
    try:
        fields = json.loads(line)
        if not isinstance(fields, dict):
            raise TypeError(f"is {_kind(fields)}, not an object")
        for name in fields:
            if name not in (*_FIELDS, *_IGNORED):
                raise TypeError(f"has a field {name!r}; there are {', '.join(_FIELDS)}")
        return Message(
            topic,
            _bytes("value", fields.get("value")),
            _bytes("key", fields.get("key")),
            _headers(fields.get("headers") or []),
            _number("partition", fields.get("partition"), (1 << 31) - 1),
            _number("timestamp", fields.get("timestamp"), (1 << 63) - 1),
        )
    except json.JSONDecodeError as error:
        raise ClientError(f"line {number:,} is not JSON: {error.msg}, at character {error.pos + 1}") from None
    except (TypeError, UnicodeDecodeError) as error:
        why = "is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        raise ClientError(f"line {number:,} {why}") from None


def _bytes(name: str, value: Any) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode(errors="surrogatepass")
    if isinstance(value, dict) and value.keys() == {"base64"} and isinstance(value["base64"], str):
        try:
            return base64.b64decode(value["base64"], validate=True)
        except binascii.Error:
            raise TypeError(f"has a {name} whose base64 cannot be read") from None
    raise TypeError(f'has a {name} that is {_kind(value)}, but must be a string, {{"base64": "..."}} or null')


def _headers(value: Any) -> Headers:
    if isinstance(value, dict):
        value = list(value.items())
    if not isinstance(value, list) or not all(
        isinstance(pair, list | tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in value
    ):
        raise TypeError('has headers that are neither an object nor pairs, such as [["source", "web"]]')
    return [(name, _bytes(f"header {name!r}", content)) for name, content in value]


def _number(name: str, value: Any, highest: int) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= highest:
        raise TypeError(f"has a {name} that is no whole number from 0 to {highest:,}")
    return value


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    kinds = {dict: "an object", list: "a list", str: "a string", int: "a number", float: "a number"}
    return kinds.get(type(value), "null")
