"""SaslHandshake (key 17), versions 0-1: the mechanism by which the client logs in. See sasl.py.

0 tokens follow in no requests; 1 in SaslAuthenticate. On a listener without SASL refused with ILLEGAL_SASL_STATE, as
Kafka does: a client that is set to log in is told at once that nobody asks it to; Java's tried again for a minute when
the connection was closed instead.
"""

from korvet_fast.wire.kafka.errors import ILLEGAL_SASL_STATE
from korvet_fast.wire.kafka.session import Session, Values


async def sasl_handshake(session: Session, request: Values, version: int) -> Values:
    if session.sasl is None:
        return {"error_code": ILLEGAL_SASL_STATE}
    return session.sasl.shake_hands(request["mechanism"], version)
