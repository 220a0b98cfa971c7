"""ConsumerGroupDescribe (key 69), versions 0-1: groups of the consumer protocol, their members and assignments.

1 tells which protocol a member uses (KIP-1099): here all of them use this one.
A group named more than once is answered once: Kafka repeats the same answer, clients keep one.
"""

from typing import Final

from korvet_fast.core.acls.binding import ResourceType
from korvet_fast.core.groups.consumer.group import ConsumerGroup
from korvet_fast.core.groups.consumer.members import ConsumerMember
from korvet_fast.core.groups.consumer.partition_set import Partitions
from korvet_fast.core.topics.topics import Topics
from korvet_fast.errors import Errors
from korvet_fast.wire.dialect import Reply
from korvet_fast.wire.kafka.api import acl_operations
from korvet_fast.wire.kafka.array_encoder import ArrayEncoder
from korvet_fast.wire.kafka.errors import number, shorten
from korvet_fast.wire.kafka.rights import DESCRIBE_GROUP, DESCRIBE_TOPIC, has
from korvet_fast.wire.kafka.session import Session, Values
from korvet_fast.wire.kafka.shapes.consumer_groups import CONSUMER_GROUP_DESCRIBE

_MODERN: Final = 1  # a member type


_GROUPS: Final = ArrayEncoder(CONSUMER_GROUP_DESCRIBE.response_shape, "groups")


async def consumer_group_describe(session: Session, request: Values, version: int) -> Reply:
    group_ids = dict.fromkeys(request["group_ids"])
    values = {"correlation_id": request["correlation_id"]}
    with_operations = request["include_authorized_operations"]
    rows = (_describe(session, group_id, with_operations) for group_id in group_ids)
    return await _GROUPS.reply(values, len(group_ids), rows, version, session.pace())


def _describe(session: Session, group_id: str, with_operations: bool) -> Values:
    row: Values = {"group_id": group_id}
    if not has(session, CONSUMER_GROUP_DESCRIBE, DESCRIBE_GROUP, group_id):
        return row | {"error_code": number(DESCRIBE_GROUP.error)}
    error, group = session.broker.groups.groups.describe(group_id)
    if isinstance(group, ConsumerGroup):
        if with_operations:
            row["authorized_operations"] = acl_operations.find_operations(session, ResourceType.GROUP, group_id)
        topics = _list_topics(group, session.broker.topics)
        if not all(has(session, CONSUMER_GROUP_DESCRIBE, DESCRIBE_TOPIC, name) for name in topics):
            why = "the group has topics that the client may not describe"
            return row | {"error_code": number(DESCRIBE_TOPIC.error), "error_message": why}
        return row | _tell(group, session.broker.topics)
    if group is not None or error == Errors.GROUP_ID_NOT_FOUND:
        error = Errors.GROUP_ID_NOT_FOUND
        row["error_message"] = shorten(f"there is no group {group_id!r} of the consumer protocol")
    row["error_code"] = number(error)
    return row


def _tell(group: ConsumerGroup, topics: Topics) -> Values:
    return {
        "group_state": group.state.value,
        "group_epoch": group.epoch,
        "assignment_epoch": group.target_epoch,
        "assignor_name": group.assignor,
        "members": [_tell_member(member, group, topics) for member in group.members],
    }


def _list_topics(group: ConsumerGroup, topics: Topics) -> set[str]:
    """The names of all topics that an answer about the group has in it."""
    names: set[str] = set()
    for member in group.members:
        names.update(member.names)
        for partitions in (member.assigned, group.target.get(member.id, Partitions())):
            names.update(topic.name for identity, _ in partitions.list_rows() if (topic := topics.by_id(identity)))
    return names


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
        "assignment": _tell_partitions(member.assigned, topics),
        "target_assignment": _tell_partitions(group.target.get(member.id, Partitions()), topics),
        "member_type": _MODERN,
    }


def _tell_partitions(partitions: Partitions, topics: Topics) -> Values:
    rows = []
    for identity, indexes in partitions.list_rows():
        topic = topics.by_id(identity)
        if topic is not None:  # else it has been deleted
            rows.append({"topic_id": identity, "topic_name": topic.name, "partitions": indexes})
    return {"topic_partitions": rows}
