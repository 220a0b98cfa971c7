"""What `net` knows of a wire protocol: how to cut its byte stream, and that a frame leads to a reply."""

from collections.abc import Coroutine
from typing import Any, Protocol

from korvet_fast.core.types import Buffer

Reply = list[Buffer]  # parts to send, in order; empty where the protocol gives no answer (acks=0)


class Hangup(Exception):
    """The peer broke the protocol in a way that has no answer: close this connection only. The text goes to the log."""


class Frames(Protocol):
    """Cuts a byte stream into frames; `feed` raises `CodecError` for a length that is not legal.

    `rest` is where the bytes that come next may be put instead, if they belong to a large frame; `advance` says how
    many were.
    """

    @property
    def pending(self) -> int: ...

    def feed(self, data: Buffer) -> list[bytearray]: ...

    def rest(self) -> memoryview | None: ...

    def advance(self, count: int) -> bytearray | None: ...


class Session(Protocol):
    """A dialect's state of one connection.

    `handle` starts the work of a request in the order of calls: everything that must happen in order happens before its
    coroutine first suspends. Replies are sent in that order whatever order they finish in. Raises `Hangup`.
    It runs outside of any task (see `core.eager`), so it may not use `asyncio.timeout`.

    `weigh` is how many bytes of memory the request takes while it is at work, more or less.
    `hurry` says that memory is short: what now only waits for time or for data is answered at once.
    `close` says that the connection is going: the same, from now on.
    """

    def handle(self, frame: bytearray) -> Coroutine[Any, Any, Reply]: ...

    def weigh(self, frame: bytearray) -> int: ...

    def hurry(self) -> None: ...

    def close(self) -> None: ...


class Dialect(Protocol):
    """One wire protocol behind one listener, serving any number of connections."""

    def frames(self) -> Frames: ...

    def session(self, peer: str) -> Session: ...

    def mistaken(self, first: bytes) -> str | None:
        """Which other protocol the first bytes of a connection look like, in words for the log, or None."""
