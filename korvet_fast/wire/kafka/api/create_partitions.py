"""CreatePartitions (key 37), versions 0-3: more partitions for a topic.

0 total, assignments, validate only; 1 nothing new; 2 flexible; 3 nothing new here (quotas). Assignments, one for each
new partition, are honoured where they name this broker alone. The time allowed is not used.
"""

from collections import Counter

from korvet_fast.errors import KorvetError
from korvet_fast.wire.kafka.api.assignments import check_assignment
from korvet_fast.wire.kafka.faults import translate
from korvet_fast.wire.kafka.session import Session, Values


async def create_partitions(session: Session, request: Values, version: int) -> Values:
    named = Counter(topic["name"] for topic in request["topics"])
    rows = []
    for asked in request["topics"]:
        row: Values = {"name": asked["name"]}
        rows.append(row)
        try:
            if named[asked["name"]] > 1:
                raise KorvetError("INVALID_REQUEST", "the request names this topic more than once")
            await _grow(session, asked, validate_only=request["validate_only"])
        except KorvetError as error:
            row["error_code"], row["error_message"] = translate(error)
    return {"results": rows}


async def _grow(session: Session, asked: Values, *, validate_only: bool) -> None:
    topics, name, total = session.broker.topics, asked["name"], asked["count"]
    topic = topics.get(name)
    if topic is None:
        raise KorvetError("UNKNOWN_TOPIC_OR_PARTITION", f"there is no topic {name!r}")
    assignments = asked["assignments"]
    if assignments is not None:
        more = total - len(topic.partitions)
        if more > 0 and len(assignments) != more:
            raise KorvetError("INVALID_REPLICA_ASSIGNMENT", f"{len(assignments)} assignments for {more} new partitions")
        for assignment in assignments:
            check_assignment(assignment["broker_ids"], session.broker.cluster)
    await topics.grow(topic, total, validate_only=validate_only)
