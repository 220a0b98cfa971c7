"""Heartbeat (key 12), versions 0-4: a member lives, and learns whether it has to join again.

1 and 2 nothing new; 3 static members; 4 flexible.
"""

from korvet_fast.wire.kafka.errors import number
from korvet_fast.wire.kafka.session import Session, Values


async def heartbeat(session: Session, request: Values, version: int) -> Values:
    error = session.broker.groups.classic.heartbeat(
        request["group_id"], request["member_id"], request["group_instance_id"], request["generation_id"]
    )
    return {"error_code": number(error)}
