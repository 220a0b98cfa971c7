"""The connection of a client that has to log in before anything is done for it."""

from collections.abc import Coroutine
from typing import Any

from korvet_fast.core.authentication.mechanisms import make_server
from korvet_fast.core.authentication.sasl_server import SaslServer
from korvet_fast.core.client_session import Client
from korvet_fast.wire.dialect import CloseConnection, Reply
from korvet_fast.wire.kafka.sasl import SaslAuthentication
from korvet_fast.wire.kafka.session import Service, Session
from korvet_fast.wire.kafka.shapes.security import SASL_AUTHENTICATE

_ELEMENTS = 64  # array elements and tagged fields of a request by which a client logs in


class SaslSession(Session):
    """A session on a listener with SASL."""

    __slots__ = ("_delay", "_own")

    def __init__(self, service: Service, peer: str, client: Client | None = None) -> None:
        super().__init__(service, peer, client)
        settings = service.broker.settings
        self._delay = settings.number("connection.failed.authentication.delay.ms") / 1000
        self._own = SaslAuthentication(
            self._make_server,
            settings.text("sasl.enabled.mechanisms").split(","),
            settings.number("connections.max.reauth.ms") / 1000,
            service.broker.clock.monotonic,
        )
        self.sasl = self._own
        self.elements = _ELEMENTS

    @property
    def is_authenticated(self) -> bool:
        """See `ClientSession`."""
        return self._own.principal is not None

    def handle(self, frame: bytearray) -> Coroutine[Any, Any, Reply]:
        """See `Session.handle`."""
        return super().handle(frame) if self._own.serves(frame) else self._log_in(frame)

    def cost(self, frame: bytearray) -> int:
        """See `Session.cost`; what a client sends to log in decodes into no more than it is."""
        return super().cost(frame) if self._own.principal is not None else len(frame)

    def _make_server(self, mechanism: str) -> SaslServer:
        return make_server(mechanism, self.broker.users, self.broker.tokens, self.offload)

    async def _log_in(self, frame: bytearray) -> Reply:
        sasl = self._own
        sasl.begin(frame)
        try:
            if sasl.wants_raw:
                answer = await sasl.exchange_raw(bytes(frame))
                reply: Reply = [] if answer is None else [len(answer).to_bytes(4, "big"), answer]
            else:
                reply = await super().handle(frame)
            if sasl.principal is not None:
                self.principal = sasl.principal
                self.elements = self.service.elements
            if sasl.failure:
                self.note_failed_authentication(SASL_AUTHENTICATE.name, sasl.failure, sasl.claimed)
                await self.broker.clock.sleep(self._delay)
        finally:
            sasl.end()
        if sasl.failure:
            raise CloseConnection(sasl.failure, reply)
        return reply
