"""A connection's state, and how one frame becomes a reply: find the route, decode, call the handler, encode."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from struct import Struct
from time import monotonic
from typing import Any, NamedTuple, TypeAlias

from korvet_fast.core.acls.authorizer import Permissions
from korvet_fast.core.broker import Broker
from korvet_fast.core.client_session import Client, ClientSession
from korvet_fast.core.fair_executor import FairExecutor
from korvet_fast.core.fair_queue import FairQueue, Turn
from korvet_fast.core.request_times import RequestTimes
from korvet_fast.errors import CodecError
from korvet_fast.wire.dialect import CloseConnection, Reply
from korvet_fast.wire.kafka.errors import UNSUPPORTED_VERSION
from korvet_fast.wire.kafka.limit import limit
from korvet_fast.wire.kafka.sasl import SaslAuthentication
from korvet_fast.wire.kafka.shapes.message import API_VERSIONS, Message

_PARTITIONS = 20_000  # partitions that a request may name whatever `max.partitions` is
_BESIDE = 5_000  # array elements of a request besides
LITTLE = 64 * 1024  # bytes of an answer that nobody has to wait for
QUICK = 1000  # microseconds of work that nobody has to wait for
_PRODUCE = b"\0\0"  # its API key
_TIMED = RequestTimes.EVERY - 1  # the bits that are 0 in the number of a request that is timed
_SPREAD = 32
_HEADER = Struct(">hhi")  # api key, api version, correlation id: the same in every request header

Values: TypeAlias = dict[str, Any]
# A handler's result: the response's values; a reply that is encoded already; None where Kafka sends nothing.
Answer: TypeAlias = "Values | Reply | None"
Handler: TypeAlias = "Callable[[Session, Values, int], Coroutine[Any, Any, Answer]]"


class Cost(NamedTuple):
    """The cost of a request, estimated by its own counts: bytes of its answer on the heap, microseconds of the loop."""

    answer_bytes: int
    micros: int


_NOTHING = Cost(0, 0)
# Estimates the cost before a request's work starts; None: it is little.
CostOf: TypeAlias = "Callable[[Session, Values], Cost | None]"


def count_elements(partitions: int) -> int:
    """Array elements that one request may have, all arrays together: it may name every partition, each in its topic.

    Decoding so many takes some 20 ms of the loop, and nobody else is served meanwhile.
    """
    return 2 * max(partitions, _PARTITIONS) + _BESIDE


def _decode(message: Message, frame: bytearray, version: int, elements: int) -> Values:
    try:
        return message.request.decode(frame, version, elements)
    except CodecError as error:
        mended = _take_surplus_out(message.name, frame) if error.code == "TRAILING_BYTES" else None
        if mended is None:
            raise
        return message.request.decode(mended, version, elements)


def _take_surplus_out(name: str, frame: bytearray) -> bytearray | None:
    """The request without the bytes that librdkafka (2.16.1) writes too many; Kafka never looks at bytes left over."""
    if name == "Metadata" and frame[-7:-3] == bytes(4):  # the null list of all topics, in four bytes instead of one
        return frame[:-6] + frame[-3:]
    if name == "AlterUserScramCredentials" and frame[-2:] == bytes(2):  # the tags at the end, twice
        return frame[:-1]
    return None


@dataclass(frozen=True, slots=True)
class Route:
    """An API as served. `advertised`: the lowest version told to clients, if it is not `lowest`.

    `cost` estimates a request before its work starts. None: the cost is little whatever the request names, or
    the handler asks for its share itself (Produce, Fetch). `alone`: if a request costs more than `QUICK`, the requests
    behind it that have a cost begin when it has ended: its handler may not be overtaken, and gives up its turn.
    `times`: of the requests of one broker.
    """

    message: Message
    lowest: int
    highest: int
    handler: Handler
    advertised: int | None = None
    cost: "CostOf | None" = None
    alone: bool = False
    times: RequestTimes = field(default_factory=RequestTimes, compare=False)


def list_api_versions(routes: Mapping[int, Route]) -> Values:
    """The rows of an ApiVersions answer for these routes."""
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
    """The context that all connections of one listener share."""

    broker: Broker
    listener: int  # its number: clients get the addresses that the brokers advertise for it
    routes: Mapping[int, Route]
    workers: FairExecutor  # for checking large batches beside the loop
    elements: int  # see `count_elements`
    metadata: dict[tuple[int, int, Permissions | None], tuple[int, "asyncio.Future[bytes]"]]  # see api/metadata.py
    versions: dict[int, bytes] = field(default_factory=dict)  # see api/api_versions.py
    queue: FairQueue = field(default_factory=FairQueue)  # the queue of sessions without a connection


class Session(ClientSession):
    """One client's connection, as Kafka's protocol sees it.

    `sasl`: how its client logs in, None where it does not. `elements`: see `count_elements`. `has_quotas`: whether
    quotas of clients hold for it.
    `_begun`: done when all earlier requests with a cost have begun, or ended (`Route.alone`); None if they have.
    """

    __slots__ = ("_begun", "elements", "sasl", "service")
    has_quotas = True

    def __init__(self, service: Service, peer: str, client: Client | None = None) -> None:
        super().__init__(service.broker, service.workers, client, service.queue)
        self.service = service
        self.peer = peer
        self.listener = service.listener
        self.sasl: SaslAuthentication | None = None
        self.elements = service.elements
        self._begun: asyncio.Future[None] | None = None

    async def handle(self, frame: bytearray) -> Reply:
        """Answer one request.

        Raises `CloseConnection` where Kafka has no answer: unknown APIs, most unknown versions, malformed bytes.
        """
        if len(frame) < _HEADER.size:
            raise CloseConnection(f"a request of {len(frame)} bytes is too short to have a header")
        key, version, correlation_id = _HEADER.unpack_from(frame)
        route = self.service.routes.get(key)
        if route is None:
            raise CloseConnection(f"API key {key} is not served")
        message = route.message
        if not route.lowest <= version <= route.highest:
            if key == API_VERSIONS:
                return self._answer_newer_client(route, correlation_id)
            return self._refuse_version(route, version, correlation_id)
        times = route.times
        began = 0.0 if times.count & _TIMED else monotonic()
        times.count += 1
        try:
            request = _decode(message, frame, version, self.elements)
        except CodecError as error:
            raise CloseConnection(f"a {message.name} request of version {version} is malformed: {error}") from error
        if route.cost is None or ((cost := route.cost(self, request)) is None and self._begun is None):
            work = route.handler(self, request, version)
        else:
            work = self._pay(route, request, version, *(cost or _NOTHING))
        if self.broker.quotas.is_set and self.has_quotas and self.is_authenticated:
            work = limit(self, message, request, version, len(frame), work)
        answer = await work
        if began:
            times.note(began)
        if answer is None:
            return []
        if isinstance(answer, list):
            return answer
        answer["correlation_id"] = correlation_id
        return message.response.frame(answer, version)

    async def _pay(self, route: Route, request: Values, version: int, answer_bytes: int, micros: int) -> Answer:
        """Do the work when there is memory for its answer, and the loop has time for it."""
        client = self.client if answer_bytes > LITTLE else None
        # The requests behind this one begin later, whatever it waits for: a commit may not overtake the one before.
        before, self._begun = self._begun, asyncio.get_running_loop().create_future()
        begun, came = self._begun, monotonic()
        try:
            if before is not None:
                await before
            if client is not None and (granted := client.reserve(answer_bytes)) is not None:
                await granted
            try:
                if micros > QUICK:
                    await self._take_turn(micros)
                if micros <= QUICK or not route.alone:
                    self._end(begun)
                route.times.waited += monotonic() - came
                return await route.handler(self, request, version)
            finally:
                if client is not None:
                    client.release(answer_bytes)
        finally:
            if not begun.done():
                self._end(begun)

    def _end(self, begun: "asyncio.Future[None]") -> None:
        begun.set_result(None)  # the next request goes on in the loop's next turn, after this one's first steps
        if self._begun is begun:
            self._begun = None

    def _take_turn(self, micros: int) -> Turn:
        self._turns.use(micros / 1_000_000)
        return self._turns.wait()

    def note_wait(self, frame: bytearray, seconds: float) -> None:
        """See `ClientSession.note_wait`."""
        route = self.service.routes.get(int.from_bytes(frame[:2], "big"))
        if route is not None:
            route.times.note_wait(seconds)

    def cost(self, frame: bytearray) -> int:
        """Decoded fields take some 30 times their bytes in the frame; the records of a Produce stay where they are."""
        return len(frame) if frame[:2] == _PRODUCE else _SPREAD * len(frame)

    def _refuse_version(self, route: Route, version: int, correlation_id: int) -> Reply:
        """Refuse a version that ApiVersions does not offer, where a client that sends it finds the error.

        That is where it is newer than ours, and the answer has one error for all: what newer versions add comes behind
        it. Raises `CloseConnection` otherwise, as Kafka does always.
        """
        message = route.message
        if version < route.lowest or not any(field.name == "error_code" for field in message.response_shape.fields):
            raise CloseConnection(f"{message.name} version {version} is not served")
        answer = {"correlation_id": correlation_id, "error_code": UNSUPPORTED_VERSION}
        return message.response.frame(answer, route.highest)

    def _answer_newer_client(self, route: Route, correlation_id: int) -> Reply:
        # A client that is newer than this broker learns from a version 0 answer which versions it may use (KIP-511).
        answer = list_api_versions(self.service.routes) | {
            "correlation_id": correlation_id,
            "error_code": UNSUPPORTED_VERSION,
        }
        return route.message.response.frame(answer, 0)
