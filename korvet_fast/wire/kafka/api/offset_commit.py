"""OffsetCommit (key 8), versions 2-9: a group commits offsets; they are durable when the answer goes.

2 a retention time for these commits; 3 and 4 nothing new; 5 no retention time; 6 leader epochs; 7 static members; 8
flexible; 9 members of the consumer protocol, with their epochs.
Of a partition named more than once the last row counts, as in Kafka.
"""

from typing import Final

from korvet_fast.core.groups.documents import OffsetAndMetadata, TopicPartition
from korvet_fast.wire.kafka.errors import number
from korvet_fast.wire.kafka.session import Session, Values

_MANY: Final = 256  # rows; of more, others have their turn between: such a request is `Route.alone`


async def offset_commit(session: Session, request: Values, version: int) -> Values:
    pace = session.pace() if sum(len(topic["partitions"]) for topic in request["topics"]) > _MANY else None
    offsets: dict[TopicPartition, OffsetAndMetadata] = {}
    for topic in request["topics"]:
        name = topic["name"]
        for row in topic["partitions"]:
            offsets[TopicPartition(name, row["partition_index"])] = OffsetAndMetadata(
                row["committed_offset"], row["committed_leader_epoch"], row["committed_metadata"] or ""
            )
            if pace is not None and pace.due():
                await pace.turn()
    errors = await session.broker.groups.offsets.commit(
        request["group_id"],
        request["member_id"],
        request["group_instance_id"],
        request["generation_id_or_member_epoch"],
        offsets,
        retention_ms=request["retention_time_ms"],
        knows_epochs=version >= 9,
        pace=pace,
    )
    topics = []
    for topic in request["topics"]:
        rows: list[Values] = []
        name, asked = topic["name"], topic["partitions"]
        for start in range(0, len(asked), _MANY):
            rows += [
                {
                    "partition_index": row["partition_index"],
                    "error_code": number(errors[TopicPartition(name, row["partition_index"])]),
                }
                for row in asked[start : start + _MANY]
            ]
            if pace is not None and pace.due():
                await pace.turn()
        topics.append({"name": name, "partitions": rows})
    return {"topics": topics}
