"""CreateTopics (key 19), versions 2-7.

2 validate only; 3 nothing new; 4 -1 partitions or replicas stand for the broker's defaults; 5 flexible, answers with
the settings in force; 6 nothing new; 7 topic ids. Assignments are honoured where they name this broker alone.
Missing on purpose: quotas (6 may be throttled by them). The time allowed is not used: the topic is there when the
answer goes.
"""

from collections import Counter

from korvet_fast.core.topic import Topic
from korvet_fast.errors import KorvetError
from korvet_fast.wire.kafka.api.assignments import check_assignment
from korvet_fast.wire.kafka.api.entries import entry
from korvet_fast.wire.kafka.faults import translate
from korvet_fast.wire.kafka.session import Session, Values


async def create_topics(session: Session, request: Values, version: int) -> Values:
    named = Counter(topic["name"] for topic in request["topics"])
    rows = []
    for asked in request["topics"]:
        row: Values = {"name": asked["name"], "configs": None}
        rows.append(row)
        try:
            if named[asked["name"]] > 1:
                raise KorvetError("INVALID_REQUEST", "the request names this topic more than once")
            topic = await _create(session, asked, validate_only=request["validate_only"])
        except KorvetError as error:
            row["error_code"], row["error_message"] = translate(error)
        else:
            row |= _describe(topic)
    return {"topics": rows}


async def _create(session: Session, asked: Values, *, validate_only: bool) -> Topic:
    broker = session.broker
    partitions, replicas = asked["num_partitions"], asked["replication_factor"]
    if asked["assignments"]:
        if partitions != -1 or replicas != -1:
            raise KorvetError("INVALID_REQUEST", "with assignments, partitions and replication factor must be -1")
        partitions = len(asked["assignments"])
        if sorted(one["partition_index"] for one in asked["assignments"]) != list(range(partitions)):
            raise KorvetError("INVALID_REPLICA_ASSIGNMENT", "partitions must be assigned from 0 on without a gap")
        for one in asked["assignments"]:
            check_assignment(one["broker_ids"], broker.cluster)
    elif replicas not in (-1, 1):
        raise KorvetError("INVALID_REPLICATION_FACTOR", f"one copy is kept, {replicas} are asked for")
    configs = {config["name"]: config["value"] for config in asked["configs"]}
    return await broker.topics.create(asked["name"], partitions, configs, validate_only=validate_only)


def _describe(topic: Topic) -> Values:
    return {
        "topic_id": topic.id,
        "num_partitions": len(topic.partitions),
        "replication_factor": 1,
        "configs": [entry(described) for described in topic.config.describe()],
    }
