"""The modern Kafka protocol behind one listener."""

from concurrent.futures import ThreadPoolExecutor

from korvet_fast._native import Frames
from korvet_fast.core.broker import Broker
from korvet_fast.wire.kafka.routes import ROUTES
from korvet_fast.wire.kafka.session import Service, Session

WORKERS = 2  # threads that check large batches; more would only take turns with the loop

# First bytes of other protocols. As a length, all but TLS's would be refused as well, but in words nobody understands.
_MISTAKEN = (
    (b"GET ", "an HTTP request"),
    (b"POST", "an HTTP request"),
    (b"PUT ", "an HTTP request"),
    (b"HEAD", "an HTTP request"),
    (b"OPTI", "an HTTP request"),
    (b"PRI ", "an HTTP/2 connection"),
    (b"\x16\x03", "a TLS handshake"),
    (b"SSH-", "an SSH client"),
    (b"*", "a Redis client"),
    (b"V1|", "the text protocol"),
)


class KafkaDialect:
    """Serves `broker` to Kafka clients. `listener`: the number of this listener among all of the broker's, from 0."""

    def __init__(self, broker: Broker, listener: int = 0) -> None:
        self._limit = broker.settings.number("socket.request.max.bytes")
        self._workers = ThreadPoolExecutor(WORKERS, "check")
        self._service = Service(broker, listener, ROUTES, self._workers, {})

    def frames(self) -> Frames:
        return Frames(self._limit)

    def session(self, peer: str) -> Session:
        return Session(self._service, peer)

    def mistaken(self, first: bytes) -> str | None:
        for start, what in _MISTAKEN:
            if first.startswith(start):
                return f"this is a plain Kafka listener, and the first bytes look like {what}"
        return None

    def close(self) -> None:
        """After the last connection: end the threads."""
        self._workers.shutdown()
