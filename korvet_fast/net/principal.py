"""The name of a client by its certificate: Kafka's rules that shorten the subject (KIP-371, `SslPrincipalMapper`)."""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from korvet_fast._native import match_names
from korvet_fast.errors import CodecError, SettingError
from korvet_fast.net.x509 import read_subject

_SETTING: Final = "ssl.principal.mapping.rules"
_LONGEST: Final = 4096  # characters of a subject
_RULE: Final = re.compile(
    r"\s*(?:(?P<default>DEFAULT)|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<instead>(?:\\.|[^\\/])*)/(?P<case>[LU]?))"
    r"\s*(?:,|$)"
)
_INSTEAD: Final = re.compile(r"\\(?P<literal>.)|\$(?P<number>\d+)|(?P<plain>[^\\])", re.DOTALL)


class _Rule(NamedTuple):
    """`pattern`: of the whole subject, "" for DEFAULT. `instead`: parts, texts and numbers of groups. `case`: L, U."""

    pattern: str = ""
    instead: Sequence[str | int] = ()
    case: str = ""

    def apply(self, subject: str) -> str | None:
        """The name of `subject`, or None if the rule does not fit."""
        if not self.pattern:
            return subject
        # `re` backtracks, so it is asked only where the other, which needs linear time, has found that it fits.
        if not match_names(self.pattern, [subject]) or re.fullmatch(self.pattern, subject) is None:
            return None
        name = re.sub(self.pattern, self._expand, subject)
        return {"L": name.lower, "U": name.upper}[self.case]() if self.case else name

    def _expand(self, found: re.Match[str]) -> str:
        return "".join(part if isinstance(part, str) else found[part] or "" for part in self.instead)


class PrincipalRules:
    """The rules of ssl.principal.mapping.rules. Raises `SettingError`."""

    def __init__(self, text: str) -> None:
        self._rules = list(_read_rules(text))

    def name(self, certificate: bytes) -> str:
        """The principal of a certificate (DER). Raises `ValueError` if no rule fits, or it cannot be read."""
        subject = read_subject(certificate)
        if len(subject) > _LONGEST:
            raise ValueError(f"the subject of its certificate has {len(subject):,} characters")
        for rule in self._rules:
            if (name := rule.apply(subject)) is not None:
                return f"User:{name}"
        raise ValueError(f"no rule of {_SETTING} fits {subject}")


def _read_rules(text: str) -> Iterator[_Rule]:
    position = 0
    while position < len(text):
        found = _RULE.match(text, position)
        if found is None:
            raise SettingError(
                f"{_SETTING}: {text[position:]!r} is no rule; write DEFAULT, or RULE:PATTERN/REPLACEMENT/ with L or U "
                "behind it, and commas between rules"
            )
        position = found.end()
        yield _Rule() if found["default"] else _compile(found["pattern"], found["instead"], found["case"])


def _compile(pattern: str, instead: str, case: str) -> _Rule:
    try:
        match_names(pattern, [])
        groups = re.compile(pattern).groups
    except (CodecError, re.error) as error:
        why = error.message.splitlines()[-1] if isinstance(error, CodecError) else str(error)
        raise SettingError(f"{_SETTING}: {pattern!r} is no regular expression of linear time: {why}") from None
    return _Rule(pattern, list(_read_instead(instead, groups)), case)


def _read_instead(text: str, groups: int) -> Iterator[str | int]:
    """The parts of a replacement; as in Kafka `$N` is itself where there is no group N."""
    for found in _INSTEAD.finditer(text):
        if found["number"] is None:
            yield found["literal"] or found["plain"]
        elif int(found["number"]) <= groups:
            yield int(found["number"])
        else:
            yield found[0]
