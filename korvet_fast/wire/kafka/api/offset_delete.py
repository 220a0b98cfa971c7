"""OffsetDelete (key 47), version 0: a group forgets its committed offsets in topics that its members do not read.

Source: KIP-496. A partition named more than once is answered once, as Kafka does.
"""

from korvet_fast.core.groups.classic.group import ClassicGroup
from korvet_fast.core.groups.consumer.group import ConsumerGroup
from korvet_fast.core.groups.documents import AnyGroup, TopicPartition
from korvet_fast.errors import Errors
from korvet_fast.wire.kafka.errors import number
from korvet_fast.wire.kafka.session import Session, Values
from korvet_fast.wire.kafka.shapes.membership import CONSUMER, read_subscription


async def offset_delete(session: Session, request: Values, version: int) -> Values:
    groups = session.broker.groups
    group_id = request["group_id"]
    error, group = groups.groups.describe(group_id)
    if group is not None and group.members and group.protocol_type != CONSUMER:
        error = Errors.NON_EMPTY_GROUP  # the topics that they read are not known
    if error or group is None:
        return {"error_code": number(error)}
    pace = session.pace()
    subscriptions = _read_subscriptions(group)
    errors: dict[TopicPartition, Errors] = {}
    for topic in request["topics"]:
        name = topic["name"]
        reads = _reads(group, subscriptions, name)
        for row in topic["partitions"]:
            index = row["partition_index"]
            errors[TopicPartition(name, index)] = (
                Errors.GROUP_SUBSCRIBED_TO_TOPIC if reads else _refuse(session, name, index)
            )
            if pace.due():
                await pace.turn()
    error = await groups.offsets.delete(group_id, [partition for partition, why in errors.items() if not why])
    if error:
        return {"error_code": number(error)}
    topics: dict[str, list[Values]] = {}
    for partition, why in errors.items():
        row = {"partition_index": partition.partition, "error_code": number(why)}
        topics.setdefault(partition.topic, []).append(row)
    return {"topics": [{"name": name, "partitions": rows} for name, rows in topics.items()]}


def _refuse(session: Session, topic: str, partition: int) -> Errors:
    known = session.broker.topics.get(topic)
    exists = known is not None and 0 <= partition < len(known.partitions)
    return Errors.NONE if exists else Errors.UNKNOWN_TOPIC_OR_PARTITION


def _read_subscriptions(group: AnyGroup) -> list[set[str] | None]:
    if not isinstance(group, ClassicGroup):
        return []
    return [read_subscription(member.metadata(group.protocol)) for member in group.members]


def _reads(group: AnyGroup, subscriptions: list[set[str] | None], topic: str) -> bool:
    if isinstance(group, ConsumerGroup):
        return topic in group.subscribed.topics and group.in_use
    return any(wanted is None or topic in wanted for wanted in subscriptions)
