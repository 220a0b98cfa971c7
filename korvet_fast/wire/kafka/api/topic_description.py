"""A topic and its partitions, as Metadata and DescribeTopicPartitions both tell of them."""

from collections.abc import Collection
from typing import Final

from korvet_fast.core.acls.binding import ResourceType
from korvet_fast.core.topics.topic import Topic
from korvet_fast.errors import Errors, KorvetError, StoreError
from korvet_fast.wire.kafka.api import acl_operations
from korvet_fast.wire.kafka.errors import CODES
from korvet_fast.wire.kafka.session import Session, Values

_NO_LEADER: Final = CODES[Errors.LEADER_NOT_AVAILABLE]


def describe_topic(session: Session, topic: Topic, *, authorized: bool) -> Values:
    """The row of a topic, without its partitions. `authorized`: with what the client may do to it."""
    row: Values = {"name": topic.name, "topic_id": topic.id}
    if authorized:
        row["topic_authorized_operations"] = acl_operations.find_operations(session, ResourceType.TOPIC, topic.name)
    return row


def describe_partition(session: Session, topic: Topic, index: int, known: Collection[int]) -> Values:
    """The row of a partition. `known`: the brokers that the client is told of."""
    leader, epoch = session.broker.find_leader(topic, index)
    if leader in known:
        alone = [leader]
        row = {
            "partition_index": index,
            "leader_id": leader,
            "leader_epoch": epoch,
            "replica_nodes": alone,
            "isr_nodes": alone,
        }
    else:
        session.broker.cluster.refresh_soon()
        row = {"partition_index": index, "leader_id": -1, "leader_epoch": epoch, "error_code": _NO_LEADER}
    if topic.replicas:
        replicas, isr = session.broker.find_replicas(topic, index)
        if replicas:
            row |= {"replica_nodes": list(replicas), "isr_nodes": list(isr)}
            row["offline_replicas"] = [broker for broker in replicas if broker not in known]
    return row


def find_brokers(session: Session) -> Collection[int]:
    """The brokers that clients of this listener are told of."""
    return {node.id for node in session.broker.cluster.nodes(session.service.listener)}


async def refresh_topics(session: Session) -> KorvetError | None:
    """See topics that other brokers have just made; why that cannot be, or None."""
    try:
        await session.broker.topics.refresh(session.changer)
    except StoreError as error:
        return error
    return None
