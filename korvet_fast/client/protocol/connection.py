"""One connection to a broker without its socket: requests become bytes, bytes become answers in the same order.

A driver owns the socket. It writes what `negotiate` and `request` return, reads into `get_buffer`, tells
`buffer_updated` how much came, and takes answers from `next_answer`. After a failure every further call raises it.
"""

from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

from korvet_fast.client.protocol.errors import ClientError, ConnectionLost, os_reason, refused_certificate
from korvet_fast.client.protocol.foreign import FIND_PORT, explain_answer
from korvet_fast.client.protocol.frames import FrameReader
from korvet_fast.client.protocol.versions import CLIENT_ID, BrokerVersions, api_versions_request, response_version
from korvet_fast.endpoint import Address
from korvet_fast.errors import CodecError
from korvet_fast.wire.kafka.errors import UNSUPPORTED_VERSION
from korvet_fast.wire.kafka.shapes.cluster import API_VERSIONS
from korvet_fast.wire.kafka.shapes.message import Message
from korvet_fast.wire.kafka.shapes.security import SASL_HANDSHAKE

LARGEST_ANSWER = 1 << 30  # bytes of one answer
LARGEST_VERSIONS = 1 << 20  # bytes of the answer that tells versions; letters, taken for a length, are more
MOST_ELEMENTS = 1_000_000  # array elements of one answer
_NO_ANSWER = {False: "perhaps its listener has TLS, or is for something else", True: "perhaps it is for something else"}
ANSWER_ROOM = 1 << 20  # bytes of memory for an answer before it comes, beside the records that were asked for

Parts = list[bytes | bytearray | memoryview]  # the bytes of one request, in order


class _Request(NamedTuple):
    message: Message
    version: int
    correlation_id: int
    room: int  # bytes of memory that the answer gets before it comes


class ConnectionState:
    """The state of one connection. `failure`: why it ended, None while it is open. `tls`: it is inside TLS."""

    def __init__(self, endpoint: Address, largest_answer: int = LARGEST_ANSWER, *, tls: bool = False) -> None:
        self.endpoint = endpoint
        self._tls = tls
        self.failure: ClientError | None = None
        self._unanswered: deque[_Request] = deque()
        self._next_id = 0
        self._versions: BrokerVersions | None = None
        self._served = False  # the broker has answered something else than its versions
        self._largest_answer = largest_answer
        self._frames = FrameReader(min(largest_answer, LARGEST_VERSIONS))

    @property
    def unanswered(self) -> int:
        """Requests without an answer."""
        return len(self._unanswered)

    def negotiate(self, answer: Mapping[str, Any] | None = None) -> Parts | None:
        """The next request of the version negotiation; None once versions are known, and other requests may follow.

        `answer`: to the request that this method returned last; None at the beginning. Raises `ClientError`.
        """
        if answer is None:
            return self._encode(API_VERSIONS, API_VERSIONS.highest, api_versions_request())
        if answer["error_code"] == UNSUPPORTED_VERSION and self._next_id == 1:
            return self._encode(API_VERSIONS, 0, {})  # every broker knows version 0
        self._versions = BrokerVersions(self.endpoint, answer)
        self._frames.limit = self._largest_answer
        return None

    def version(self, message: Message) -> int:
        """The version in which a request is sent. Raises `ClientError` if both sides have none in common."""
        assert self._versions is not None, "versions are negotiated first"
        return self._versions.choose(message)

    def speaks(self, message: Message) -> bool:
        """Whether the broker serves this API at all."""
        assert self._versions is not None, "versions are negotiated first"
        return self._versions.include(message)

    def request(self, message: Message, values: Mapping[str, Any]) -> Parts:
        """A request as bytes, in the newest version that both sides know. Raises `ClientError`."""
        return self._encode(message, self.version(message), values)

    def notify(self, message: Message, values: Mapping[str, Any]) -> Parts:
        """As `request`, for one that the broker does not answer: Produce with acks=0. Raises `ClientError`."""
        parts = self.request(message, values)
        self._unanswered.pop()
        return parts

    def get_buffer(self) -> memoryview:
        """The buffer for the next bytes from the broker. Call `next_answer` until it returns None first."""
        return self._frames.get_buffer()

    def buffer_updated(self, count: int) -> None:
        """Take `count` bytes that were read into the buffer."""
        self._frames.buffer_updated(count)

    def next_answer(self) -> dict[str, Any] | None:
        """The answer to the oldest request that has none; None while bytes are missing.

        Its records are views of a buffer of their own. Raises `ClientError` if the peer is no Kafka broker.
        """
        if self.failure is not None:
            raise self.failure
        try:
            frame = self._frames.take(self._unanswered[0].room if self._unanswered else ANSWER_ROOM)
            return None if frame is None else self._decode(frame)
        except CodecError as error:
            reason = f" ({error})"
            if self._versions is None:
                reason = f": {explain_answer(self._frames.prefix) or f'{error}; {FIND_PORT}'}"
            raise self.fail(ClientError(f"{self.endpoint} does not answer as a Kafka broker does{reason}")) from None

    def lose(self, error: Exception | None) -> ClientError:
        """The socket failed, or (None) the broker ended the stream: returns the failure."""
        if error is None:
            return self.fail(ConnectionLost(f"{self.endpoint} closed the connection{self._explain_end()}"))
        reason = os_reason(error) if isinstance(error, OSError) else str(error)
        lost = ConnectionLost(f"lost the connection to {self.endpoint}: {reason}")
        return self.fail(refused_certificate(self.endpoint, reason) or lost)

    def time_out(self, seconds: float) -> ClientError:
        """The oldest request got no answer for so long: returns the failure."""
        missing = f"answer {self._unanswered[0].message.name}" if self._unanswered else "take all of a request"
        return self.fail(ConnectionLost(f"{self.endpoint} did not {missing} within {seconds:g} s"))

    def close(self) -> ClientError:
        """The driver closes the socket: returns the failure of requests without an answer."""
        return self.fail(ConnectionLost(f"the connection to {self.endpoint} was closed"))

    def fail(self, failure: ClientError) -> ClientError:
        """End the connection: returns the first failure, which stays."""
        if self.failure is None:
            self.failure = failure
            self._unanswered.clear()
        return self.failure

    def _explain_end(self) -> str:
        """Why the broker ended the stream, as far as this side can tell."""
        if self._versions is None:
            return f" without an answer; {_NO_ANSWER[self._tls]}: {FIND_PORT}"
        first = self._unanswered[0].message.key if self._unanswered else SASL_HANDSHAKE.key
        if self._served or first == SASL_HANDSHAKE.key or not self.speaks(SASL_HANDSHAKE):
            return ""
        return f"; it stops, or it wants a login: then set security.protocol=SASL_{'SSL' if self._tls else 'PLAINTEXT'}"

    def _encode(self, message: Message, version: int, values: Mapping[str, Any]) -> Parts:
        if self.failure is not None:
            raise self.failure
        correlation_id, self._next_id = self._next_id, (self._next_id + 1) & 0x7FFF_FFFF
        header = {
            "api_key": message.key,
            "api_version": version,
            "correlation_id": correlation_id,
            "client_id": CLIENT_ID,
        }
        parts: Parts = message.request.frame({**header, **values}, version)
        room = ANSWER_ROOM + values.get("max_bytes", 0)
        self._unanswered.append(_Request(message, version, correlation_id, room))
        return parts

    def _decode(self, frame: bytearray) -> dict[str, Any]:
        if not self._unanswered:
            raise CodecError("BAD_VALUE", "an answer that nobody asked for")
        request = self._unanswered.popleft()
        self._served = self._served or request.message.key != API_VERSIONS.key
        version = response_version(request.message, request.version, frame)
        values: dict[str, Any] = request.message.response.decode(frame, version, MOST_ELEMENTS)
        if values["correlation_id"] != request.correlation_id:
            raise CodecError("BAD_VALUE", f"answer {values['correlation_id']} instead of {request.correlation_id}")
        return values
