"""Protocols by the first bytes that their clients send: what to tell an operator whose client has the wrong port."""

import re
from collections.abc import Mapping
from typing import Final

# Most of these would be refused as the length of a frame too, but in words that nobody understands.
_FIRST_BYTES: Final[Mapping[str, tuple[re.Pattern[bytes], str]]] = {
    "http": (re.compile(rb"(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|CONNECT|TRACE) "), "an HTTP request"),
    "http2": (re.compile(rb"PRI "), "an HTTP/2 connection"),
    "tls": (re.compile(rb"\x16\x03"), "a TLS handshake"),
    "ssh": (re.compile(rb"SSH-"), "an SSH client"),
    "redis": (re.compile(rb"\*"), "a Redis client"),
    "text": (re.compile(rb"V1\|"), "the text protocol"),
    # The length of an ApiVersions request, its key and its version. Every client since Kafka 0.10 sends that first.
    "kafka": (re.compile(rb"\0...\0\x12\0[\0-\x1f]", re.DOTALL), "a Kafka client"),
}


def detect_protocol(first: bytes, own: str, listener: str) -> str | None:
    """Say, for the log, which foreign protocol the first bytes of a connection look like; None: none that is known.

    `own`: the name of the protocol that is spoken here; `listener`: the words for a listener of it.
    """
    for protocol, (pattern, words) in _FIRST_BYTES.items():
        if protocol != own and pattern.match(first):
            return f"this is {listener}, and the first bytes look like {words}"
    return None
