"""SaslAuthenticate (key 36), versions 0-2: a token of the mechanism that SaslHandshake named. See sasl.py.

0; 1 how long the login holds (KIP-368); 2 flexible. On a listener without SASL refused as in sasl_handshake.py.
"""

from korvet_fast.wire.kafka.errors import ILLEGAL_SASL_STATE
from korvet_fast.wire.kafka.session import Session, Values


async def sasl_authenticate(session: Session, request: Values, version: int) -> Values:
    if session.sasl is None:
        return {"error_code": ILLEGAL_SASL_STATE, "error_message": "this listener asks nobody to log in"}
    return await session.sasl.authenticate(bytes(request["auth_bytes"]))
