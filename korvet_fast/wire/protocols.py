"""Foreign protocols by their clients' first bytes: what to tell an operator whose client has the wrong port.

Each dialect has its own first bytes; `wire.dialects` knows all of them.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from korvet_fast.wire.dialect import FirstBytes

# Most of these would be refused as the length of a frame too, but in words that nobody understands.
FOREIGN: Final[Mapping[str, FirstBytes]] = {
    "http": FirstBytes(re.compile(rb"(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|CONNECT|TRACE) "), "an HTTP request"),
    "http2": FirstBytes(re.compile(rb"PRI "), "an HTTP/2 connection"),
    "tls": FirstBytes(re.compile(rb"\x16\x03"), "a TLS handshake, which belongs to a listener +tls"),
    "ssh": FirstBytes(re.compile(rb"SSH-"), "an SSH client"),
    "redis": FirstBytes(re.compile(rb"\*"), "a Redis client"),
}


def find_protocol(first: bytes, known: Iterable[FirstBytes], listener: str) -> str | None:
    """Say, for the log, which of the `known` protocols the first bytes of a connection look like; None: none of them.

    `listener`: the words for the listener that got them.
    """
    for pattern, words in known:
        if pattern.match(first):
            return f"this is {listener}, and the first bytes look like {words}"
    return None
