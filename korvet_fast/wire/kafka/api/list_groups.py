"""ListGroups (key 16), versions 0-5: the groups that this broker coordinates.

1 and 2 nothing new; 3 flexible; 4 only those in some states; 5 only those of some types.
"""

from typing import Final

from korvet_fast.core.groups.consumer.group import ConsumerGroup
from korvet_fast.core.groups.documents import AnyGroup
from korvet_fast.wire.kafka.faults import number
from korvet_fast.wire.kafka.session import Session, Values

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"


async def list_groups(session: Session, request: Values, version: int) -> Values:
    fault, groups = session.broker.groups.list()
    states = {state.lower() for state in request["states_filter"]}
    types = {kind.lower() for kind in request["types_filter"]}
    return {
        "error_code": number(fault),
        "groups": [
            {
                "group_id": group_id,
                "protocol_type": group.protocol_type or "",
                "group_state": group.state.value,
                "group_type": _type(group),
            }
            for group_id, group in groups
            if (not states or group.state.value.lower() in states) and (not types or _type(group) in types)
        ],
    }


def _type(group: AnyGroup) -> str:
    return CONSUMER if isinstance(group, ConsumerGroup) else CLASSIC
