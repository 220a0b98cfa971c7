"""ConsumerGroupDescribe (key 69), versions 0-1: groups of the consumer protocol, their members and what each has.

1 tells which protocol a member uses (KIP-1099): here all of them use this one.
"""

from typing import Final

from korvet_fast.core.groups.consumer.group import ConsumerGroup
from korvet_fast.core.groups.consumer.members import ConsumerMember, Parts
from korvet_fast.core.topics import Topics
from korvet_fast.wire.kafka.api import operations
from korvet_fast.wire.kafka.faults import number
from korvet_fast.wire.kafka.session import Session, Values

_MODERN: Final = 1  # a member type


async def consumer_group_describe(session: Session, request: Values, version: int) -> Values:
    with_operations = request["include_authorized_operations"]
    return {"groups": [_describe(session, group_id, with_operations) for group_id in request["group_ids"]]}


def _describe(session: Session, group_id: str, with_operations: bool) -> Values:
    fault, group = session.broker.groups.describe(group_id)
    row: Values = {"group_id": group_id}
    if isinstance(group, ConsumerGroup):
        if with_operations:
            row["authorized_operations"] = operations.GROUP
        return row | _tell(group, session.broker.topics)
    if group is not None or fault == "GROUP_ID_NOT_FOUND":
        fault = "GROUP_ID_NOT_FOUND"
        row["error_message"] = f"there is no group {group_id!r} of the consumer protocol"
    row["error_code"] = number(fault)
    return row


def _tell(group: ConsumerGroup, topics: Topics) -> Values:
    return {
        "group_state": group.state.value,
        "group_epoch": group.epoch,
        "assignment_epoch": group.target_epoch,
        "assignor_name": group.assignor,
        "members": [_tell_member(member, group, topics) for member in group.members],
    }


def _tell_member(member: ConsumerMember, group: ConsumerGroup, topics: Topics) -> Values:
    return {
        "member_id": member.id,
        "instance_id": member.instance_id,
        "rack_id": member.rack_id,
        "member_epoch": member.epoch,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "subscribed_topic_names": list(member.names),
        "subscribed_topic_regex": member.regex or None,
        "assignment": _tell_parts(member.assigned, topics),
        "target_assignment": _tell_parts(group.target.get(member.id, frozenset()), topics),
        "member_type": _MODERN,
    }


def _tell_parts(parts: Parts, topics: Topics) -> Values:
    rows: dict[bytes, Values] = {}
    for identity, index in sorted(parts):
        topic = topics.by_id(identity)
        if topic is not None:  # else it has been deleted
            row = rows.setdefault(identity, {"topic_id": identity, "topic_name": topic.name, "partitions": []})
            row["partitions"].append(index)
    return {"topic_partitions": list(rows.values())}
