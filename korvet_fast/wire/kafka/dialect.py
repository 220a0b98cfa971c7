"""The modern Kafka protocol behind one listener."""

from korvet_fast._native import Frames
from korvet_fast.core.broker import Broker
from korvet_fast.core.client_session import Client
from korvet_fast.core.fair_executor import FairExecutor
from korvet_fast.wire.dialect import FirstRequestLimits
from korvet_fast.wire.kafka.routes import ROUTES
from korvet_fast.wire.kafka.session import Service, Session, count_elements
from korvet_fast.wire.protocols import detect_protocol


class KafkaDialect:
    """Serves `broker` to Kafka clients.

    `listener`: the number of this listener among all of the broker's, from 0; `workers`: they check large batches.
    """

    farewell = b""  # a foreign client would not understand an answer of Kafka's

    def __init__(self, broker: Broker, listener: int, workers: FairExecutor) -> None:
        self._frame_limit = broker.settings.number("socket.request.max.bytes")
        self.first_request = FirstRequestLimits(self._frame_limit)
        elements = count_elements(broker.settings.number("max.partitions"))
        self._service = Service(broker, listener, ROUTES, workers, elements, {})

    def frames(self) -> Frames:
        return Frames(self._frame_limit)

    def session(self, peer: str, client: Client | None = None) -> Session:
        return Session(self._service, peer, client)

    def detect_protocol(self, first: bytes) -> str | None:
        return detect_protocol(first, "kafka", "a plain Kafka listener")
