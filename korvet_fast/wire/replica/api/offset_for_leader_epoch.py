"""OffsetForLeaderEpoch (key 23), version 4, of a follower: where an epoch ends in the leader's log (KIP-101)."""

from korvet_fast.core.replication.peers import EpochRequest
from korvet_fast.wire.kafka.errors import number
from korvet_fast.wire.kafka.session import Values
from korvet_fast.wire.replica.session import Session


async def offset_for_leader_epoch(session: Session, request: Values, version: int) -> Values:
    session.check_id(request["replica_id"])
    asked = [
        EpochRequest(f"{topic['topic']}:{row['partition']}", row["current_leader_epoch"], row["leader_epoch"])
        for topic in request["topics"]
        for row in topic["partitions"]
    ]
    topics: dict[str, list[Values]] = {}
    for answer in session.replication.leading.find_epoch_ends(asked):
        topic, _, index = answer.log.rpartition(":")
        epoch, end = answer.end
        row = {
            "partition": int(index),
            "error_code": number(answer.error),
            "leader_epoch": epoch,
            "end_offset": end,
        }
        topics.setdefault(topic, []).append(row)
    return {"topics": [{"topic": topic, "partitions": rows} for topic, rows in topics.items()]}
