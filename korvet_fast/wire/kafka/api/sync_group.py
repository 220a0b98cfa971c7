"""SyncGroup (key 14), versions 0-5: a member's assignment, which the leader sends with its own request.

1 and 2 nothing new; 3 static members; 4 flexible; 5 names the protocol, which must be the group's.
"""

from korvet_fast.core.groups.classic.requests import SyncRequest
from korvet_fast.wire.kafka.delayed_join import wait
from korvet_fast.wire.kafka.errors import number
from korvet_fast.wire.kafka.session import Session, Values


async def sync_group(session: Session, request: Values, version: int) -> Values:
    group_id = request["group_id"]
    sync = SyncRequest(
        request["member_id"],
        request["group_instance_id"],
        request["generation_id"],
        request["protocol_type"],
        request["protocol_name"],
        {row["member_id"]: row["assignment"] for row in request["assignments"]},
    )
    answer = await wait(session, group_id, session.broker.groups.classic.sync(group_id, sync))
    return {
        "error_code": number(answer.error),
        "protocol_type": answer.protocol_type,
        "protocol_name": answer.protocol,
        "assignment": answer.assignment,
    }
