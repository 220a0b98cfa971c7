"""`sasl.jaas.config` of Kafka's Java clients, in which people have what they log in with by SASL."""

import re
from collections.abc import Mapping
from typing import Final

_MODULES: Final = {
    "org.apache.kafka.common.security.plain.PlainLoginModule": ("PLAIN",),
    "org.apache.kafka.common.security.scram.ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512"),
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule": ("OAUTHBEARER",),
}
_FORM: Final = 'MODULE required username="NAME" password="PASSWORD"; with one semicolon, at its end'
_TOKEN: Final = re.compile(r'\s*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<word>[^\s"=;]+)|(?P<sign>[=;]))', re.DOTALL)


def read_jaas(text: str, mechanism: str) -> tuple[str, str]:
    """The name and the password. Raises `ValueError` with what such a text must be; it does not quote the text."""
    found = read_options(text, mechanism)
    if not found.get("username") or "password" not in found:
        raise ValueError(_FORM)
    return found["username"], found["password"]


def read_options(text: str, mechanism: str) -> Mapping[str, str]:
    """The options of the mechanism's module. Raises as `read_jaas`."""
    words = _split(text)
    if len(words) < 2 or words[-1] != ";" or ";" in words[:-1]:
        raise ValueError(_FORM)
    module, options = words[0], words[2:-1]
    if mechanism not in _MODULES.get(module, ()):
        fit = [name for name, mechanisms in _MODULES.items() if mechanism in mechanisms]
        raise ValueError(f"of a module for sasl.mechanism={mechanism}, which is {' or '.join(fit)}")
    if len(options) % 3 or any(sign != "=" for sign in options[1::3]):
        raise ValueError(_FORM)
    return dict(zip(options[0::3], options[2::3], strict=True))


def _split(text: str) -> list[str]:
    """Words, texts without their quotes, = and ;. Raises `ValueError`."""
    words, position, text = [], 0, text.strip()
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise ValueError(f"{_FORM}, and no quote that stands alone")
        quoted = found["quoted"]
        words.append(found[0].strip() if quoted is None else re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL))
        position = found.end()
    return words
