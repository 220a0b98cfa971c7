"""Reads certificates (X.509): the subject, as Java writes it, and the time for which one is good.

Java: `X500Principal.getName()`, which is RFC 2253, but that UTF-16 is not taken for UTF-8. The package cryptography can
do neither: it writes other names, and takes 9 MB of each broker and 50 ms of its start.
"""

import re
from base64 import b64decode
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

# DER (X.690) and the names of attributes that RFC 2253 has.
_SEQUENCE, _SET, _OID, _UTC_TIME, _VERSION = 0x30, 0x31, 0x06, 0x17, 0xA0
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
_PEM: Final = re.compile("-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----(.*?)-----END", re.DOTALL)


def read_pem(text: str) -> list[bytes]:
    """The certificates (DER) of a file in PEM. Raises `ValueError`."""
    return [b64decode(found) for found in _PEM.findall(text)]


def read_subject(certificate: bytes) -> str:
    """The subject of a certificate (DER) as RFC 2253 writes it. Raises `ValueError`."""
    relative = [_items(value) for _, value in _items(_only(_read_fields(certificate)[4:5], _SEQUENCE))]
    return ",".join("+".join(_write(value) for _, value in names) for names in reversed(relative))


def read_period(certificate: bytes) -> tuple[datetime, datetime]:
    """The times (UTC) from and until which a certificate (DER) is good. Raises `ValueError`."""
    begins, ends = _items(_only(_read_fields(certificate)[3:4], _SEQUENCE))
    return _read_time(*begins), _read_time(*ends)


def _read_fields(certificate: bytes) -> list[tuple[int, bytes]]:
    """Serial number, signature, issuer, validity, subject, and more."""
    whole = _items(certificate)[:1]  # behind one that is a TRUSTED CERTIFICATE of OpenSSL's stands what it is good for
    fields = _items(_only(_items(_only(whole, _SEQUENCE))[:1], _SEQUENCE))
    if fields and fields[0][0] == _VERSION:
        fields = fields[1:]
    if len(fields) < 5:
        raise ValueError("its certificate has no subject")
    return fields


def _read_time(kind: int, value: bytes) -> datetime:
    """A time as RFC 5280 has it."""
    text = value.decode("ascii")
    if kind == _UTC_TIME:  # with two digits of the year
        text = f"{'19' if text >= '50' else '20'}{text}"
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)


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
