"""ListGroups (key 16), versions 0-5: the groups that this broker coordinates.

1 and 2 nothing new; 3 flexible; 4 only those in some states; 5 only those of some types.
"""

from itertools import compress
from typing import Final

from korvet_fast.core.groups.consumer.group import ConsumerGroup
from korvet_fast.core.groups.documents import AnyGroup
from korvet_fast.wire.dialect import Reply
from korvet_fast.wire.kafka.array_encoder import ArrayEncoder
from korvet_fast.wire.kafka.errors import number
from korvet_fast.wire.kafka.rights import DESCRIBE_CLUSTER, DESCRIBE_GROUP, sees
from korvet_fast.wire.kafka.session import Session, Values
from korvet_fast.wire.kafka.shapes.group_admin import LIST_GROUPS

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"


_GROUPS: Final = ArrayEncoder(LIST_GROUPS.response_shape, "groups")


async def list_groups(session: Session, request: Values, version: int) -> Reply:
    error, groups = session.broker.groups.groups.list()
    states = {state.lower() for state in request["states_filter"]}
    types = {kind.lower() for kind in request["types_filter"]}
    pace = session.pace()
    if not sees(session, DESCRIBE_CLUSTER):
        visible = await pace.map(lambda row: sees(session, DESCRIBE_GROUP, row[0]), groups)
        groups = list(compress(groups, visible))
    if states or types:
        asked = await pace.map(
            lambda row: (not states or row[1].state.value.lower() in states) and (not types or _type(row[1]) in types),
            groups,
        )
        groups = list(compress(groups, asked))
    values = {"correlation_id": request["correlation_id"], "error_code": number(error)}
    rows = (
        {
            "group_id": group_id,
            "protocol_type": group.protocol_type or "",
            "group_state": group.state.value,
            "group_type": _type(group),
        }
        for group_id, group in groups
    )
    return await _GROUPS.reply(values, len(groups), rows, version, pace)


def _type(group: AnyGroup) -> str:
    return CONSUMER if isinstance(group, ConsumerGroup) else CLASSIC
