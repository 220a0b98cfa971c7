"""Log lines that peers can provoke: one of a kind in an interval, with the number of lines left out (a leaf)."""

import logging
from collections.abc import Callable

from korvet_fast.printable import printable as escape

LONGEST = 300  # characters of one line


def printable(text: str) -> str:
    """`text` on one line of at most `LONGEST` characters, without control characters (they could forge log lines)."""
    return escape(text[:LONGEST])[:LONGEST]


class RateLimitedLog:
    """Logs at most one line per `kind` in `interval` seconds.

    A kind is a sentence without the names and numbers in it: the same for all partitions that fail for one reason.
    """

    def __init__(self, now: Callable[[], float], interval: float = 10.0, log: str = "korvet_fast") -> None:
        """`log`: the name of the logger."""
        self._now = now
        self._interval = interval
        self._log = logging.getLogger(log)
        self._last: dict[str, float] = {}
        self._left_out: dict[str, int] = {}

    def warn(self, kind: str, text: str) -> None:
        """A warning."""
        self._say(logging.WARNING, kind, text, None)

    def fail(self, kind: str, text: str) -> None:
        """Something that a person has to mend."""
        self._say(logging.ERROR, kind, text, None)

    def error(self, kind: str, text: str, error: BaseException) -> None:
        """An unexpected error, with its traceback."""
        self._say(logging.ERROR, f"{kind} {type(error).__name__}", text, error)

    def _say(self, level: int, kind: str, text: str, error: BaseException | None) -> None:
        now = self._now()
        if kind in self._last and now - self._last[kind] < self._interval:
            self._left_out[kind] = self._left_out.get(kind, 0) + 1
            return
        self._last[kind] = now
        more = self._left_out.pop(kind, 0)
        left_out = f" (and {more} more like it since the last line)" if more else ""
        self._log.log(level, "%s%s", printable(text), left_out, exc_info=error)
