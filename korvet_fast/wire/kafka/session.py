"""A connection's state, and how one frame becomes a reply: find the route, decode, call the handler, encode."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from struct import Struct
from typing import Any, Protocol, TypeAlias

from korvet_fast.core.broker import Broker
from korvet_fast.errors import CodecError
from korvet_fast.wire.dialect import Hangup, Reply
from korvet_fast.wire.kafka.faults import UNSUPPORTED_VERSION
from korvet_fast.wire.kafka.shapes.message import API_VERSIONS, Message

ELEMENTS = 200_000  # array elements in one request, all arrays together
_PRODUCE = b"\0\0"  # its API key
_SPREAD = 32
_HEADER = Struct(">hhi")  # api key, api version, correlation id: the same in every request header

Values: TypeAlias = dict[str, Any]
# What a handler gives: the response's values; a reply that is encoded already; None where Kafka sends nothing.
Answer: TypeAlias = "Values | Reply | None"
Handler: TypeAlias = "Callable[[Session, Values, int], Coroutine[Any, Any, Answer]]"


class Waiting(Protocol):
    """A request that waits for something that may take long."""

    def wake(self) -> None:
        """Have it answered now."""


def _decode(message: Message, frame: bytearray, version: int) -> Values:
    try:
        return message.request.decode(frame, version, ELEMENTS)
    except CodecError as error:
        # librdkafka (2.16.1) writes the null list that asks for all topics in four bytes instead of one; Kafka does not
        # notice, as it never looks at what is left over.
        if error.code == "TRAILING_BYTES" and message.name == "Metadata" and frame[-7:-3] == bytes(4):
            return message.request.decode(frame[:-6] + frame[-3:], version, ELEMENTS)
        raise


@dataclass(frozen=True, slots=True)
class Route:
    """An API as served. `advertised`: the lowest version told to clients, if it is not `lowest`."""

    message: Message
    lowest: int
    highest: int
    handler: Handler
    advertised: int | None = None


def offer(routes: Mapping[int, Route]) -> Values:
    """What an ApiVersions answer tells of these routes."""
    return {
        "api_keys": [
            {
                "api_key": key,
                "min_version": route.lowest if route.advertised is None else route.advertised,
                "max_version": route.highest,
            }
            for key, route in sorted(routes.items())
        ]
    }


@dataclass(frozen=True, slots=True)
class Service:
    """What all connections of one listener share."""

    broker: Broker
    listener: int  # its number: clients are told what the brokers advertise for it
    routes: Mapping[int, Route]
    workers: Executor  # for checking large batches beside the loop
    metadata: dict[tuple[int, int], tuple[int, bytes]]  # see api/metadata.py
    versions: dict[int, bytes] = field(default_factory=dict)  # see api/api_versions.py


class Session:
    """One client's connection. `turn`: done when the produces before have been appended; None if they have."""

    __slots__ = ("broker", "closed", "peer", "service", "turn", "watches")

    def __init__(self, service: Service, peer: str) -> None:
        self.service = service
        self.broker = service.broker
        self.peer = peer
        self.turn: asyncio.Future[None] | None = None
        self.watches: set[Waiting] = set()
        self.closed = False

    async def handle(self, frame: bytearray) -> Reply:
        """One request. Raises `Hangup` for what Kafka has no answer to: unknown APIs and versions, malformed bytes."""
        if len(frame) < _HEADER.size:
            raise Hangup(f"a request of {len(frame)} bytes is too short to have a header")
        key, version, correlation_id = _HEADER.unpack_from(frame)
        route = self.service.routes.get(key)
        if route is None:
            raise Hangup(f"API key {key} is not served")
        message = route.message
        if not route.lowest <= version <= route.highest:
            if key == API_VERSIONS:
                return self._offer_versions(route, correlation_id)
            raise Hangup(f"{message.name} version {version} is not served")
        try:
            request = _decode(message, frame, version)
        except CodecError as error:
            raise Hangup(f"a {message.name} request of version {version} is malformed: {error}") from error
        answer = await route.handler(self, request, version)
        if answer is None:
            return []
        if isinstance(answer, list):
            return answer
        answer["correlation_id"] = correlation_id
        return message.response.frame(answer, version)

    def weigh(self, frame: bytearray) -> int:
        """Decoded fields take some 30 times their bytes in the frame; the records of a Produce stay where they are."""
        return len(frame) if frame[:2] == _PRODUCE else _SPREAD * len(frame)

    def hurry(self) -> None:
        """Answer the long polls and the parked joins of this moment."""
        for watch in self.watches:
            watch.wake()

    def close(self) -> None:
        """Answer at once whatever waits, now and later: nobody will wait for it."""
        self.closed = True
        self.hurry()

    def _offer_versions(self, route: Route, correlation_id: int) -> Reply:
        # A client that is newer than we are learns what it may use from a version 0 answer (KIP-511).
        answer = offer(self.service.routes) | {"correlation_id": correlation_id, "error_code": UNSUPPORTED_VERSION}
        return route.message.response.frame(answer, 0)
