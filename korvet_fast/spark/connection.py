"""One blocking connection to a Kafka broker: requests go out one behind the other, answers come back in that order.

Executors read and write with it: a socket that is waited for with the GIL released, and one copy of each answer, made
by the kernel into the buffer that the records are then decoded from.
"""

import socket
import time
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

from korvet_fast.client.connection import (
    CLIENT_ID,
    LARGEST_ANSWER,
    MOST_ELEMENTS,
    UNSUPPORTED_VERSION,
    ClientError,
    Unreachable,
    Versions,
    answered_in,
    introduction,
    reason,
)
from korvet_fast.endpoint import Endpoint
from korvet_fast.errors import CodecError
from korvet_fast.wire.kafka.shapes.cluster import API_VERSIONS
from korvet_fast.wire.kafka.shapes.message import Message

LENGTH_SIZE = 4  # bytes in front of each frame
PARTS_AT_ONCE = 64  # buffers in one call to the system, far below any limit of it


class Lost(ClientError):
    """The connection broke, or nothing came in time: on a new one the same question may be answered."""


class _Asked(NamedTuple):
    message: Message
    version: int
    correlation: int


class Connection:
    """Made by `connect`; for one thread at a time. A failure closes it, and every further use raises the same."""

    def __init__(self, endpoint: Endpoint, connected: socket.socket, patience: float) -> None:
        self.endpoint = endpoint
        self._socket = connected
        self._patience = patience
        self._asked: deque[_Asked] = deque()
        self._next = 0
        self._failure: ClientError | None = None
        answer = self._ask(API_VERSIONS, API_VERSIONS.highest, introduction())
        if answer["error_code"] == UNSUPPORTED_VERSION:  # an older broker; version 0 everybody knows (KIP-511)
            answer = self._ask(API_VERSIONS, 0, {})
        self._versions = Versions(endpoint, answer)

    @property
    def waiting(self) -> int:
        """Requests sent and not answered."""
        return len(self._asked)

    @property
    def closed(self) -> bool:
        """Whether it failed, or somebody closed it."""
        return self._failure is not None

    def version(self, message: Message) -> int:
        """The version in which a message is sent. Raises `ClientError` if there is none both sides know."""
        return self._versions.choose(message)

    def speaks(self, message: Message) -> bool:
        """Whether the broker knows this kind of request at all."""
        return self._versions.include(message)

    def send(self, message: Message, values: Mapping[str, Any]) -> None:
        """Send a request in the newest version both sides know. Raises `ClientError`."""
        self._send(message, self._versions.choose(message), values)

    def receive(self, patience: float | None = None) -> dict[str, Any]:
        """The answer to the oldest request that has none; its records are views of a buffer of their own.

        `patience`: seconds, instead of the connection's. Raises `Lost`; `ClientError` for what is no Kafka broker.
        """
        asked = self._asked.popleft()
        try:
            frame = self._read(asked, time.monotonic() + (self._patience if patience is None else patience))
            values = asked.message.response.decode(
                frame, answered_in(asked.message, asked.version, frame), MOST_ELEMENTS
            )
            if values["correlation_id"] != asked.correlation:
                raise CodecError("BAD_VALUE", f"answer {values['correlation_id']} instead of {asked.correlation}")
        except CodecError as error:
            self._fail(ClientError(f"{self.endpoint} does not answer as a Kafka broker does ({error})"))
        except TimeoutError:
            waited = self._patience if patience is None else patience
            self._fail(Lost(f"{self.endpoint} did not answer {asked.message.name} within {waited:g} s"))
        except OSError as error:
            self._fail(Lost(f"lost the connection to {self.endpoint}: {reason(error)}"))
        return values

    def request(self, message: Message, values: Mapping[str, Any], patience: float | None = None) -> dict[str, Any]:
        """`send` and `receive`, where nothing else is waiting for its answer."""
        return self._ask(message, self._versions.choose(message), values, patience)

    def close(self) -> None:
        """Close; what has no answer yet gets none."""
        if self._failure is None:
            self._failure = Lost(f"the connection to {self.endpoint} was closed")
        self._socket.close()

    def _ask(
        self, message: Message, version: int, values: Mapping[str, Any], patience: float | None = None
    ) -> dict[str, Any]:
        assert not self._asked, "the answers of earlier requests come first"
        self._send(message, version, values)
        return self.receive(patience)

    def _send(self, message: Message, version: int, values: Mapping[str, Any]) -> None:
        if self._failure is not None:
            raise self._failure
        correlation, self._next = self._next, (self._next + 1) & 0x7FFF_FFFF
        head = {"api_key": message.key, "api_version": version, "correlation_id": correlation, "client_id": CLIENT_ID}
        parts = deque(memoryview(part) for part in message.request.frame({**head, **values}, version))
        self._socket.settimeout(self._patience)
        try:
            while parts:
                sent = self._socket.sendmsg([parts[at] for at in range(min(len(parts), PARTS_AT_ONCE))])
                while parts and sent >= len(parts[0]):
                    sent -= len(parts.popleft())
                if sent:
                    parts[0] = parts[0][sent:]
        except TimeoutError:
            self._fail(Lost(f"{self.endpoint} took nothing of {message.name} for {self._patience:g} s"))
        except OSError as error:
            self._fail(Lost(f"lost the connection to {self.endpoint}: {reason(error)}"))
        self._asked.append(_Asked(message, version, correlation))

    def _read(self, asked: _Asked, deadline: float) -> bytearray:
        if self._failure is not None:
            raise self._failure
        length = int.from_bytes(self._fill(bytearray(LENGTH_SIZE), deadline), "big", signed=True)
        if not LENGTH_SIZE <= length <= LARGEST_ANSWER:
            raise CodecError("BAD_LENGTH", f"an answer to {asked.message.name} of {length} bytes")
        return self._fill(bytearray(length), deadline)

    def _fill(self, frame: bytearray, deadline: float) -> bytearray:
        rest = memoryview(frame)
        while rest:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self._socket.settimeout(left)
            read = self._socket.recv_into(rest)
            if not read:
                self._fail(Lost(f"{self.endpoint} closed the connection"))
            rest = rest[read:]
        return frame

    def _fail(self, failure: ClientError) -> NoReturn:
        self._failure = failure
        self._socket.close()
        raise failure from None


def connect(endpoint: Endpoint, patience: float) -> Connection:
    """Connect and learn what the broker speaks. `patience`: seconds for this and each answer.

    Raises `Unreachable` if nobody listens there, `ClientError` if it is no Kafka broker.
    """
    try:
        connected = socket.create_connection(endpoint, patience)
    except TimeoutError:
        raise Unreachable(f"{endpoint} did not take a connection within {patience:g} s") from None
    except OSError as error:
        raise Unreachable(f"cannot connect to {endpoint}: {reason(error)}") from None
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        return Connection(endpoint, connected, patience)
    except ClientError:
        connected.close()
        raise
