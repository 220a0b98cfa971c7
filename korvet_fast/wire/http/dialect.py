"""HTTP for operators behind one listener."""

from typing import TYPE_CHECKING

from korvet_fast.config_acl import HTTP_PRINCIPAL
from korvet_fast.core.broker import Broker
from korvet_fast.core.client_session import Client
from korvet_fast.core.fair_executor import FairExecutor
from korvet_fast.core.operator_token import read_token
from korvet_fast.wire.dialect import FirstRequestLimits
from korvet_fast.wire.http.frames import FORM_LIMIT, LIMIT, Requests
from korvet_fast.wire.protocols import FOREIGN

if TYPE_CHECKING:
    from korvet_fast.wire.http.session import Session


class HttpDialect:
    """Serves health, metrics and the page of `broker`. Raises `SettingError` if http.token.file cannot be read."""

    of_peers = in_zookeeper = False
    farewell = b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
    first_bytes = FOREIGN["http"]
    listener_name = "an HTTP listener"
    first_request = FirstRequestLimits(LIMIT + FORM_LIMIT)

    def __init__(self, broker: Broker, listener: int, workers: FairExecutor) -> None:
        # h11 and jinja2 are imported by those brokers only that have such a listener.
        from korvet_fast.wire.http.routes import ROUTES
        from korvet_fast.wire.http.session import Service, Session

        broker.groups.keeps_lag_history = True
        token = read_token(broker.settings.text("http.token.file"))
        self._service = Service(
            broker, listener, ROUTES, workers, token, principal=broker.settings.text(HTTP_PRINCIPAL)
        )
        self._session = Session

    def frames(self) -> Requests:
        return Requests()

    def session(self, peer: str, client: Client | None = None) -> "Session":
        return self._session(self._service, client, peer)
