"""The arguments of a command, read by the same line that tells people how to write them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias

_MOST: Final = (1 << 63) - 1
_DIGITS: Final = 19  # digits that a number may have

Arguments: TypeAlias = dict[str, str | int]


class BadArguments(Exception):
    """The text says what is wrong, in words of ours."""


def _read_number(name: str, word: str) -> int:
    # `isdecimal` alone would take the digits of all scripts, and `int` alone signs, blanks and underscores.
    if word.isascii() and word.isdecimal() and len(word) <= _DIGITS and (number := int(word)) <= _MOST:
        return number
    raise BadArguments(f"{name} is a whole number from 0 to {_MOST}")


_Read: TypeAlias = Callable[[str], str | int]


def _reader(name: str, rule: str) -> _Read:
    """`rule`: `n` for a number, `one|other` for a choice, anything else for a word."""
    if rule == "n":
        return partial(_read_number, name)
    if "|" not in rule:
        return str
    choices = rule.split("|")

    def choose(word: str) -> str:
        if word not in choices:
            raise BadArguments(f"{name} is one of {', '.join(choices)}")
        return word

    return choose


_NUMBERS: Final = (
    "partition",
    "offset",
    "generation",
    "replica_id",
    "broker_id",
)  # words of a usage that stand for numbers


@dataclass(frozen=True)
class Usage:
    """How a command is written, as `topic partition [max=n] [encoding=plain|base64]`, and what reads it so.

    A word that names choices is called `role`.
    """

    text: str
    _words: list[tuple[str, _Read]] = field(default_factory=list, init=False)
    _options: dict[str, _Read] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        for part in self.text.split():
            if part.startswith("["):
                name, _, rule = part.strip("[]").partition("=")
                self._options[name] = _reader(name, rule)
            else:
                name = "role" if "|" in part else part
                self._words.append((name, _reader(name, "n" if name in _NUMBERS else part)))

    def read(self, text: str) -> Arguments:
        """The arguments by name; options that are not there are left out. Raises `BadArguments`."""
        most = len(self._words) + len(self._options)
        words = text.split(" ", most) if text else []
        if not len(self._words) <= len(words) <= most or "" in words:
            raise BadArguments(f"write: {self.text or 'nothing'}; one blank between two arguments")
        found: Arguments = {name: read(word) for (name, read), word in zip(self._words, words, strict=False)}
        if len(words) > len(self._words):
            self._read_options(words[len(self._words) :], found)
        return found

    def _read_options(self, words: list[str], found: Arguments) -> None:
        options: Mapping[str, _Read] = self._options
        for word in words:
            name, equals, value = word.partition("=")
            if not equals or name not in options or name in found:
                raise BadArguments(f"write: {self.text}; each option once")
            found[name] = options[name](value)
