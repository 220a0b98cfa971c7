"""DeleteGroups (key 42), versions 0-2: groups without members, and all that they have committed.

1 nothing new; 2 flexible.
"""

from korvet_fast.wire.kafka.faults import number
from korvet_fast.wire.kafka.session import Session, Values


async def delete_groups(session: Session, request: Values, version: int) -> Values:
    groups = session.broker.groups
    names = request["groups_names"]
    return {"results": [{"group_id": name, "error_code": number(await groups.delete(name))} for name in names]}
