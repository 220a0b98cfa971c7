"""The modern Kafka protocol behind one listener."""

import re
from dataclasses import replace

from korvet_fast._native import Frames
from korvet_fast.core.broker import Broker
from korvet_fast.core.client_session import Client
from korvet_fast.core.fair_executor import FairExecutor
from korvet_fast.wire.dialect import FirstBytes, FirstRequestLimits
from korvet_fast.wire.kafka.access import ACCESS
from korvet_fast.wire.kafka.guard import guard_routes
from korvet_fast.wire.kafka.routes import ROUTES
from korvet_fast.wire.kafka.sasl_session import SaslSession
from korvet_fast.wire.kafka.session import Service, Session, count_elements


class KafkaDialect:
    """Serves `broker` to Kafka clients.

    `listener`: the number of this listener among all of the broker's, from 0; `workers`: they check large batches.
    """

    of_peers = in_zookeeper = False
    farewell = b""  # a foreign client would not understand an answer of Kafka's
    # The length of an ApiVersions request, its key and its version. Every client since Kafka 0.10 sends that first.
    first_bytes = FirstBytes(re.compile(rb"\0...\0\x12\0[\0-\x1f]", re.DOTALL), "a Kafka client")
    listener_name = "a Kafka listener"

    def __init__(self, broker: Broker, listener: int, workers: FairExecutor) -> None:
        self._frame_limit = broker.settings.number("socket.request.max.bytes")
        self.first_request = FirstRequestLimits(self._frame_limit)
        elements = count_elements(broker.settings.number("max.partitions"))
        times = broker.request_times
        routes = {key: replace(route, times=times[route.message.name]) for key, route in ROUTES.items()}
        if broker.authorizer is not None:
            logs_allowed = broker.audit is not None and broker.audit.logs_allowed
            routes = guard_routes(routes, ACCESS, logs_allowed=logs_allowed)
        self._service = Service(broker, listener, routes, workers, elements, {})

    def frames(self) -> Frames:
        return Frames(self._frame_limit)

    def session(self, peer: str, client: Client | None = None) -> Session:
        return Session(self._service, peer, client)


class SaslKafkaDialect(KafkaDialect):
    """The same for clients that have to log in."""

    def __init__(self, broker: Broker, listener: int, workers: FairExecutor) -> None:
        super().__init__(broker, listener, workers)
        self.first_request = FirstRequestLimits(broker.settings.number("sasl.server.max.receive.size"))

    def session(self, peer: str, client: Client | None = None) -> SaslSession:
        return SaslSession(self._service, peer, client)
