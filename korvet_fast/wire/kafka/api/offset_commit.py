"""OffsetCommit (key 8), versions 2-9: a group keeps positions; they are durable when the answer goes.

2 a retention time for these commits; 3 and 4 nothing new; 5 no retention time; 6 leader epochs; 7 static members; 8
flexible; 9 members of the consumer protocol, with their epochs.
"""

from korvet_fast.core.groups.coordinator import Position
from korvet_fast.core.groups.documents import Place
from korvet_fast.wire.kafka.faults import number
from korvet_fast.wire.kafka.session import Session, Values


async def offset_commit(session: Session, request: Values, version: int) -> Values:
    keep_ms = request["retention_time_ms"]
    positions = {
        Place(topic["name"], row["partition_index"]): Position(
            row["committed_offset"], row["committed_leader_epoch"], row["committed_metadata"] or "", keep_ms
        )
        for topic in request["topics"]
        for row in topic["partitions"]
    }
    faults = await session.broker.groups.commit(
        request["group_id"],
        request["member_id"],
        request["group_instance_id"],
        request["generation_id_or_member_epoch"],
        positions,
        knows_epochs=version >= 9,
    )
    return {
        "topics": [
            {
                "name": topic["name"],
                "partitions": [
                    {
                        "partition_index": row["partition_index"],
                        "error_code": number(faults[Place(topic["name"], row["partition_index"])]),
                    }
                    for row in topic["partitions"]
                ],
            }
            for topic in request["topics"]
        ]
    }
