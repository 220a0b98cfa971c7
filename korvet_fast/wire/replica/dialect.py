"""The protocol between brokers behind one listener: Kafka's framing, and a table of requests of its own."""

from collections.abc import Mapping
from typing import Final, cast

from korvet_fast._native import Frames
from korvet_fast.core.broker import Broker
from korvet_fast.core.client_session import Client
from korvet_fast.core.fair_executor import FairExecutor
from korvet_fast.core.replication.peers import LARGEST_SAVE
from korvet_fast.errors import SettingError
from korvet_fast.wire.dialect import FirstRequestLimits
from korvet_fast.wire.kafka.api.api_versions import api_versions
from korvet_fast.wire.kafka.dialect import KafkaDialect
from korvet_fast.wire.kafka.session import Handler, Route, Service, count_elements
from korvet_fast.wire.kafka.shapes.cluster import API_VERSIONS, ELECT_LEADERS
from korvet_fast.wire.kafka.shapes.fetch import FETCH
from korvet_fast.wire.kafka.shapes.offsets import OFFSET_FOR_LEADER_EPOCH
from korvet_fast.wire.replica.api.elect_leaders import elect_registry_leader
from korvet_fast.wire.replica.api.fetch import fetch
from korvet_fast.wire.replica.api.handshake import challenge, prove
from korvet_fast.wire.replica.api.metadata_log import keys, vote
from korvet_fast.wire.replica.api.offset_for_leader_epoch import offset_for_leader_epoch
from korvet_fast.wire.replica.session import Session
from korvet_fast.wire.replica.shapes import CHALLENGE, KEYS, PROVE, VOTE

_SMALL: Final = 4096  # bytes of a request before it is known who sends it
_LARGEST: Final = 3 * LARGEST_SAVE  # bytes of a broker's, whatever clients may send: a save has former values, too

ROUTES: Final[Mapping[int, Route]] = {
    message.key: Route(message, lowest, message.highest, cast(Handler, handler))
    for message, lowest, handler in (
        (API_VERSIONS, 0, api_versions),
        (CHALLENGE, 0, challenge),
        (PROVE, 0, prove),
        (FETCH, 12, fetch),
        (OFFSET_FOR_LEADER_EPOCH, 4, offset_for_leader_epoch),
        (KEYS, 0, keys),
        (VOTE, 0, vote),
        (ELECT_LEADERS, 2, elect_registry_leader),
    )
}


class ReplicaDialect:
    """Serves `broker` to the other ones of replication.peers."""

    of_peers = True
    in_zookeeper = False
    farewell = b""  # nothing of ours would be understood
    first_bytes = KafkaDialect.first_bytes  # ApiVersions is sent first here, too
    listener_name = "a listener for replication.peers"
    first_request = FirstRequestLimits(_SMALL)

    def __init__(self, broker: Broker, listener: int, workers: FairExecutor) -> None:
        if broker.replication is None:
            raise SettingError("a listener replica:// is for replication.peers, and none are set")
        self._limit = max(broker.settings.number("socket.request.max.bytes"), _LARGEST)
        elements = count_elements(broker.settings.number("max.partitions"))
        self._service = Service(broker, listener, ROUTES, workers, elements, {})
        self._frames = Frames(_SMALL)

    def frames(self) -> Frames:
        self._frames = Frames(_SMALL)
        return self._frames

    def session(self, peer: str, client: Client | None = None) -> Session:
        # A connection asks for its frames first: the session lets them be larger when it knows who is there.
        return Session(self._service, self._frames, self._limit, peer, client)
