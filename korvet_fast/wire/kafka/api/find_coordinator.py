"""FindCoordinator (key 10), versions 0-5: who keeps a group's or a transaction's state. Nobody here does yet.

It is answered all the same, because librdkafka compresses with lz4 only for brokers that serve version 0 of it
(rdkafka_feature.c). Clients that read by assignment ask in passing and go on without.
Missing on purpose: groups and transactions, so every key gets COORDINATOR_NOT_AVAILABLE with the reason.
"""

from korvet_fast.errors import KorvetError
from korvet_fast.wire.kafka.faults import translate
from korvet_fast.wire.kafka.session import Session, Values

NOBODY = {"node_id": -1, "host": "", "port": -1}


async def find_coordinator(session: Session, request: Values, version: int) -> Values:
    code, reason = translate(
        KorvetError("COORDINATOR_NOT_AVAILABLE", "this broker serves no groups and no transactions: read by assignment")
    )
    answer = {**NOBODY, "error_code": code, "error_message": reason}
    if version < 4:
        return answer
    return {"coordinators": [{"key": key, **answer} for key in request["coordinator_keys"]]}
