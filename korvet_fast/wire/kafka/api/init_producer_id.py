"""InitProducerId (key 22), versions 0-5: an id for an idempotent producer.

0 an id; 1 nothing new; 2 flexible; 3 names the id held so far (a new one is given all the same, as Kafka does without a
transactional id: the producer itself raises its epoch); 4 and 5 nothing new here.
Missing on purpose: transactions (refused with a reason's code).
"""

from korvet_fast.core.acls.binding import Operation, ResourceType
from korvet_fast.errors import Errors, KorvetError
from korvet_fast.wire.kafka.errors import translate
from korvet_fast.wire.kafka.rights import IDEMPOTENT_WRITE, has
from korvet_fast.wire.kafka.session import Session, Values
from korvet_fast.wire.kafka.shapes.producers import INIT_PRODUCER_ID


async def init_producer_id(session: Session, request: Values, version: int) -> Values:
    try:
        if request["transactional_id"] is not None:
            raise KorvetError(Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        if not _may_write(session):
            raise KorvetError(IDEMPOTENT_WRITE.error)
        producer_id, epoch = await session.broker.new_producer()
    except KorvetError as error:
        code, _ = translate(error)
        return {"error_code": code, "producer_id": -1, "producer_epoch": -1}
    return {"producer_id": producer_id, "producer_epoch": epoch}


def _may_write(session: Session) -> bool:
    """Who may write to some topic needs no IDEMPOTENT_WRITE (KIP-679)."""
    permissions = session.find_permissions()
    return (
        permissions is None
        or permissions.allows_some(Operation.WRITE, ResourceType.TOPIC)
        or has(session, INIT_PRODUCER_ID, IDEMPOTENT_WRITE)
    )
