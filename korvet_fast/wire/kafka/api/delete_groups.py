"""DeleteGroups (key 42), versions 0-2: groups without members, and all that they have committed.

1 nothing new; 2 flexible. A group named more than once is answered once, as Kafka does.
"""

from korvet_fast.wire.kafka.errors import number
from korvet_fast.wire.kafka.session import Session, Values


async def delete_groups(session: Session, request: Values, version: int) -> Values:
    groups = session.broker.groups.groups
    pace = session.pace()
    rows = []
    for name in dict.fromkeys(request["groups_names"]):
        rows.append({"group_id": name, "error_code": number(await groups.delete(name))})
        if pace.due():
            await pace.turn()
    return {"results": rows}
