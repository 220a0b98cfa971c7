"""Numbers, times and bytes as people read them; whatever is in a record, as text that does nothing."""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from korvet_fast.printable import printable

_SHOWN: Final = 4096  # characters of a value
_SHORT: Final = 200  # characters of a name, a key, a header
_PARSED: Final = 64 * 1024  # bytes of the largest value that may be shown as JSON
_HEX: Final = 256  # bytes of a value that is no text
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_UNKNOWN: Final = "\N{EN DASH}"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_OPENING: Final = ("{", "[")
_CLOSING: Final = ("}", "]")
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


class Cell(NamedTuple):
    """A value as it is shown. `kind`: json, text, binary, empty or null. `note`: what is not shown; "" for nothing."""

    kind: str
    text: str
    note: str = ""


def show_number(number: float | None) -> str:
    """With marks between thousands; a dash where it is not known."""
    return _UNKNOWN if number is None or number < 0 else f"{number:,.0f}"


def show_bytes(size: float | None) -> str:
    """In the unit that leaves few digits."""
    if size is None or size < 0:
        return _UNKNOWN
    unit = 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size /= 1024
        unit += 1
    return f"{size:,.0f} {_UNITS[unit]}" if unit == 0 or size >= 100 else f"{size:,.1f} {_UNITS[unit]}"


def show_rate(rate: float | None) -> str:
    """As `show_number`, with a decimal where that tells more."""
    return show_number(rate) if rate is None or rate == 0 or rate >= 10 else f"{rate:.1f}"


def show_time(ms: int) -> str:
    """Milliseconds since 1970 in UTC; the number itself where no calendar has such a year."""
    try:
        return (_EPOCH + timedelta(milliseconds=ms)).strftime("%Y-%m-%d %H:%M:%S.") + f"{ms % 1000:03}"
    except OverflowError:
        return f"{ms} ms"


def show_line(text: str) -> str:
    """A name as one short line."""
    line = printable(text[: _SHORT + 1])
    return line if len(text) <= _SHORT and len(line) <= _SHORT else f"{line[:_SHORT]}…"


def show_value(data: bytes | memoryview | None, most: int = _SHOWN) -> Cell:
    """A key, a value or a header's value; of a long one `most` characters."""
    if data is None:
        return Cell("null", "null")
    if not len(data):
        return Cell("empty", "empty")
    head = bytes(data[:_PARSED])
    whole = len(head) == len(data)
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        # A letter may have been cut in two at the end.
        if whole or error.start < len(head) - 3:
            return _show_binary(head, len(data))
        text = head[: error.start].decode()
    if whole and (json_text := _indent(text)) is not None:
        return _cut("json", json_text, len(data), most, whole)
    return _cut("text", text, len(data), most, whole)


def _show_binary(head: bytes, size: int) -> Cell:
    text = "\n".join(head[at : at + 16].hex(" ") for at in range(0, min(len(head), _HEX), 16))
    return Cell("binary", text, f"{size:,} bytes, the first {_HEX} are shown" if size > _HEX else "")


def _cut(kind: str, text: str, size: int, most: int, whole: bool) -> Cell:
    shown = "\n".join(map(printable, text[:most].split("\n")))
    cut = len(shown) > most or len(text) > most or not whole
    return Cell(kind, shown[:most], f"{size:,} bytes, the first {most:,} characters are shown" if cut else "")


def _indent(text: str) -> str | None:
    """JSON with each member on a line of its own, and numbers and strings as they were written; None if it is none."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return None
    parts: list[str] = []
    size = depth = 0
    before = ""
    for found in _TOKEN.finditer(text):
        part = found[0]
        if part in _CLOSING:
            depth -= 1
        if (before not in _OPENING) if part in _CLOSING else before in _OPENING or before == ",":
            parts.append("\n" + "  " * depth)
        parts.append(": " if part == ":" else part)
        size += len(part) + 2 * depth
        if size > 2 * _SHOWN:
            break  # what is deep takes many blanks, and nobody sees them
        depth += part in _OPENING
        before = part
    return "".join(parts)
