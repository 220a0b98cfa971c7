"""The interface of a wire protocol, as `net` uses it: frames are cut from a stream of bytes, and each has a reply."""

from collections.abc import Coroutine
from re import Pattern
from typing import Any, NamedTuple, Protocol

from korvet_fast.core.client_session import Client
from korvet_fast.types import Buffer

# The parts to send, in order; none where the protocol has no answer (acks=0). A view of anything but `bytes` or a
# `bytearray` is a view of a mapped file: it is memory of the page cache, and `net` does not count it.
Reply = list[Buffer]


class CloseConnection(Exception):
    """The peer broke the protocol: close this connection, behind `reply` if there is one. The text goes to the log.

    "" is for a peer that asked for the end of the connection: nothing is logged.
    """

    def __init__(self, text: str, reply: Reply | None = None) -> None:
        super().__init__(text)
        self.reply = reply


class Frames(Protocol):
    """Cuts the bytes of one connection into frames. `feed` raises `CodecError` for a frame that is too long.

    `feed` returns at most `most` frames; it keeps the bytes behind them for its next call, with or without data.
    `pending`: bytes that are kept. `announced`: bytes that the unfinished frame will have; 0: not known.
    `rest`: a place to read the next bytes into, if they belong to a large frame; `advance` takes their number.
    """

    @property
    def pending(self) -> int: ...

    @property
    def announced(self) -> int: ...

    def feed(self, data: Buffer, most: int, /) -> list[bytearray]: ...

    def rest(self) -> memoryview | None: ...

    def advance(self, count: int, /) -> bytearray | None: ...


class Session(Protocol):
    """A dialect's state of one connection.

    `handle` starts requests in the order of calls: all that must happen in order happens before its coroutine first
    suspends. Replies are sent in that order, in whatever order they are made. It raises `CloseConnection`. It runs
    outside of any task (see `core.eager`), so it may not use `asyncio.timeout`.

    `principal`: who the client is; set when its certificate or its login has told. `is_authenticated`: it may do more
    than say who it is. Until then it has the limits of a first request.
    `cost`: about how many bytes of memory the request takes while it is at work, its frame included.
    `note_wait`: the request that begins next has waited, whole, for so many seconds; not called for those that did not.
    `release_memory`: memory is short, so requests that only wait for time or for data are answered at once.
    `close`: the connection ends, so requests that wait are answered at once from now on.
    `note_failed_authentication`: the client has shown a certificate that does not let it in, as `reason` says.
    A dialect that uses the services of core has all but the first two from `ClientSession`.
    """

    principal: str

    @property
    def is_authenticated(self) -> bool: ...

    def handle(self, frame: bytearray) -> Coroutine[Any, Any, Reply]: ...

    def cost(self, frame: bytearray) -> int: ...

    def note_wait(self, frame: bytearray, seconds: float) -> None: ...

    def release_memory(self) -> None: ...

    def close(self) -> None: ...

    def note_failed_authentication(self, api: str, reason: str) -> None: ...


class FirstRequestLimits(NamedTuple):
    """The limits of a connection until its first request is complete: the peer is unknown until then.

    Where clients log in, until they have. Above `size` bytes the connection is closed. `seconds` counts from
    connecting; a large request has more, as its peer has to send at no more than `rate` bytes a second (see
    `net.limits`).
    """

    size: int
    seconds: float = 10.0


class FirstBytes(NamedTuple):
    """The first bytes of a connection by which a protocol is known: `words` name its client, or it, in the log."""

    pattern: Pattern[bytes]
    words: str


class Dialect(Protocol):
    """One wire protocol behind one listener, serving any number of connections.

    `of_peers`: its clients are other brokers, and a secret tells who they are. `farewell`: bytes for a client of a
    foreign protocol, before its connection is closed. `first_bytes`: those of this dialect's clients; None if they tell
    nothing. `listener_name`: the words for its listener in the log.
    """

    @property
    def of_peers(self) -> bool: ...

    @property
    def farewell(self) -> bytes: ...

    @property
    def first_bytes(self) -> FirstBytes | None: ...

    @property
    def listener_name(self) -> str: ...

    @property
    def first_request(self) -> FirstRequestLimits: ...

    def frames(self) -> Frames:
        """The framing of one connection, with the limit of a frame."""

    def session(self, peer: str, client: Client | None = None) -> Session: ...
