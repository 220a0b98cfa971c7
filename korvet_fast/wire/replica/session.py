"""A peer's connection: who it is has to be proved before anything else is answered."""

from collections.abc import Mapping
from struct import Struct
from typing import Final

from korvet_fast._native import Frames
from korvet_fast.core.client_session import Client
from korvet_fast.core.replication.handshake import NOBODY, Handshake
from korvet_fast.core.replication.replication import Replication
from korvet_fast.core.replication.secret import OPERATOR
from korvet_fast.wire.dialect import CloseConnection, Reply
from korvet_fast.wire.kafka import session as kafka
from korvet_fast.wire.kafka.shapes.cluster import ELECT_LEADERS
from korvet_fast.wire.kafka.shapes.message import API_VERSIONS
from korvet_fast.wire.replica.shapes import CHALLENGE, PROVE

_KEY: Final = Struct(">h")
_BEFORE: Final = (API_VERSIONS, CHALLENGE.key, PROVE.key)
# The requests of who is no broker.
_ALLOWED: Final[Mapping[int, tuple[int, ...]]] = {NOBODY: _BEFORE, OPERATOR: (*_BEFORE, ELECT_LEADERS.key)}


class Session(kafka.Session):
    """A connection of another broker, or of an operator who knows the secret."""

    __slots__ = ("_frames", "_limit", "handshake")
    has_quotas = False  # brokers are no clients

    def __init__(
        self, service: kafka.Service, frames: Frames, limit: int, peer: str, client: Client | None = None
    ) -> None:
        super().__init__(service, peer, client)
        self._frames = frames
        self._limit = limit
        self.handshake = Handshake(self.replication.static)

    @property
    def follower(self) -> int:
        """The broker that it is, or `OPERATOR`; `NOBODY` before that is proved."""
        return self.handshake.peer

    @property
    def is_authenticated(self) -> bool:
        """See `ClientSession`."""
        return self.follower != NOBODY

    async def handle(self, frame: bytearray) -> Reply:
        """See `kafka.Session.handle`."""
        if self.follower < 0 and (len(frame) < _KEY.size or _KEY.unpack_from(frame)[0] not in _ALLOWED[self.follower]):
            raise CloseConnection("this listener is for replication.peers, and the peer has not proved to be one")
        return await super().handle(frame)

    def prove(self, proof: bytes) -> None:
        """Check who it is; requests of a broker may be large from now on. Raises `NotPeer`."""
        if self.handshake.prove(proof) != OPERATOR:
            self._frames.limit = self._limit

    @property
    def replication(self) -> Replication:
        """This broker's replication."""
        assert self.broker.replication is not None, "there is no such listener without it"
        return self.broker.replication

    def check_id(self, claimed: int) -> None:
        """Raises `CloseConnection` unless the peer names itself."""
        if claimed != self.follower:
            raise CloseConnection(f"broker {self.follower} says to be broker {claimed}")
