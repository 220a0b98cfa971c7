"""JoinGroup (key 11), versions 0-9: become a member, or stay one when the group rebalances.

1 a rebalance timeout of its own; 2 and 3 nothing new; 4 newcomers are given an id and join again with it; 5 static
members; 6 flexible; 7 the protocol type; 8 a reason, which is not used; 9 a leader may be told to assign nothing.

The answer comes when all members have joined. It comes early, with an error after which clients join again, when the
connection is closed or memory is short.
"""

from uuid import uuid4

from korvet_fast.core.groups.budget import LONGEST
from korvet_fast.core.groups.classic.requests import JoinRequest
from korvet_fast.wire.kafka.delayed_join import wait
from korvet_fast.wire.kafka.errors import number
from korvet_fast.wire.kafka.session import Session, Values


async def join_group(session: Session, request: Values, version: int) -> Values:
    group_id, instance_id = request["group_id"], request["group_instance_id"]
    client_id = (request["client_id"] or "")[:LONGEST]  # only shown to people, and a part of the member's id
    session_ms, rebalance_ms = request["session_timeout_ms"], request["rebalance_timeout_ms"]
    join = JoinRequest(
        member_id=request["member_id"],
        instance_id=instance_id,
        client_id=client_id,
        client_host=f"/{session.peer}",  # as Kafka writes it
        protocol_type=request["protocol_type"],
        protocols=tuple({row["name"]: row["metadata"] for row in request["protocols"]}.items()),
        session_timeout=session_ms / 1000,
        rebalance_timeout=(rebalance_ms if rebalance_ms >= 0 else session_ms) / 1000,
        new_member_id=f"{client_id if instance_id is None else instance_id}-{uuid4()}",
        requires_member_id=version >= 4,
        supports_skipping_assignment=version >= 9,
    )
    answer = await wait(session, group_id, session.broker.groups.classic.join(group_id, join))
    nothing = None if version >= 7 else ""
    return {
        "error_code": number(answer.error),
        "generation_id": answer.generation,
        "protocol_type": answer.protocol_type,
        "protocol_name": answer.protocol if answer.protocol is not None else nothing,
        "leader": answer.leader,
        "skip_assignment": answer.skip_assignment,
        "member_id": answer.member_id,
        "members": [
            {"member_id": identity, "group_instance_id": instance, "metadata": metadata}
            for identity, instance, metadata in answer.members
        ],
    }
