"""One connection to a Kafka broker for asyncio: the driver of `ConnectionState`. Requests are pipelined."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from korvet_fast.client.login import begin_login, log_in
from korvet_fast.client.protocol.connection import LARGEST_ANSWER, ConnectionState, Parts
from korvet_fast.client.protocol.errors import ClientError
from korvet_fast.client.protocol.sasl import Exchange, OAuthLogin, SaslLogin
from korvet_fast.client.security import PLAINTEXT, Security
from korvet_fast.client.tls import explain_refusal, make_context
from korvet_fast.endpoint import Address
from korvet_fast.errors import SettingError
from korvet_fast.wire.kafka.shapes.message import Message

Stream = TypeVar("Stream", bound=asyncio.BaseProtocol)


class Connection(asyncio.BufferedProtocol):
    """Made by `connect`. After any failure it is closed, and everything still unanswered fails with it."""

    def __init__(
        self, endpoint: Address, patience: float, largest_answer: int = LARGEST_ANSWER, *, tls: bool = False
    ) -> None:
        self.endpoint = endpoint
        self._patience = patience
        self._state = ConnectionState(endpoint, largest_answer, tls=tls)
        self._answers: deque[asyncio.Future[dict[str, Any]]] = deque()  # futures of the requests sent, in order
        self._writable = asyncio.Event()
        self._writable.set()
        self._disconnected = asyncio.Event()
        self._transport: asyncio.Transport | None = None
        self._login: SaslLogin | OAuthLogin | None = None
        self._login_ends = float("inf")  # when it is time to log in again, by the loop's clock
        self._renewals = 0  # requests that wait until the client has logged in again
        self._renewing = asyncio.Lock()

    async def request(self, message: Message, values: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request in the newest version both sides know, and return the answer.

        Requests leave in the order in which this coroutine is first stepped. Raises `ClientError`; an answer that
        comes too late closes the connection.
        """
        await self._renew_login()
        return await self._exchange(self._state.request(message, values))

    async def notify(self, message: Message, values: Mapping[str, Any]) -> None:
        """Send a request that has no answer: Produce with acks=0. Raises `ClientError` if the connection is closed.

        Returns when the system has all of it: it is sent, also if the connection is closed then (inside TLS asyncio may
        hold 64 KiB). A broker that takes no bytes for as long as an answer may take is given up.
        """
        assert self._transport is not None, "connected"
        await self._renew_login()
        if self._transport.get_extra_info("sslcontext") is None:  # asyncio's TLS does not tell when the system has all
            self._transport.set_write_buffer_limits(0)
        self._transport.writelines(self._state.notify(message, values))
        try:
            async with asyncio.timeout(self._patience):
                await self._writable.wait()
        except TimeoutError:
            self._fail(self._state.time_out(self._patience))
        if (failure := self.failure) is not None:
            raise failure

    @property
    def failure(self) -> ClientError | None:
        """Why the connection is closed; None while it is open."""
        return self._state.failure

    async def wait_closed(self) -> None:
        """Wait until the connection is closed, whoever closes it."""
        await self._disconnected.wait()

    def version(self, message: Message) -> int:
        """The version in which a message is sent. Raises `ClientError` if there is none both sides know."""
        return self._state.version(message)

    def speaks(self, message: Message) -> bool:
        """Whether the broker serves this API at all."""
        return self._state.speaks(message)

    async def close(self) -> None:
        """Close; requests without an answer fail."""
        self._fail(self._state.close())
        await self._disconnected.wait()

    async def negotiate(self) -> None:
        """Learn which versions the broker serves; `connect` calls it once."""
        parts = self._state.negotiate()
        while parts is not None:
            parts = self._state.negotiate(await self._exchange(parts))

    async def log_in(self, login: SaslLogin | OAuthLogin, exchange: Exchange) -> None:
        """Log in by SASL. `exchange`: of `begin_login`. Raises `ClientError`; the connection is of no use then."""
        dialogue = log_in(self.endpoint, login, exchange)
        request = next(dialogue)
        while True:
            answer = await self._exchange(self._state.request(*request))
            try:
                request = dialogue.send(answer)
            except StopIteration as end:
                self._login, self._login_ends = login, asyncio.get_running_loop().time() + end.value
                return

    async def _renew_login(self) -> None:
        """Log in again before the login ends (KIP-368). Requests wait meanwhile, and go on in their order."""
        clock = asyncio.get_running_loop().time
        if self._login is None or not (self._renewals or clock() >= self._login_ends):
            return
        self._renewals += 1
        try:
            async with self._renewing:
                if clock() >= self._login_ends:
                    await self.log_in(self._login, await begin_login(self._login, self._patience))
        except ClientError as error:
            self._fail(self._state.fail(error))
            raise
        finally:
            self._renewals -= 1

    async def _exchange(self, parts: Parts) -> dict[str, Any]:
        assert self._transport is not None, "connected"
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._answers.append(answer)
        self._transport.writelines(parts)
        try:
            async with asyncio.timeout(self._patience):
                await self._writable.wait()
                return await answer
        except TimeoutError:
            failure = self._state.time_out(self._patience)
            self._fail(failure)
            raise failure from None

    def _fail(self, failure: ClientError) -> None:
        if self._transport is not None:
            self._transport.abort()
        self._writable.set()
        while self._answers:
            answer = self._answers.popleft()
            if not answer.done():
                answer.set_exception(failure)
                answer.exception()  # nobody may be waiting any more: asyncio would log the exception

    # The methods that asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._state.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        self._state.buffer_updated(nbytes)
        try:
            while (values := self._state.next_answer()) is not None:
                answer = self._answers.popleft()
                if not answer.done():
                    answer.set_result(values)
        except ClientError as failure:
            self._fail(failure)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, error: Exception | None) -> None:
        self._fail(self._state.lose(error))
        self._disconnected.set()


async def connect(
    endpoint: Address,
    patience: float = 10.0,
    largest_answer: int = LARGEST_ANSWER,
    security: Security = PLAINTEXT,
) -> Connection:
    """Connect, negotiate versions, and log in. `patience`: seconds for this and each request. Raises `ClientError`.

    `largest_answer`: bytes; a broker that announces more is cut off.
    """
    exchange = None if security.login is None else await begin_login(security.login, patience)
    connection = await open_transport(
        endpoint, patience, lambda: Connection(endpoint, patience, largest_answer, tls=security.tls), security
    )
    try:
        await connection.negotiate()
        if security.login is not None and exchange is not None:
            await connection.log_in(security.login, exchange)
    except BaseException:  # also where the caller is cancelled
        await connection.close()
        raise
    return connection


async def open_transport(
    endpoint: Address, patience: float, make: Callable[[], Stream], security: Security = PLAINTEXT
) -> Stream:
    """Connect within `patience` seconds, TLS included; `make` makes the asyncio protocol.

    Raises `Unreachable`, or `ClientError` where one of the two does not trust the other.
    """
    try:
        context = make_context(security)
    except SettingError as error:
        raise ClientError(str(error)) from None
    try:
        async with asyncio.timeout(patience):
            loop = asyncio.get_running_loop()
            _, made = await loop.create_connection(make, endpoint.host, endpoint.port, ssl=context)
    except (OSError, OverflowError, ValueError) as error:
        raise explain_refusal(endpoint, error, patience, tls=context is not None) from None
    return made
