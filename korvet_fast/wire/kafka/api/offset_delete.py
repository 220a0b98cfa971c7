"""OffsetDelete (key 47), version 0: a group forgets its positions in topics that its members do not read.

Source: KIP-496.
"""

from korvet_fast.core.groups.consumer.group import ConsumerGroup
from korvet_fast.core.groups.documents import AnyGroup, Place
from korvet_fast.wire.kafka.faults import number
from korvet_fast.wire.kafka.session import Session, Values
from korvet_fast.wire.kafka.shapes.membership import CONSUMER, read_subscription


async def offset_delete(session: Session, request: Values, version: int) -> Values:
    groups = session.broker.groups
    group_id = request["group_id"]
    fault, group = groups.describe(group_id)
    if group is not None and group.members and group.protocol_type != CONSUMER:
        fault = "NON_EMPTY_GROUP"  # nobody knows what they read
    if fault or group is None:
        return {"error_code": number(fault)}
    faults = {
        Place(topic["name"], row["partition_index"]): _refuse(session, group, topic["name"], row["partition_index"])
        for topic in request["topics"]
        for row in topic["partitions"]
    }
    fault = await groups.delete_offsets(group_id, [place for place, why in faults.items() if not why])
    if fault:
        return {"error_code": number(fault)}
    topics: dict[str, list[Values]] = {}
    for place, why in faults.items():
        row = {"partition_index": place.partition, "error_code": number(why)}
        topics.setdefault(place.topic, []).append(row)
    return {"topics": [{"name": name, "partitions": rows} for name, rows in topics.items()]}


def _refuse(session: Session, group: AnyGroup, topic: str, partition: int) -> str:
    if _reads(group, topic):
        return "GROUP_SUBSCRIBED_TO_TOPIC"
    known = session.broker.topics.get(topic)
    exists = known is not None and 0 <= partition < len(known.partitions)
    return "" if exists else "UNKNOWN_TOPIC_OR_PARTITION"


def _reads(group: AnyGroup, topic: str) -> bool:
    if isinstance(group, ConsumerGroup):
        return topic in group.seen and group.in_use
    subscriptions = [read_subscription(member.metadata(group.protocol)) for member in group.members]
    return any(wanted is None or topic in wanted for wanted in subscriptions)
