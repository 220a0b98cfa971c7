"""Fetch (key 1), version 12, of a follower: batches as they lie in the leader's log, also above the watermark.

A follower that is refused learns from `current_leader` who leads by now.
"""

from korvet_fast.core.replication.leading import ANSWER_BYTES
from korvet_fast.core.replication.peers import FetchedLog, FetchPosition
from korvet_fast.core.replication.replica_fetcher import LONGEST_WAIT_MS
from korvet_fast.wire.kafka.errors import number
from korvet_fast.wire.kafka.session import Values
from korvet_fast.wire.replica.session import Session


async def fetch(session: Session, request: Values, version: int) -> Values:
    session.check_id(request["replica_id"])
    positions = [
        FetchPosition(f"{topic['topic']}:{row['partition']}", row["current_leader_epoch"], row["fetch_offset"])
        for topic in request["topics"]
        for row in topic["partitions"]
    ]
    leading, room = session.replication.leading, min(request["max_bytes"], ANSWER_BYTES)
    wait_ms = min(max(0, request["max_wait_ms"]), LONGEST_WAIT_MS)
    answers = await leading.fetch(session.follower, positions, wait_ms, room, copy=session.wants_copies)
    topics: dict[str, list[Values]] = {}
    for answer in answers:
        topic, _, index = answer.log.rpartition(":")
        topics.setdefault(topic, []).append(_translate(int(index), answer))
    return {"responses": [{"topic": topic, "partitions": rows} for topic, rows in topics.items()]}


def _translate(index: int, answer: FetchedLog) -> Values:
    return {
        "partition_index": index,
        "error_code": number(answer.error),
        "high_watermark": answer.high_watermark,
        "log_start_offset": answer.start,
        "current_leader": {"leader_id": answer.leader, "leader_epoch": answer.epoch},
        "records": list(answer.records) or None,
    }
