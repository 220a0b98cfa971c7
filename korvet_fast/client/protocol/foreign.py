"""Ports of other protocols by the first bytes of their answer: what to tell a person who has named the wrong one."""

from collections.abc import Mapping
from typing import Final

FIND_PORT: Final = "the broker's log names its Kafka port when it starts: ready kafka://HOST:PORT"

# By the first bytes, four at most: they stand where a broker's answer has its length.
_ANSWERS: Final[Mapping[bytes, str]] = {b"HTTP": "HTTP", b"V1|": "the text protocol"}


def explain_answer(first: bytes) -> str | None:
    """The protocol that the first four bytes of an answer look like, and what to do; None: none that is known."""
    found = next((protocol for begin, protocol in _ANSWERS.items() if first.startswith(begin)), None)
    return found and f"it speaks {found}; {FIND_PORT}"
