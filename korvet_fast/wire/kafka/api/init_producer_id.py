"""InitProducerId (key 22), versions 0-5: an id for an idempotent producer.

0 an id; 1 nothing new; 2 flexible; 3 names the id held so far (a new one is given all the same, as Kafka does without a
transactional id: the producer itself raises its epoch); 4 and 5 nothing new here.
Missing on purpose: transactions (refused with a reason's code).
"""

from korvet_fast.errors import Errors, KorvetError
from korvet_fast.wire.kafka.errors import translate
from korvet_fast.wire.kafka.session import Session, Values


async def init_producer_id(session: Session, request: Values, version: int) -> Values:
    try:
        if request["transactional_id"] is not None:
            raise KorvetError(Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        producer_id, epoch = await session.broker.new_producer()
    except KorvetError as error:
        code, _ = translate(error)
        return {"error_code": code, "producer_id": -1, "producer_epoch": -1}
    return {"producer_id": producer_id, "producer_epoch": epoch}
