"""Log lines that peers can provoke: few of a kind in an interval, with the number of lines left out (a leaf)."""

import logging
from collections.abc import Callable

from korvet_fast.printable import printable as escape

LONGEST = 300  # characters of one line
SEVERAL = 10  # lines of one kind in an interval, of what changes data: a person makes no more by hand


def printable(text: str) -> str:
    """`text` on one line of at most `LONGEST` characters, without control characters (they could forge log lines)."""
    return escape(text[:LONGEST])[:LONGEST]


class RateLimitedLog:
    """Logs at most one line per `kind` in `interval` seconds; `SEVERAL` of what changes data.

    A kind is a sentence without the names and numbers in it: the same for all partitions that fail for one reason.
    """

    def __init__(self, now: Callable[[], float], interval: float = 10.0, log: str = "korvet_fast") -> None:
        """`log`: the name of the logger."""
        self._now = now
        self._interval = interval
        self._log = logging.getLogger(log)
        self._began: dict[str, float] = {}  # by kind: when the interval began, and its lines so far
        self._said: dict[str, int] = {}
        self._left_out: dict[str, int] = {}

    def tell(self, kind: str, text: str) -> None:
        """Something ordinary: a client changed data, or a partition was given up."""
        self._say(logging.INFO, kind, text, None, SEVERAL)

    def warn(self, kind: str, text: str) -> None:
        """A warning."""
        self._say(logging.WARNING, kind, text, None)

    def fail(self, kind: str, text: str) -> None:
        """Something that a person has to mend."""
        self._say(logging.ERROR, kind, text, None)

    def error(self, kind: str, text: str, error: BaseException) -> None:
        """An unexpected error, with its traceback."""
        self._say(logging.ERROR, f"{kind} {type(error).__name__}", text, error)

    def _say(self, level: int, kind: str, text: str, error: BaseException | None, most: int = 1) -> None:
        now = self._now()
        if kind not in self._began or now - self._began[kind] >= self._interval:
            self._began[kind], self._said[kind] = now, 0
        if self._said[kind] == most:
            self._left_out[kind] = self._left_out.get(kind, 0) + 1
            return
        self._said[kind] += 1
        more = self._left_out.pop(kind, 0)
        left_out = f" (and {more} more like it since the last line)" if more else ""
        self._log.log(level, "%s%s", printable(text), left_out, exc_info=error)
