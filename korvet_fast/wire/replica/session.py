"""A peer's connection: who it is has to be proved before anything else is answered."""

from collections.abc import Mapping
from struct import Struct
from typing import Any, Final

from korvet_fast._native import Frames
from korvet_fast.core.client_session import Client
from korvet_fast.core.replication.handshake import Handshake
from korvet_fast.core.replication.replication import Replication
from korvet_fast.core.replication.secret import OPERATOR
from korvet_fast.wire.dialect import CloseConnection, Reply
from korvet_fast.wire.kafka import session as kafka
from korvet_fast.wire.kafka.shapes.cluster import ELECT_LEADERS
from korvet_fast.wire.kafka.shapes.message import API_VERSIONS
from korvet_fast.wire.replica.shapes import CHALLENGE, PROVE

_KEY: Final = Struct(">h")
_BEFORE: Final = (API_VERSIONS, CHALLENGE.key, PROVE.key)
# The requests of who is no broker: -1, before anything is proved.
_ALLOWED: Final[Mapping[int, tuple[int, ...]]] = {-1: _BEFORE, OPERATOR: (*_BEFORE, ELECT_LEADERS.key)}


class Session(kafka.Session):
    """`follower`: the broker that it is, or `OPERATOR`; -1 before that is proved."""

    __slots__ = ("_frames", "_limit", "follower", "handshake")

    def __init__(
        self, service: kafka.Service, frames: Frames, limit: int, peer: str, client: Client | None = None
    ) -> None:
        super().__init__(service, peer, client)
        self._frames = frames
        self._limit = limit
        self.handshake = Handshake(self.replication.static)
        self.follower = -1

    async def handle(self, frame: bytearray) -> Reply:
        """See `kafka.Session.handle`."""
        if self.follower < 0 and (len(frame) < _KEY.size or _KEY.unpack_from(frame)[0] not in _ALLOWED[self.follower]):
            raise CloseConnection("this listener is for replication.peers, and the peer has not proved to be one")
        return await super().handle(frame)

    def welcome(self, broker: int) -> None:
        """This broker has proved who it is: from now on it may ask for everything, and an operator for a leader."""
        self.follower = broker
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


Values = dict[str, Any]
