"""One setting: its kind, its legal values, how it is read and shown."""

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

Value: TypeAlias = bool | int | str

_WHOLE = re.compile(r"-?[0-9]{1,19}")
# How alike two names are, by difflib: below, they only share words, as sasl.kerberos.service.name and sasl.username.
_MISTYPED = 0.7


class Kind(Enum):
    """The type of a config's value, in Kafka's words."""

    BOOLEAN = "boolean"
    INT = "int"
    LONG = "long"
    DOUBLE = "double"
    STRING = "string"
    LIST = "list"


@dataclass(frozen=True, slots=True)
class Setting:
    """A row: name, kind, default, legal values, and a sentence. `topic`: the topic's setting, "" if there is none.

    `choices`: all legal texts; where there is a `pattern`, a regular expression, they are examples.
    `fixed`: a topic gets it when it is created, and keeps it whatever the broker's value becomes.
    `effect`: whether anything here depends on it; the others are kept and shown, as Kafka's tools want to find them.
    """

    name: str
    kind: Kind
    default: Value
    doc: str
    lowest: int = 0
    choices: tuple[str, ...] = ()
    topic: str = ""
    highest: int | None = None  # None: the bounds of the kind
    fixed: bool = False
    pattern: str = ""
    effect: bool = True

    @property
    def legal(self) -> str:
        """The legal values, in words."""
        if self.kind is Kind.BOOLEAN:
            return "true or false"
        if self.kind in (Kind.INT, Kind.LONG):
            return f"a whole number from {self.lowest} to {self._highest}"
        return ("as in " if self.pattern else "one of ") + ", ".join(self.choices)

    @property
    def _highest(self) -> int:
        return self.highest if self.highest is not None else (1 << (31 if self.kind is Kind.INT else 63)) - 1

    def parse(self, given: object) -> Value:
        """Text (or TOML's own bool or int) -> the value. Raises `ValueError` with the legal values."""
        text = show(given).strip() if isinstance(given, bool | int | str) else ""
        if self.kind is Kind.BOOLEAN and text.lower() in ("true", "false"):
            return text.lower() == "true"
        if self.kind in (Kind.INT, Kind.LONG) and _WHOLE.fullmatch(text) and self.lowest <= int(text) <= self._highest:
            return int(text)
        if self.kind is Kind.LIST:
            text = ",".join(item.strip() for item in text.split(","))
        if text in self.choices or (self.pattern and isinstance(given, str) and re.fullmatch(self.pattern, text)):
            return text
        raise ValueError(f"is {_short(given)}, but must be {self.legal}")


def show(value: Value) -> str:
    """A value as it is written: true, 42, text."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _short(given: object) -> str:
    text = repr(given)
    return text if len(text) <= 80 else text[:77] + "..."


def explain_unknown(name: str, known: Iterable[str], document: str = "") -> str:
    """The name, quoted and cut to a readable length, and which known one it may have been meant for.

    `document`: where all known ones are.
    """
    close = difflib.get_close_matches(name[:80], list(known), 1, _MISTYPED)
    meant = f"; did you mean {close[0]!r}?" if close else ""
    elsewhere = f"{'' if close else ';'} {document} has all of them" if document else ""
    return f"{_short(name)}{meant}{elsewhere}"
