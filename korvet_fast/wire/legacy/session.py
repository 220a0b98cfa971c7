"""A connection's state, and how a frame becomes an answer: number, body, handler. There is nothing else in 0.7."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final, NamedTuple, TypeAlias

from korvet_fast.core.acls.binding import Operation, ResourceType
from korvet_fast.core.broker import Broker
from korvet_fast.core.client_session import Client, ClientSession
from korvet_fast.core.fair_executor import FairExecutor
from korvet_fast.core.fair_lock import ChangeLock, Changer
from korvet_fast.core.fair_queue import FairQueue
from korvet_fast.core.quotas.entity import QuotaKey
from korvet_fast.wire.dialect import CloseConnection, Reply
from korvet_fast.wire.legacy.body import Body, FetchBody, Malformed, OffsetsBody, ProduceBody
from korvet_fast.wire.legacy.order import RequestOrder

_OFTEN: Final = 100  # bodies read between two looks at the clock
_PRODUCES: Final = (0, 3)  # the numbers of requests that carry messages
_SPREAD: Final = 32  # bytes of memory for each byte of a body

AnyBody: TypeAlias = FetchBody | ProduceBody | OffsetsBody
# `append` lets the next request begin: called by a produce when all of it is appended.
Handler: TypeAlias = "Callable[[Session, list[Any], Callable[[], None]], Coroutine[Any, Any, Reply]]"


class Request(NamedTuple):
    """One kind of request. `many`: a count, and so many bodies without sizes of their own.

    `counts`: the quota of bytes that it, or its answer, counts to.
    """

    read: Callable[[Body], AnyBody]
    handler: "Handler"
    many: bool = False
    counts: QuotaKey | None = None


@dataclass(frozen=True)
class Service:
    """The context that all connections of one listener share."""

    broker: Broker
    requests: Mapping[int, Request]
    workers: FairExecutor
    listener: int = 0  # its number
    queue: FairQueue = field(default_factory=FairQueue)  # the queue of sessions without a connection
    creating: ChangeLock = field(default_factory=ChangeLock)  # held by who waits for the quota of new topics


class Session(ClientSession):
    """One client's connection, as 0.7's protocol sees it. `order`: of its requests; `peer`: who it is.

    `closed_at`: since when the client sends nothing more, monotonic.
    """

    __slots__ = ("_creator", "_over", "closed_at", "order", "service")

    def __init__(self, service: Service, peer: str, client: Client | None = None) -> None:
        super().__init__(service.broker, service.workers, client, service.queue)
        self.service = service
        self.peer = peer
        self.listener = service.listener
        self.order = RequestOrder()
        self.closed_at = inf
        self._creator: Changer | None = None
        self._over = False  # the connection closes: nothing behind this is done

    @property
    def creator(self) -> Changer:
        """The turn of this client among those that make topics; few connections ever do."""
        if self._creator is None:
            address = self.broker if self.client is None else self.client.address
            self._creator = self.service.creating.open(address)
        return self._creator

    async def handle(self, frame: bytearray) -> Reply:
        """Answer one request. Raises `CloseConnection` where 0.7 closes: it has few errors."""
        turn = await self.order.begin()
        try:
            if self._over:
                return []
            request = self.service.requests.get(int.from_bytes(frame[:2], "big")) if len(frame) > 1 else None
            if request is None:
                raise Malformed(f"a request of {len(frame)} bytes, of no known kind")
            bodies = await self._read(request, frame)
            if request.counts is QuotaKey.PRODUCE:
                self.charge(QuotaKey.PRODUCE, len(frame))
            reply = await request.handler(self, bodies, lambda: self.order.end(turn))
            if request.counts is QuotaKey.FETCH:
                self.charge(QuotaKey.FETCH, sum(map(len, reply)))
            return reply
        except Malformed as error:
            raise self.refuse(str(error)) from None
        finally:
            self.order.end(turn)

    async def _read(self, request: Request, frame: bytearray) -> list[AnyBody]:
        """All bodies, before anything is done. Raises `Malformed`."""
        body = Body(frame)
        if not request.many:
            return [request.read(body)]
        count, pace = body.read_count(), self.pace()
        bodies: list[AnyBody] = []
        while len(bodies) < count:
            bodies += [request.read(body) for _ in range(min(_OFTEN, count - len(bodies)))]
            if pace.due():
                await pace.turn()
        return bodies

    def may(self, api: str, operation: Operation, topic: str) -> bool:
        """Whether an ACL lets the client do this to a topic, or there is no authorizer. `api`: the request."""
        return self.authorize(api, operation, ResourceType.TOPIC, topic)

    def close(self) -> None:
        """See `ClientSession.close`."""
        self.closed_at = min(self.closed_at, self.broker.clock.monotonic())
        super().close()

    def refuse(self, why: str) -> CloseConnection:
        """The close that ends the connection behind the answers to earlier requests. `why`: for the log."""
        self._over = True
        return CloseConnection(why, [])

    def cost(self, frame: bytearray) -> int:
        """Messages are copied once, into batches; what names positions becomes objects."""
        return len(frame) * (2 if int.from_bytes(frame[:2], "big") in _PRODUCES else _SPREAD)
