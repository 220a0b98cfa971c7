"""How `consume` writes a record: its value, JSON, or a template in kcat's letters."""

import base64
import re
from collections.abc import Callable
from typing import Final, TypeAlias

import click

from korvet_fast.client.consumer import Record
from korvet_fast.printable import printable, to_json

RecordFormat: TypeAlias = Callable[[Record], bytes]
Show: TypeAlias = Callable[[bytes], bytes]

LETTERS: Final = (
    "%t topic, %p partition, %o offset, %T time in ms, %k key, %K its bytes, %s value, %S its bytes, %h headers"
)
_ESCAPES: Final = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}
_PIECES: Final = re.compile(r"%(?P<field>.?)|\\x(?P<hex>[0-9a-fA-F]{2})|\\(?P<escape>.?)|(?P<text>[^%\\]+)", re.DOTALL)


def raw_format(key_separator: bytes | None, terminal: bool) -> RecordFormat:
    """The value and a line end; with a separator, the key and the separator before it."""
    show = _show if terminal else bytes
    if key_separator is None:
        return lambda record: show(record.value or b"") + b"\n"
    between = key_separator
    return lambda record: show(record.key or b"") + between + show(record.value or b"") + b"\n"


def json_format(topic: str) -> RecordFormat:
    """An object on a line. What is not UTF-8 is written as {"base64": "..."}; `produce --json` reads the same."""

    def write(record: Record) -> bytes:
        fields = {
            "topic": topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": record.timestamp,
            "key": _text(record.key),
            "value": _text(record.value),
            "headers": [[name, _text(value)] for name, value in record.headers],
        }
        return to_json(fields).encode() + b"\n"

    return write


def template_format(template: str, topic: str, terminal: bool) -> RecordFormat:
    r"""What a template says, without a line end of its own. Raises `click.UsageError`.

    `LETTERS` says which fields there are; `\n`, `\t`, `\r`, `\0`, `\\` and `\x1f` are bytes, `%%` is a percent sign.
    """
    show: Show = _show if terminal else bytes
    pieces = [_read_piece(piece, topic, show) for piece in _PIECES.finditer(template)]
    return lambda record: b"".join([piece if isinstance(piece, bytes) else piece(record) for piece in pieces])


def _read_piece(piece: re.Match[str], topic: str, show: Show) -> bytes | RecordFormat:
    if (text := piece["text"]) is not None:
        return text.encode()
    if (digits := piece["hex"]) is not None:
        return bytes.fromhex(digits)
    if (escape := piece["escape"]) is not None:
        if escape not in _ESCAPES:
            raise click.UsageError(rf"--format: \{escape} is no escape; there are \n, \t, \r, \0, \\ and \x1f")
        return _ESCAPES[escape]
    if piece["field"] == "%":
        return b"%"
    fields: dict[str, RecordFormat] = {
        "t": lambda _: topic.encode(),
        "p": lambda record: b"%d" % record.partition,
        "o": lambda record: b"%d" % record.offset,
        "T": lambda record: b"%d" % record.timestamp,
        "k": lambda record: show(record.key or b""),
        "K": lambda record: b"%d" % _size(record.key),
        "s": lambda record: show(record.value or b""),
        "S": lambda record: b"%d" % _size(record.value),
        "h": lambda record: b",".join(
            show(name.encode()) + b"=" + show(value or b"") for name, value in record.headers
        ),
    }
    if piece["field"] not in fields:
        raise click.UsageError(f"--format: %{piece['field']} is no field; there are {LETTERS}")
    return fields[piece["field"]]


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _show(data: bytes) -> bytes:
    """Bytes for a terminal: one line of printable letters; bytes that are not UTF-8 appear as \\xff."""
    return printable(str(data, "utf-8", "backslashreplace")).encode()


def _text(data: bytes | None) -> str | dict[str, str] | None:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
