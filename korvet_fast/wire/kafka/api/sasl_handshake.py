"""SaslHandshake (key 17), versions 0-1: refused with ILLEGAL_SASL_STATE, as Kafka does on a listener without SASL.

0; 1 nothing new in the answer. A client that is set to log in learns at once that nobody asks it to; Java's tried again
for a minute when the connection was closed instead.
"""

from korvet_fast.wire.kafka.errors import ILLEGAL_SASL_STATE
from korvet_fast.wire.kafka.session import Session, Values


async def sasl_handshake(session: Session, request: Values, version: int) -> Values:
    return {"error_code": ILLEGAL_SASL_STATE}
