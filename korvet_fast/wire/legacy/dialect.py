"""The protocol of Kafka 0.6 and 0.7 behind one listener."""

from korvet_fast._native import Frames
from korvet_fast.core.broker import Broker
from korvet_fast.core.client_session import Client
from korvet_fast.core.fair_executor import FairExecutor
from korvet_fast.wire.dialect import FirstRequestLimits
from korvet_fast.wire.legacy.requests import REQUESTS
from korvet_fast.wire.legacy.session import Service, Session


class LegacyDialect:
    """Serves `broker` to clients of Kafka 0.6 and 0.7. `workers`: they check large sets of messages."""

    of_peers = False
    in_zookeeper = True
    farewell = b""  # nothing of 0.7's would be understood
    first_bytes = None  # a request's length, and small numbers: many protocols begin like this
    listener_name = "a listener of Kafka 0.7's protocol"

    def __init__(self, broker: Broker, listener: int, workers: FairExecutor) -> None:
        self._frame_limit = broker.settings.number("socket.request.max.bytes")
        self.first_request = FirstRequestLimits(self._frame_limit)
        self._service = Service(broker, REQUESTS, workers, listener)

    def frames(self) -> Frames:
        return Frames(self._frame_limit)

    def session(self, peer: str, client: Client | None = None) -> Session:
        return Session(self._service, peer, client)
