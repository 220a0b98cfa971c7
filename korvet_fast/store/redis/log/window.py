"""What is on its way to one server: large appends wait while there is much, so that small ones do not wait behind them.

A server carries out one command after the other. Hundreds of appends of a megabyte that come in one moment would keep
it for as long as they take, and every other client with it.
"""

from korvet_fast.store.redis.log.log import Log

SMALL = 64 << 10  # bytes of a transaction that never waits
FULL = 4 << 20  # bytes on their way that keep a server busy: only small transactions are added


class Window:
    """The appends sent to one server and not answered, and the logs that wait until there are fewer."""

    __slots__ = ("_bytes", "_taken", "_waiting")

    def __init__(self) -> None:
        self._bytes = 0
        self._waiting: dict[Log, None] = {}  # the one that waits longest comes first
        self._taken: Log | None = None  # the one whose turn it is

    def begin(self, log: Log, size: int) -> bool:
        """Count an append of so many bytes as sent; or say no, and have the log wait."""
        # A log that never waits would take the room that each answer makes, and others would wait for ever.
        if size > SMALL and (self._bytes >= FULL or (self._waiting and log is not self._taken)):
            self._waiting[log] = None
            return False
        self._taken = None
        self._bytes += size
        return True

    def end(self, size: int) -> None:
        """An append of so many bytes was answered, or lost."""
        self._bytes -= size

    def take(self) -> Log | None:
        """The log that may send now, if there is one; it does not wait any more."""
        if not self._waiting or self._bytes >= FULL:
            return None
        log = next(iter(self._waiting))
        del self._waiting[log]
        self._taken = log
        return log
