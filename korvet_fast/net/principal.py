"""The name of a client by its certificate: the subject as Java writes it, and Kafka's rules that shorten it (KIP-371).

Java: `X500Principal.getName()`, which is RFC 2253, but that UTF-16 is not taken for UTF-8. Kafka: `SslPrincipalMapper`.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from korvet_fast._native import match_names
from korvet_fast.errors import CodecError, SettingError

_SETTING: Final = "ssl.principal.mapping.rules"
_LONGEST: Final = 4096  # characters of a subject
_RULE: Final = re.compile(
    r"\s*(?:(?P<default>DEFAULT)|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<instead>(?:\\.|[^\\/])*)/(?P<case>[LU]?))"
    r"\s*(?:,|$)"
)
_INSTEAD: Final = re.compile(r"\\(?P<literal>.)|\$(?P<number>\d+)|(?P<plain>[^\\])", re.DOTALL)

# DER (X.690) and the names of attributes that RFC 2253 has.
_SEQUENCE, _SET, _OID, _VERSION = 0x30, 0x31, 0x06, 0xA0
_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_TEXTS: Final = {12: "utf-8", 19: "ascii", 20: "latin-1", 22: "ascii", 28: "utf-32-be", 30: "utf-16-be"}


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


def read_subject(certificate: bytes) -> str:
    """The subject of a certificate (DER) as RFC 2253 writes it. Raises `ValueError`."""
    fields = _items(_only(_items(_only(_items(certificate), _SEQUENCE))[:1], _SEQUENCE))
    if fields and fields[0][0] == _VERSION:
        fields = fields[1:]
    if len(fields) < 5:
        raise ValueError("its certificate has no subject")
    # Serial number, signature, issuer, validity, subject.
    relative = [_items(value) for _, value in _items(_only(fields[4:5], _SEQUENCE))]
    return ",".join("+".join(_write(value) for _, value in names) for names in reversed(relative))


def _items(data: bytes) -> list[tuple[int, bytes]]:
    """The tags and values of DER, one behind the other."""
    found = []
    while data:
        size, begin = data[1] if len(data) > 1 else 0x80, 2
        if size >= 0x80:
            begin += size & 0x7F
            if not 2 < begin <= 6 or begin > len(data):
                raise ValueError("its certificate is no DER")
            size = int.from_bytes(data[2:begin], "big")
        if begin + size > len(data):
            raise ValueError("its certificate is no DER")
        found.append((data[0], data[begin : begin + size]))
        data = data[begin + size :]
    return found


def _only(items: Sequence[tuple[int, bytes]], tag: int) -> bytes:
    if len(items) != 1 or items[0][0] != tag:
        raise ValueError("its certificate is no DER as X.509 has it")
    return items[0][1]


def _write(attribute: bytes) -> str:
    """One name and its value. Java writes values as text of attributes only that RFC 2253 names."""
    kind, value = _items(attribute)
    name = _read_oid(_only([kind], _OID))
    keyword, encoding = _KEYWORDS.get(name), _TEXTS.get(value[0])
    if keyword is None or encoding is None:
        return f"{keyword or name}=#{attribute[2 + len(kind[1]) :].hex()}"
    return f"{keyword}={_escape(value[1].decode(encoding))}"


def _read_oid(data: bytes) -> str:
    numbers, number = [], 0
    for byte in data:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(number)
            number = 0
    if not numbers:
        raise ValueError("its certificate is no DER as X.509 has it")
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _escape(text: str) -> str:
    """As `sun.security.x509.AVA` does: RFC 2253 wants = escaped nowhere, and # only in front."""
    escaped = re.sub(r'([,=+<>#;"\\])', r"\\\1", text)
    before = len(escaped) - len(escaped.lstrip(" "))
    inner = escaped.strip(" ")
    return "\\ " * before + inner.replace("\0", "\\00") + "\\ " * (len(escaped) - before - len(inner))
