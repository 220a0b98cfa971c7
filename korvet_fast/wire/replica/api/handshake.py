"""Challenge and Prove: both sides show that they know the secret, and which brokers they are."""

from korvet_fast.core.replication.secret import NONCE_SIZE, make_nonce
from korvet_fast.wire.dialect import CloseConnection
from korvet_fast.wire.replica.session import Session, Values


async def challenge(session: Session, request: Values, version: int) -> Values:
    replication, broker, theirs = session.replication, request["broker_id"], request["nonce"]
    if broker == replication.own or broker not in replication.brokers:
        raise CloseConnection(f"broker {broker} is not another one of replication.peers")
    if request["expected_id"] != replication.own:
        raise CloseConnection(f"broker {broker} takes this one, {replication.own}, for broker {request['expected_id']}")
    if len(theirs) != NONCE_SIZE or session.challenge is not None:
        raise CloseConnection("a challenge that is none, or a second one")
    own = make_nonce()
    session.challenge = broker, theirs, own
    proof = replication.secret.prove(replication.own, broker, theirs, own, accepts=True)
    return {"nonce": own, "proof": proof}


async def prove(session: Session, request: Values, version: int) -> Values:
    if session.challenge is None:
        raise CloseConnection("a proof of nothing")
    replication, (broker, theirs, own) = session.replication, session.challenge
    if not replication.secret.is_proof(request["proof"], broker, replication.own, own, theirs, accepts=False):
        raise CloseConnection(f"who says to be broker {broker} does not know the secret of replication.peers")
    session.welcome(broker)
    return {}
