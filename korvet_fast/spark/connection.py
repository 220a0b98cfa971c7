"""One blocking connection to a Kafka broker: the driver of `ConnectionState` on a socket.

Executors read and write with it. A thread that waits for its socket lets go of the GIL, and the kernel writes an answer
into the buffer that its records are decoded from.
"""

import asyncio
import socket
import ssl
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from korvet_fast.client.login import begin_login, log_in
from korvet_fast.client.protocol.connection import ConnectionState, Parts
from korvet_fast.client.protocol.errors import ClientError, ConnectionLost
from korvet_fast.client.protocol.sasl import Exchange, OAuthLogin, SaslLogin
from korvet_fast.client.security import PLAINTEXT, Security
from korvet_fast.client.tls import explain_refusal, make_context
from korvet_fast.endpoint import Address
from korvet_fast.errors import SettingError
from korvet_fast.wire.kafka.shapes.cluster import API_VERSIONS
from korvet_fast.wire.kafka.shapes.message import Message

SLICE = 256 << 10  # bytes that TLS is given at a time
PARTS_AT_ONCE = 64  # buffers in one system call, far below every system's limit


class BlockingConnection:
    """Made by `connect`; for one thread at a time. A failure closes it, and every further use raises the same."""

    def __init__(self, endpoint: Address, connected: socket.socket, patience: float) -> None:
        self.endpoint = endpoint
        self._socket = connected
        self._patience = patience
        self._inside_tls = isinstance(connected, ssl.SSLSocket)
        self._state = ConnectionState(endpoint, tls=self._inside_tls)
        self._login: SaslLogin | OAuthLogin | None = None
        self._login_ends = float("inf")  # when it is time to log in again, by the monotonic clock
        parts = self._state.negotiate()
        while parts is not None:
            self._write(API_VERSIONS.name, parts)
            parts = self._state.negotiate(self.receive())

    @property
    def unanswered(self) -> int:
        """Requests sent that have no answer yet."""
        return self._state.unanswered

    @property
    def closed(self) -> bool:
        """Whether the connection failed or was closed."""
        return self._state.failure is not None

    @property
    def login_ends(self) -> bool:
        """Whether it is time to log in again (KIP-368): `send` does so once no request waits for its answer."""
        return time.monotonic() >= self._login_ends

    def log_in(self, login: SaslLogin | OAuthLogin, exchange: Exchange) -> None:
        """Log in by SASL. `exchange`: of `begin_login`. Raises `ClientError`, and the connection is closed then."""
        try:
            dialogue = log_in(self.endpoint, login, exchange)
            request = next(dialogue)
            while True:
                self._send(*request)
                request = dialogue.send(self.receive())
        except StopIteration as end:
            self._login, self._login_ends = login, time.monotonic() + end.value
        except ClientError as error:
            raise self._close(self._state.fail(error)) from None

    def version(self, message: Message) -> int:
        """The version in which a message is sent. Raises `ClientError` if there is none both sides know."""
        return self._state.version(message)

    def speaks(self, message: Message) -> bool:
        """Whether the broker serves this API at all."""
        return self._state.speaks(message)

    def send(self, message: Message, values: Mapping[str, Any]) -> None:
        """Send a request in the newest version both sides know. Raises `ClientError`."""
        if self._login is not None and self.login_ends and not self._state.unanswered:
            self.log_in(self._login, asyncio.run(begin_login(self._login, self._patience)))
        self._send(message, values)

    def receive(self, patience: float | None = None) -> dict[str, Any]:
        """The answer to the oldest request that has none; its records are views of a buffer of their own.

        `patience`: seconds, instead of the connection's. Raises `ConnectionLost`; `ClientError` for what is no Kafka
        broker.
        """
        patience = self._patience if patience is None else patience
        deadline = time.monotonic() + patience
        try:
            while (answer := self._state.next_answer()) is None:
                self._read(deadline)
        except TimeoutError:
            raise self._close(self._state.time_out(patience)) from None
        except OSError as error:
            raise self._close(self._state.lose(error)) from None
        except ClientError as failure:
            raise self._close(failure) from None
        return answer

    def request(self, message: Message, values: Mapping[str, Any], patience: float | None = None) -> dict[str, Any]:
        """`send` and `receive`, while no other request waits for its answer."""
        assert not self._state.unanswered, "the answers of earlier requests come first"
        self.send(message, values)
        return self.receive(patience)

    def close(self) -> None:
        """Close; requests without an answer get none."""
        self._close(self._state.close())

    def _send(self, message: Message, values: Mapping[str, Any]) -> None:
        self._write(message.name, self._state.request(message, values))

    def _write(self, name: str, parts: Parts) -> None:
        left = deque(memoryview(part) for part in parts)
        self._socket.settimeout(self._patience)
        try:
            while left:
                if self._inside_tls:  # has no sendmsg, and would take the patience for all of a part together
                    sent = self._socket.send(left[0][:SLICE])
                else:
                    sent = self._socket.sendmsg([left[at] for at in range(min(len(left), PARTS_AT_ONCE))])
                while left and sent >= len(left[0]):
                    sent -= len(left.popleft())
                if sent:
                    left[0] = left[0][sent:]
        except TimeoutError:
            failure = ConnectionLost(f"{self.endpoint} took nothing of {name} for {self._patience:g} s")
            raise self._close(self._state.fail(failure)) from None
        except OSError as error:
            raise self._close(self._state.lose(error)) from None

    def _read(self, deadline: float) -> None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)
        count = self._socket.recv_into(self._state.get_buffer())
        if not count:
            raise self._state.lose(None)
        self._state.buffer_updated(count)

    def _close(self, failure: ClientError) -> ClientError:
        self._socket.close()
        return failure


def connect(endpoint: Address, patience: float, security: Security = PLAINTEXT) -> BlockingConnection:
    """Connect, negotiate versions, and log in. `patience`: seconds for this and each request. Raises `ClientError`."""
    exchange = None if security.login is None else asyncio.run(begin_login(security.login, patience))
    connected = _open_socket(endpoint, patience, security)
    try:
        connection = BlockingConnection(endpoint, connected, patience)
        if security.login is not None and exchange is not None:
            connection.log_in(security.login, exchange)
    except ClientError:
        connected.close()
        raise
    return connection


def _open_socket(endpoint: Address, patience: float, security: Security) -> socket.socket:
    """A connected socket, TLS included. Raises `ClientError`."""
    try:
        context = make_context(security)
    except SettingError as error:
        raise ClientError(str(error)) from None
    try:
        connected = socket.create_connection(endpoint, patience)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connected if context is None else context.wrap_socket(connected, server_hostname=endpoint.host)
    except (OSError, OverflowError, ValueError) as error:
        raise explain_refusal(endpoint, error, patience, tls=context is not None) from None
