"""Log lines that peers can provoke: one per kind and interval, with the number of those left out."""

import logging
from collections.abc import Callable

log = logging.getLogger("korvet_fast.net")

LONGEST = 300  # characters of one line


def printable(text: str) -> str:
    """`text` on one line of at most `LONGEST` characters, without control characters (they could forge log lines)."""
    plain = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text[:LONGEST])
    return plain if len(plain) <= LONGEST else plain[:LONGEST]


class Quiet:
    """`warn` logs at most one line per `kind` in `interval` seconds. Kinds are words of ours, so they are few."""

    def __init__(self, now: Callable[[], float], interval: float = 10.0) -> None:
        self._now = now
        self._interval = interval
        self._last: dict[str, float] = {}
        self._left_out: dict[str, int] = {}

    def warn(self, kind: str, text: str) -> None:
        now = self._now()
        if kind in self._last and now - self._last[kind] < self._interval:
            self._left_out[kind] = self._left_out.get(kind, 0) + 1
            return
        self._last[kind] = now
        more = self._left_out.pop(kind, 0)
        log.warning("%s%s", printable(text), f" (and {more} more like it since the last line)" if more else "")
