"""The memory that the requests of all connections take together, and who must wait when it is too much."""

from collections.abc import Callable
from typing import Protocol


class Reader(Protocol):
    """A connection, as the pool sees it."""

    def go_on(self) -> None:
        """Look again what may be started and whether to read on."""


class Pool:
    """`queued.max.request.bytes`: requests that arrive or wait, the weight of those at work, replies not taken.

    While too much is held, sockets are not read and requests are not started, with two exceptions, without which
    everybody could wait for each other for ever: one reader, the first that found the pool full, may finish the
    request that it holds a part of, and one request may always be at work. So at most `limit`, one arriving request and
    the weight of one request are held. `relieve` is called when somebody has to wait: long polls can be answered early.
    """

    def __init__(self, limit: int, relieve: Callable[[], None]) -> None:
        self.limit = limit
        self.used = 0
        self.working = 0
        self._relieve = relieve
        self.favoured: Reader | None = None  # the one who may read although the pool is full
        self._waiting: dict[Reader, None] = {}
        self._waking = False

    @property
    def crowded(self) -> bool:
        """Whether somebody waits."""
        return bool(self._waiting)

    def take(self, size: int) -> None:
        """So many bytes more arrived, or (negative) are held no longer."""
        self.used += size
        if size < 0:
            self._wake()

    def begin(self, weight: int) -> None:
        """A request is at work from now on."""
        self.used += weight
        self.working += weight
        if self._waiting:
            self._relieve()

    def end(self, weight: int) -> None:
        """A request is at work no longer."""
        self.working -= weight
        self.take(-weight)

    def has_room(self, weight: int) -> bool:
        """Whether a request of this weight may be started; if not, the connection must `wait`."""
        return not self.working or self.used + weight <= self.limit

    def admits(self, reader: Reader, *, unfinished: bool) -> bool:
        """Whether `reader` may read on; if not, it waits. `unfinished`: it holds the first part of a request."""
        if self.favoured is reader and not unfinished:
            self._favour_nobody()
        if self.used <= self.limit or self.favoured is reader:
            return True
        if self.favoured is None and unfinished:
            self.favoured = reader
            return True
        self.wait(reader)
        return False

    def wait(self, reader: Reader) -> None:
        """Have `reader` look again when there may be room."""
        self._waiting[reader] = None
        self._relieve()

    def forget(self, reader: Reader) -> None:
        """The connection is gone."""
        self._waiting.pop(reader, None)
        if self.favoured is reader:
            self._favour_nobody()

    def _favour_nobody(self) -> None:
        self.favoured = None
        for reader in list(self._waiting):
            if self.favoured is None and reader in self._waiting:
                del self._waiting[reader]
                reader.go_on()

    def _wake(self) -> None:
        """Let those who wait look again, each once, as long as one of them might have room."""
        if self._waking or not self._waiting:
            return
        self._waking = True
        for reader in list(self._waiting):
            if self.used > self.limit and self.working:
                break
            if reader in self._waiting:
                del self._waiting[reader]
                reader.go_on()
        self._waking = False
