"""DescribeGroups (key 15), versions 0-6: the state of groups, their members and what each was given.

1 and 2 nothing new; 3 authorised operations; 4 static members; 5 flexible; 6 an error where there is no such group
(before, it is called Dead). What members said, and were given, is told of groups that are stable. Groups of the
consumer protocol are not described here (see ConsumerGroupDescribe).
"""

from korvet_fast.core.groups.group import Group
from korvet_fast.core.groups.machine import State
from korvet_fast.core.groups.members import Member
from korvet_fast.wire.kafka.api import operations
from korvet_fast.wire.kafka.faults import number
from korvet_fast.wire.kafka.session import Session, Values


async def describe_groups(session: Session, request: Values, version: int) -> Values:
    with_operations = request["include_authorized_operations"]
    return {"groups": [_describe(session, group_id, version, with_operations) for group_id in request["groups"]]}


def _describe(session: Session, group_id: str, version: int, with_operations: bool) -> Values:
    fault, group = session.broker.groups.describe(group_id)
    row: Values = {"group_id": group_id}
    if with_operations:
        row["authorized_operations"] = operations.GROUP
    if isinstance(group, Group):
        return row | _tell(group)
    if group is not None or fault == "GROUP_ID_NOT_FOUND":
        fault = "GROUP_ID_NOT_FOUND"
        row["group_state"] = State.DEAD.value
        if version < 6:
            return row
        row["error_message"] = f"there is no group {group_id!r} of the classic protocol"
    row["error_code"] = number(fault)
    return row


def _tell(group: Group) -> Values:
    stable = group.state is State.STABLE
    return {
        "group_state": group.state.value,
        "protocol_type": group.protocol_type or "",
        "protocol_data": (group.protocol or "") if stable else "",
        "members": [_tell_member(member, group.protocol if stable else None) for member in group.members],
    }


def _tell_member(member: Member, protocol: str | None) -> Values:
    return {
        "member_id": member.id,
        "group_instance_id": member.instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "member_metadata": member.metadata(protocol),
        "member_assignment": member.assignment if protocol is not None else b"",
    }
