"""The bytes of requests that all connections of a server hold together, and who may read when they are too many."""

from typing import Protocol


class Reader(Protocol):
    """A connection, as the pool sees it."""

    def regulate(self) -> None:
        """Look again whether reading is allowed, and stop or go on reading accordingly."""


class Pool:
    """`queued.max.request.bytes`: while more are held, sockets are not read, except one.

    The one that may go on is the first that found the pool full. Without it, connections that each hold a
    part of a request could wait for each other for ever. So at most `limit`, one request and one read window are held.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._favoured: Reader | None = None
        self._waiting: dict[Reader, None] = {}

    def take(self, size: int) -> None:
        """Count `size` bytes more; negative gives bytes back."""
        self.used += size
        if size < 0 and self._waiting and self.used <= self.limit:
            waiting, self._waiting = self._waiting, {}
            for reader in waiting:
                reader.regulate()

    def admits(self, reader: Reader, *, unfinished: bool) -> bool:
        """Whether `reader` may read on; if not, it is told by `regulate` when that may have changed.

        `unfinished`: it holds the first part of a request, and nobody can finish that but its peer.
        """
        if self._favoured is reader and not unfinished:
            self._favoured = None
            self._favour_next()
        if self.used <= self.limit or self._favoured is reader:
            self._waiting.pop(reader, None)
            return True
        if self._favoured is None and unfinished:
            self._favoured = reader
            self._waiting.pop(reader, None)
            return True
        self._waiting[reader] = None
        return False

    def forget(self, reader: Reader) -> None:
        """The connection is gone."""
        self._waiting.pop(reader, None)
        if self._favoured is reader:
            self._favoured = None
            self._favour_next()

    def _favour_next(self) -> None:
        for reader in list(self._waiting):
            reader.regulate()
            if self._favoured is not None:
                return
