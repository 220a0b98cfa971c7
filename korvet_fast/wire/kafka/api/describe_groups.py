"""DescribeGroups (key 15), versions 0-6: the state of groups, their members and each member's assignment.

1 and 2 nothing new; 3 authorised operations; 4 static members; 5 flexible; 6 an error where there is no such group
(before, it is called Dead). Subscriptions and assignments of members are told of stable groups only. Groups of the
consumer protocol are not described here (see ConsumerGroupDescribe).
A group named more than once is answered once: Kafka repeats the same answer, clients keep one.
"""

from typing import Final

from korvet_fast.core.acls.binding import ResourceType
from korvet_fast.core.groups.classic.group import ClassicGroup
from korvet_fast.core.groups.classic.machine import ClassicGroupState
from korvet_fast.core.groups.classic.members import ClassicMember
from korvet_fast.core.groups.text.group import TextGroup
from korvet_fast.errors import Errors
from korvet_fast.wire.dialect import Reply
from korvet_fast.wire.kafka.api import acl_operations
from korvet_fast.wire.kafka.array_encoder import ArrayEncoder
from korvet_fast.wire.kafka.errors import number, shorten
from korvet_fast.wire.kafka.rights import DESCRIBE_GROUP, has
from korvet_fast.wire.kafka.session import Session, Values
from korvet_fast.wire.kafka.shapes.group_admin import DESCRIBE_GROUPS

_GROUPS: Final = ArrayEncoder(DESCRIBE_GROUPS.response_shape, "groups")


async def describe_groups(session: Session, request: Values, version: int) -> Reply:
    group_ids = dict.fromkeys(request["groups"])
    values = {"correlation_id": request["correlation_id"]}
    with_operations = request["include_authorized_operations"]
    rows = (_describe(session, group_id, version, with_operations) for group_id in group_ids)
    return await _GROUPS.reply(values, len(group_ids), rows, version, session.pace())


def _describe(session: Session, group_id: str, version: int, with_operations: bool) -> Values:
    row: Values = {"group_id": group_id}
    if not has(session, DESCRIBE_GROUPS, DESCRIBE_GROUP, group_id):
        return row | {"error_code": number(DESCRIBE_GROUP.error)}
    error, group = session.broker.groups.groups.describe(group_id)
    if with_operations:
        row["authorized_operations"] = acl_operations.find_operations(session, ResourceType.GROUP, group_id)
    if isinstance(group, ClassicGroup):
        return row | _tell(group)
    if isinstance(group, TextGroup):
        return row | _tell_text(group)
    if group is not None or error == Errors.GROUP_ID_NOT_FOUND:
        error = Errors.GROUP_ID_NOT_FOUND
        row["group_state"] = ClassicGroupState.DEAD.value
        if version < 6:
            return row
        row["error_message"] = shorten(f"there is no group {group_id!r} of the classic protocol")
    row["error_code"] = number(error)
    return row


def _tell(group: ClassicGroup) -> Values:
    stable = group.state is ClassicGroupState.STABLE
    return {
        "group_state": group.state.value,
        "protocol_type": group.protocol_type or "",
        "protocol_data": (group.protocol or "") if stable else "",
        "members": [_tell_member(member, group.protocol if stable else None) for member in group.members],
    }


def _tell_text(group: TextGroup) -> Values:
    """The members of a text group, without a subscription: they send none that a client of Kafka's could read."""
    nothing = {"client_id": "", "member_metadata": b"", "member_assignment": b""}
    return {
        "group_state": group.state.value,
        "protocol_type": group.protocol_type,
        "protocol_data": group.assignor,
        "members": [
            nothing | {"member_id": member.id, "client_host": member.client_host} for member in group.members.values()
        ],
    }


def _tell_member(member: ClassicMember, protocol: str | None) -> Values:
    return {
        "member_id": member.id,
        "group_instance_id": member.instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "member_metadata": member.metadata(protocol),
        "member_assignment": member.assignment if protocol is not None else b"",
    }
