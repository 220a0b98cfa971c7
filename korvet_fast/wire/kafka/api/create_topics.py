"""CreateTopics (key 19), versions 2-7.

2 validate only; 3 nothing new; 4 -1 partitions or replicas stand for the broker's defaults; 5 flexible, answers with
the settings in force (of those that have no effect here, with what was asked for); 7 topic ids. Assignments are
honoured where they name this broker alone.
6 may be throttled by a quota, older ones wait for it as long as they allow.
A topic named more than once is refused with INVALID_REQUEST, as Kafka does.
"""

from functools import partial
from typing import Final

from korvet_fast.config import Source
from korvet_fast.core.topics.topic import Topic
from korvet_fast.errors import Errors, KorvetError
from korvet_fast.wire.dialect import Reply
from korvet_fast.wire.kafka.api.assignments import check_assignment
from korvet_fast.wire.kafka.api.config_entries import config_entry
from korvet_fast.wire.kafka.api.repeated import find_twice, refuse_repeated
from korvet_fast.wire.kafka.api.throttle import Throttle
from korvet_fast.wire.kafka.array_encoder import ArrayEncoder, LongReply
from korvet_fast.wire.kafka.errors import number, translate
from korvet_fast.wire.kafka.rights import CREATE_TOPIC, DESCRIBE_TOPIC_CONFIGS, require, sees
from korvet_fast.wire.kafka.session import Session, Values
from korvet_fast.wire.kafka.shapes.topics import CREATE_TOPICS

_TOPICS: Final = ArrayEncoder(CREATE_TOPICS.response_shape, "topics")


async def create_topics(session: Session, request: Values, version: int) -> Reply:
    twice = find_twice(topic["name"] for topic in request["topics"])
    throttle = Throttle(session, request, waits=version < 6)
    rows = LongReply(session.pace())
    for asked in request["topics"]:
        row: Values = {"name": asked["name"], "configs": None}
        try:
            if asked["name"] in twice:
                raise refuse_repeated("topic")
            require(session, CREATE_TOPICS, CREATE_TOPIC, asked["name"], by_cluster=True)
            topic = await throttle.change(partial(_create, session, asked, validate_only=request["validate_only"]))
        except KorvetError as error:
            row["error_code"], row["error_message"] = translate(error)
        else:
            row |= _describe(session, topic)
            if not request["validate_only"]:
                throttle.own.count(len(topic.partitions))
        await rows.add(_TOPICS.row(row, version))
    await rows.add(_TOPICS.tail({}, version))
    fields = throttle.tell({"correlation_id": request["correlation_id"]})
    return rows.finish(_TOPICS.head(fields, len(request["topics"]), version))


async def _create(session: Session, asked: Values, *, validate_only: bool) -> Topic:
    broker = session.broker
    partitions, replicas = asked["num_partitions"], asked["replication_factor"]
    if asked["assignments"]:
        if partitions != -1 or replicas != -1:
            raise KorvetError(Errors.INVALID_REQUEST, "with assignments, partitions and replication factor must be -1")
        partitions = len(asked["assignments"])
        if sorted(one["partition_index"] for one in asked["assignments"]) != list(range(partitions)):
            raise KorvetError(Errors.INVALID_REPLICA_ASSIGNMENT, "partitions must be assigned from 0 on without a gap")
        for one in asked["assignments"]:
            check_assignment(one["broker_ids"], broker.cluster)
    configs = {config["name"]: config["value"] for config in asked["configs"]}
    name, changer = asked["name"], session.changer
    only = validate_only
    return await broker.topics.create(name, partitions, configs, changer, validate_only=only, factor=replicas)


def _describe(session: Session, topic: Topic) -> Values:
    if not sees(session, DESCRIBE_TOPIC_CONFIGS, topic.name):
        return {"topic_id": topic.id, "topic_config_error_code": number(DESCRIBE_TOPIC_CONFIGS.error)}
    return {
        "topic_id": topic.id,
        "num_partitions": len(topic.partitions),
        "replication_factor": len(topic.replicas[0]) if topic.replicas else 1,
        "configs": [
            config_entry(described)
            for described in topic.config.describe()
            if described.setting.effect or described.source is Source.TOPIC
        ],
    }
