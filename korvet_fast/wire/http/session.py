"""A connection's state, and how a request becomes its answer: is it meant for this broker, may it, which page."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from ipaddress import ip_address
from secrets import token_urlsafe
from typing import Any, Final, NamedTuple, TypeAlias

from korvet_fast.core.broker import Broker
from korvet_fast.core.client_session import Client, ClientSession
from korvet_fast.core.fair_executor import FairExecutor
from korvet_fast.core.fair_queue import FairQueue
from korvet_fast.core.operator_token import OperatorToken
from korvet_fast.wire.dialect import CloseConnection, Reply
from korvet_fast.wire.http.collectors import TopicTotals
from korvet_fast.wire.http.exchange import Answer, Exchange, RequestError, say
from korvet_fast.wire.http.topic_rates import TopicRates

_READ: Final = ("GET", "HEAD")
_SPREAD: Final = 8  # bytes of memory that a byte of a head takes, about

Handler: TypeAlias = "Callable[[Session, Exchange], Coroutine[Any, Any, Answer]]"


class Route(NamedTuple):
    """One path. `public`: without the token, too; for what tells strangers nothing.

    `change`: what POST does; None: the path is only read. `challenge`: how a client that sent no token is asked for it;
    a browser has its user type it as a password. `memory`: bytes that a request and its answer take, about; 0 where the
    handler reserves them.
    """

    handler: "Handler"
    public: bool = False
    change: "Handler | None" = None
    challenge: str = "Bearer"
    memory: int = 0

    def find_handler(self, method: str) -> "Handler | None":
        """None for a method that the path does not have."""
        return self.handler if method in _READ else self.change if method == "POST" else None


@dataclass(frozen=True, slots=True)
class Service:
    """The context that all connections of one listener share. `token`: None where nobody has to show one.

    `principal`: who shows the token. Without one a client is who its certificate says, or User:ANONYMOUS.
    `scraping`: held while `/metrics` is made, as `totals` follows one scrape after the other. `form_token`: in each
    form of the page, and unknown to pages of others.
    """

    broker: Broker
    listener: int  # its number: the hosts it may be asked for are those that are advertised for it
    routes: "Mapping[str, Route]"
    workers: FairExecutor
    token: OperatorToken | None
    totals: TopicTotals = field(default_factory=TopicTotals)
    scraping: asyncio.Lock = field(default_factory=asyncio.Lock)
    rates: TopicRates = field(default_factory=TopicRates)
    principal: str = "User:http"
    form_token: str = field(default_factory=partial(token_urlsafe, 24))
    queue: FairQueue = field(default_factory=FairQueue)  # the queue of sessions without a connection


class Session(ClientSession):
    """One client's connection, as HTTP sees it."""

    __slots__ = ("_over", "service")

    def __init__(self, service: Service, client: Client | None = None, peer: str = "") -> None:
        super().__init__(service.broker, service.workers, client, service.queue)
        self.service = service
        self.peer = peer
        self.listener = service.listener
        self._over = False

    async def handle(self, frame: bytearray) -> Reply:
        """Answer one request. Raises `CloseConnection` with the answer that is the last one."""
        if self._over:
            return []  # bytes behind a request that could not be read may be the body of that one
        exchange = Exchange()
        wrong = ""
        try:
            exchange.read(frame)
            answer = await self._answer(exchange)
        except RequestError as error:
            answer = error.answer
            wrong = f"an HTTP request was refused with {answer.status.value} {answer.status.phrase}"
        reply, goes_on = exchange.answer(answer)
        if not goes_on:
            self._over = True
            raise CloseConnection(wrong, reply)
        return reply

    async def _answer(self, exchange: Exchange) -> Answer:
        service = self.service
        if not self._is_meant(exchange.host):
            ask = "ask for the broker by its address, or by a name that it has from --advertise http://NAME:PORT"
            return say(HTTPStatus.MISDIRECTED_REQUEST, f"this listener has another name: {ask}")
        route = service.routes.get(exchange.path)
        if route is None:
            return say(HTTPStatus.NOT_FOUND, f"there is {', '.join(service.routes)}")
        handler = route.find_handler(exchange.method)
        if handler is None:
            allowed = ", ".join(_READ if route.change is None else (*_READ, "POST"))
            return say(HTTPStatus.METHOD_NOT_ALLOWED, f"{exchange.path} is for {allowed}", ("allow", allowed))
        if service.token is not None and not route.public:
            if not await self.shows_token(exchange):
                ask = "send the token of http.token.file: Authorization: Bearer TOKEN"
                return say(HTTPStatus.UNAUTHORIZED, ask, ("www-authenticate", route.challenge))
            self.principal = service.principal
        client, memory = self.client, route.memory
        if client is None or not memory:
            return await handler(self, exchange)
        if (granted := client.reserve(memory)) is not None:
            await granted
        try:
            return await handler(self, exchange)
        finally:
            client.release(memory)

    async def shows_token(self, exchange: Exchange) -> bool:
        """Whether the request has the token of http.token.file, where there is one. Who guesses has to wait."""
        token = self.service.token
        if token is None or token.equals(exchange.token):
            return True
        if exchange.token:
            self.note_failed_authentication(exchange.api, "the token is not that of http.token.file")
            delay = self.broker.settings.number("connection.failed.authentication.delay.ms")
            await self.broker.clock.sleep(delay / 1000)
        return False

    def _is_meant(self, host: str) -> bool:
        """Whether a client asked for this broker by an address, or by one of its names.

        A page of a stranger can give a name of its own the broker's address, and read the answers then (DNS rebinding).
        """
        try:
            ip_address(host)
        except ValueError:
            cluster = self.broker.cluster
            own = (node.address.host for node in cluster.nodes(self.service.listener) if node.id == cluster.id)
            return host == "localhost" or host in own
        return True

    @property
    def wants_copies(self) -> bool:
        """The page looks into the records."""
        return True

    def cost(self, frame: bytearray) -> int:
        """h11 makes objects of the headers."""
        return _SPREAD * len(frame)
