"""Java's .properties files, in which people keep the settings of Kafka's clients (java.util.Properties.load)."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from korvet_fast.errors import SettingError

_LARGEST: Final = 1 << 20  # bytes
_BLANK: Final = " \t\f"
_KEY: Final = re.compile(r"(?:[^\\=: \t\f]|\\.)*", re.DOTALL)
_SEPARATOR: Final = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|[^u])", re.DOTALL)
_CHARACTERS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_properties(file: Path) -> dict[str, str]:
    """Read the values by their keys; of two with one key the last. Raises `SettingError`."""
    try:
        with file.open("rb") as opened:
            data = opened.read(_LARGEST + 1)
    except OSError as error:
        raise SettingError(f"{file} cannot be read: {error.strerror}") from None
    if len(data) > _LARGEST:
        raise SettingError(f"{file} has more than {_LARGEST:,} bytes: it is no file of settings")
    found = {}
    for line in _join_lines(data.decode("latin-1")):  # as Kafka's tools read it; others are written \uXXXX
        key = _KEY.match(line)
        assert key is not None, "the pattern matches nothing as well"
        separator = _SEPARATOR.match(line, key.end())
        assert separator is not None, "this one, too"
        try:
            found[_unescape(key[0])] = _unescape(line[separator.end() :])
        except ValueError:
            raise SettingError(f"{file}: {key[0]} has a \\u without four hexadecimal digits behind it") from None
    return found


def _join_lines(text: str) -> Iterator[str]:
    """The lines that say something; those that go on with the next one, joined."""
    joined, continued = "", False
    for line in re.split(r"\r\n|\r|\n", text):
        line = line.lstrip(_BLANK)
        if not continued and (not line or line[0] in "#!"):
            continue
        joined += line
        continued = (len(joined) - len(joined.rstrip("\\"))) % 2 == 1
        if continued:
            joined = joined[:-1]
        else:
            yield joined
            joined = ""
    if joined:
        yield joined


def _unescape(text: str) -> str:
    if re.search(r"(?<!\\)(?:\\\\)*\\u(?![0-9a-fA-F]{4})", text):
        raise ValueError(text)
    return _ESCAPE.sub(lambda found: _read_escape(found[1]), text)


def _read_escape(escape: str) -> str:
    return chr(int(escape[1:], 16)) if len(escape) == 5 else _CHARACTERS.get(escape, escape)
