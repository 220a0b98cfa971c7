"""LeaveGroup (key 13), versions 0-5: members go, without anybody waiting for the end of their sessions.

1 and 2 nothing new; 3 several members, static ones by their instance id; 4 flexible; 5 a reason, which is not used.
"""

from korvet_fast.wire.kafka.errors import number
from korvet_fast.wire.kafka.session import Session, Values


async def leave_group(session: Session, request: Values, version: int) -> Values:
    members = request["members"] if version >= 3 else [{"member_id": request["member_id"], "group_instance_id": None}]
    named = [(row["member_id"], row["group_instance_id"]) for row in members]
    error, errors = session.broker.groups.classic.leave(request["group_id"], named)
    if version < 3:
        return {"error_code": number(error or errors[0])}
    rows = [
        {"member_id": member_id, "group_instance_id": instance_id, "error_code": number(each)}
        for (member_id, instance_id), each in zip(named, errors, strict=False)  # no errors: no member was looked at
    ]
    return {"error_code": number(error), "members": rows}
