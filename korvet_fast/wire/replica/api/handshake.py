"""Challenge and Prove: both sides show that they know the secret, and which brokers they are, or an operator."""

from korvet_fast.core.replication.handshake import NotPeer
from korvet_fast.wire.dialect import CloseConnection
from korvet_fast.wire.kafka.session import Values
from korvet_fast.wire.replica.session import Session


async def challenge(session: Session, request: Values, version: int) -> Values:
    own, broker = session.replication.own, request["broker_id"]
    if request["expected_id"] != own:
        raise CloseConnection(f"broker {broker} takes this one, {own}, for broker {request['expected_id']}")
    try:
        nonce, proof = session.handshake.challenge(broker, request["nonce"])
    except NotPeer as error:
        raise CloseConnection(str(error)) from None
    return {"nonce": nonce, "proof": proof}


async def prove(session: Session, request: Values, version: int) -> Values:
    try:
        session.prove(request["proof"])
    except NotPeer as error:
        raise CloseConnection(str(error)) from None
    return {}
