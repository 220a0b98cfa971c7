"""AlterPartitionReassignments (key 45), version 0 (KIP-455): which replica of a partition comes first.

ElectLeaders makes the first one the leader. Copies do not move to other brokers, so that the brokers stay those
that have copies; where nobody copies anything, the one replica is the leader, and stays it. Nothing is under way
afterwards, and there is nothing to cancel.
"""

from korvet_fast.errors import Errors, KorvetError
from korvet_fast.wire.kafka.errors import translate
from korvet_fast.wire.kafka.session import Session, Values


async def alter_partition_reassignments(session: Session, request: Values, version: int) -> Values:
    topics = []
    for topic in request["topics"]:
        rows: list[Values] = [{"partition_index": row["partition_index"]} for row in topic["partitions"]]
        topics.append({"name": topic["name"], "partitions": rows})
        for asked, row in zip(topic["partitions"], rows, strict=True):
            try:
                await _arrange(session, topic["name"], asked["partition_index"], asked["replicas"])
            except KorvetError as error:
                row["error_code"], row["error_message"] = translate(error)
    return {"responses": topics}


async def _arrange(session: Session, name: str, index: int, replicas: list[int] | None) -> None:
    """Raises `KorvetError`."""
    topics = session.broker.topics
    topic = topics.get(name)
    if topic is None or not 0 <= index < len(topic.partitions):
        raise KorvetError(Errors.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {index} of topic {name!r}")
    if replicas is None:
        raise KorvetError(Errors.NO_REASSIGNMENT_IN_PROGRESS)
    if not topic.replicas:
        if replicas != [session.broker.find_leader(topic, index)[0]]:
            raise KorvetError(
                Errors.INVALID_REPLICA_ASSIGNMENT,
                f"the store keeps {name}:{index}, and brokers find its leader themselves: no replicas can be chosen",
            )
        return
    await topics.arrange(topic, index, replicas, session.changer)
