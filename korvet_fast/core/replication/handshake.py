"""The proof by which a peer of replication.peers shows that it is one; `secret.py` has the bytes of it."""

from typing import Final

from korvet_fast.core.replication.secret import NONCE_SIZE, OPERATOR, make_nonce
from korvet_fast.core.replication.static_peers import StaticPeers

NOBODY: Final = -1  # in place of a broker's id


class NotPeer(Exception):
    """The other side has not proved to be a peer, and is to be disconnected. The text says why."""


class Handshake:
    """One connection's. `peer`: the broker that has proved to be there, or `OPERATOR`; `NOBODY` before."""

    __slots__ = ("_asked", "_static", "peer")

    def __init__(self, static: StaticPeers) -> None:
        self.peer = NOBODY
        self._static = static
        self._asked: tuple[int, bytes, bytes] | None = None  # the claimed broker id, and the two nonces

    def challenge(self, broker: int, nonce: bytes) -> tuple[bytes, bytes]:
        """This broker's nonce, and its proof for the other's. Raises `NotPeer`."""
        own = self._static.own
        if broker != OPERATOR and (broker == own or broker not in self._static.addresses):
            raise NotPeer(f"broker {broker} is not another one of replication.peers")
        if len(nonce) != NONCE_SIZE or self._asked is not None:
            raise NotPeer("a challenge that is none, or a second one")
        made = make_nonce()
        self._asked = broker, nonce, made
        return made, self._static.secret.prove(own, broker, nonce, made, accepts=True)

    def prove(self, proof: bytes) -> int:
        """Check the other side's proof; returns its broker id. Raises `NotPeer`."""
        if self._asked is None:
            raise NotPeer("a proof of nothing")
        broker, theirs, made = self._asked
        if not self._static.secret.is_proof(proof, broker, self._static.own, made, theirs, accepts=False):
            raise NotPeer(f"who says to be broker {broker} does not know the secret of replication.peers")
        self.peer = broker
        return broker
