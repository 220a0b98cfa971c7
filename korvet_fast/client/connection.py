"""One connection to a Kafka broker: requests go out one behind the other, and answers come back in the same order."""

import asyncio
import os
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

import korvet_fast
from korvet_fast._native import Frames
from korvet_fast.endpoint import Endpoint
from korvet_fast.errors import CodecError
from korvet_fast.wire.kafka.shapes.cluster import API_VERSIONS
from korvet_fast.wire.kafka.shapes.message import Message

CLIENT_ID = "korvet-fast"
LARGEST_ANSWER = 1 << 30  # bytes of one answer
MOST_ELEMENTS = 1_000_000  # array elements of one answer
READ_SIZE = 256 * 1024  # bytes
UNSUPPORTED_VERSION = 35


class ClientError(Exception):
    """A broker cannot be reached, is not understood, or said no. The text says which, why, and what to do about it."""


class Unreachable(ClientError):
    """Nobody listens there, or nobody who answers."""


def reason(error: OSError) -> str:
    """Why, in the system's words: asyncio and the name lookup put their own in `strerror`, some of them no reason."""
    return os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or str(error)


class Versions:
    """What one broker speaks, from its answer to ApiVersions; `ClientError` if it refused to say."""

    def __init__(self, endpoint: Endpoint, answer: Mapping[str, Any]) -> None:
        if answer["error_code"]:
            raise ClientError(f"{endpoint} refused to say what it speaks (error {answer['error_code']})")
        self._endpoint = endpoint
        self._spoken: dict[int, tuple[int, int]] = {
            row["api_key"]: (row["min_version"], row["max_version"]) for row in answer["api_keys"]
        }

    def choose(self, message: Message) -> int:
        """The newest version both sides know. Raises `ClientError` if there is none."""
        lowest, highest = self._spoken.get(message.key, (0, -1))
        version = min(message.highest, highest)
        if version < max(message.lowest, lowest):
            offer = f"only versions {lowest} to {highest}" if highest >= 0 else "none"
            raise ClientError(
                f"the broker at {self._endpoint} speaks {offer} of {message.name}; "
                f"this client needs one of {message.lowest} to {message.highest}"
            )
        return version

    def include(self, message: Message) -> bool:
        """Whether the broker knows this kind of request at all."""
        return message.key in self._spoken


def introduction() -> dict[str, str]:
    """What ApiVersions says about this client (KIP-511)."""
    return {"client_software_name": CLIENT_ID, "client_software_version": korvet_fast.__version__}


def answered_in(message: Message, version: int, frame: bytearray) -> int:
    """The version of an answer: a broker that does not know that of an ApiVersions request answers in 0 (KIP-511)."""
    if message.key == API_VERSIONS.key and int.from_bytes(frame[4:6], "big") == UNSUPPORTED_VERSION:
        return 0
    return version


class _Asked(NamedTuple):
    message: Message
    version: int
    correlation: int
    answer: "asyncio.Future[dict[str, Any]]"


class Connection:
    """Made by `connect`. After any failure it is closed, and everything still unanswered fails with it."""

    def __init__(
        self, endpoint: Endpoint, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, patience: float
    ) -> None:
        self.endpoint = endpoint
        self._patience = patience
        self._reader = reader
        self._writer = writer
        self._asked: deque[_Asked] = deque()
        self._next = 0
        self._versions: Versions | None = None
        self._failure: ClientError | None = None
        self._reading = asyncio.create_task(self._read())

    async def request(self, message: Message, values: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request in the newest version both sides know, and return the answer.

        Requests leave in the order in which this is first stepped. Raises `ClientError`; one that comes too late
        closes the connection.
        """
        return await self._ask(message, self.version(message), values)

    def version(self, message: Message) -> int:
        """The version in which a message is sent. Raises `ClientError` if there is none both sides know."""
        assert self._versions is not None, "made by connect, which asks"
        return self._versions.choose(message)

    def speaks(self, message: Message) -> bool:
        """Whether the broker knows this kind of request at all."""
        assert self._versions is not None, "made by connect, which asks"
        return self._versions.include(message)

    async def close(self) -> None:
        """Close; what is still unanswered fails."""
        self._fail(ClientError(f"the connection to {self.endpoint} was closed"))
        await asyncio.gather(self._reading, return_exceptions=True)

    async def introduce(self) -> None:
        """Ask which versions the broker speaks; `connect` does it, once."""
        answer = await self._ask(API_VERSIONS, API_VERSIONS.highest, introduction())
        if answer["error_code"] == UNSUPPORTED_VERSION:  # an older broker; version 0 everybody knows
            answer = await self._ask(API_VERSIONS, 0, {})
        self._versions = Versions(self.endpoint, answer)

    async def _ask(self, message: Message, version: int, values: Mapping[str, Any]) -> dict[str, Any]:
        if self._failure is not None:
            raise self._failure
        correlation, self._next = self._next, (self._next + 1) & 0x7FFF_FFFF
        head = {"api_key": message.key, "api_version": version, "correlation_id": correlation, "client_id": CLIENT_ID}
        parts = message.request.frame({**head, **values}, version)
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._asked.append(_Asked(message, version, correlation, answer))
        self._writer.writelines(parts)
        try:
            async with asyncio.timeout(self._patience):
                await self._writer.drain()
                return await answer
        except TimeoutError:
            failure = ClientError(f"{self.endpoint} did not answer {message.name} within {self._patience:g} s")
            self._fail(failure)
            raise failure from None
        except OSError as error:
            failure = ClientError(f"lost the connection to {self.endpoint}: {reason(error)}")
            self._fail(failure)
            raise failure from None

    async def _read(self) -> None:
        frames = Frames(LARGEST_ANSWER)
        try:
            while data := await self._reader.read(READ_SIZE):
                for frame in frames.feed(data):
                    self._answer(frame)
        except OSError as error:
            self._fail(ClientError(f"lost the connection to {self.endpoint}: {reason(error)}"))
        except CodecError as error:
            self._fail(ClientError(f"{self.endpoint} does not answer as a Kafka broker does ({error})"))
        else:
            self._fail(ClientError(f"{self.endpoint} closed the connection"))

    def _answer(self, frame: bytearray) -> None:
        if not self._asked:
            raise CodecError("BAD_VALUE", "an answer that nobody asked for")
        asked = self._asked.popleft()
        try:
            values = asked.message.response.decode(
                frame, answered_in(asked.message, asked.version, frame), MOST_ELEMENTS
            )
            if values["correlation_id"] != asked.correlation:
                raise CodecError("BAD_VALUE", f"answer {values['correlation_id']} instead of {asked.correlation}")
        except CodecError:
            self._asked.appendleft(asked)  # fails with the rest
            raise
        if not asked.answer.done():
            asked.answer.set_result(values)

    def _fail(self, failure: ClientError) -> None:
        if self._failure is not None:
            return
        self._failure = failure
        self._writer.close()
        for asked in self._asked:
            if not asked.answer.done():
                asked.answer.set_exception(failure)
                asked.answer.exception()  # its waiter may be gone: then nobody is to be told
        self._asked.clear()


async def connect(endpoint: Endpoint, patience: float = 10.0) -> Connection:
    """Connect and learn what the broker speaks. `patience`: seconds for this and each request. `ClientError`."""
    try:
        async with asyncio.timeout(patience):
            reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
    except TimeoutError:
        raise Unreachable(f"{endpoint} did not take a connection within {patience:g} s") from None
    except OSError as error:
        raise Unreachable(f"cannot connect to {endpoint}: {reason(error)}") from None
    connection = Connection(endpoint, reader, writer, patience)
    try:
        await connection.introduce()
    except ClientError:
        await connection.close()
        raise
    return connection
