"""Metadata (key 3), versions 0-12: the brokers, and the topics with their partitions; unknown topics are created.

0 an empty list means all topics; 1 null does, and the controller; 2 cluster id; 3 throttle time; 4 auto-creation may
be forbidden; 5 offline replicas; 6 nothing new; 7 leader epochs; 8-10 authorised operations of the cluster; 8 and up,
of topics; 9 flexible; 10 topic ids; 12 topics asked for by id.
Missing on purpose: the cluster's operations after 10 (DescribeCluster has them), as in Kafka.

The answer for all topics is kept, encoded, until a topic or a leader changes: with 10,000 partitions it is long.
"""

from collections.abc import Collection
from typing import Final

from korvet_fast.core.topic import Topic
from korvet_fast.errors import KorvetError
from korvet_fast.wire.dialect import Reply
from korvet_fast.wire.kafka.api import operations
from korvet_fast.wire.kafka.faults import CODES, translate
from korvet_fast.wire.kafka.session import Answer, Session, Values
from korvet_fast.wire.kafka.shapes.cluster import METADATA

_NO_LEADER: Final = CODES["LEADER_NOT_AVAILABLE"]
_NO_ID: Final = bytes(16)
_BY_ID: Final = 12  # the first version in which a topic may be asked for by its id alone
_CORRELATION: Final = slice(4, 8)  # where the correlation id is in a response, its length prefix included


async def metadata(session: Session, request: Values, version: int) -> Answer:
    asked = request["topics"]
    if asked is None or (version == 0 and not asked):
        return _describe_all(session, request, version)
    rows = [await _answer(session, topic, request, version) for topic in asked]
    return _around(session, request, rows)


def _describe_all(session: Session, request: Values, version: int) -> Reply:
    service, topics = session.service, session.broker.topics
    flags = request["include_topic_authorized_operations"] + 2 * request["include_cluster_authorized_operations"]
    made_at, reply = service.metadata.get((version, flags), (-1, b""))
    if made_at != topics.version:
        made_at = topics.version
        values = _around(session, request, [_describe(session, topic, request) for topic in topics])
        reply = b"".join(METADATA.response.frame(values, version))
        service.metadata[version, flags] = made_at, reply
    correlation_id = request["correlation_id"].to_bytes(4, "big", signed=True)
    return [reply[: _CORRELATION.start], correlation_id, memoryview(reply)[_CORRELATION.stop :]]


async def _answer(session: Session, asked: Values, request: Values, version: int) -> Values:
    """One topic, by id or name; an unknown name is created if the request and the settings allow it."""
    topics = session.broker.topics
    identity, name = asked["topic_id"], asked["name"]
    if version >= _BY_ID and identity != _NO_ID:
        name = None  # Java's clients leave the name empty, not null
    try:
        if name is None:
            if version < _BY_ID:
                raise KorvetError("INVALID_REQUEST")
            topic = topics.by_id(identity)
            if topic is None:
                raise KorvetError("UNKNOWN_TOPIC_ID")
            return _describe(session, topic, request)
        topic = topics.get(name) or await topics.find(name)
        if topic is None:
            topics.check_name(name)
            if not (request["allow_auto_topic_creation"] and session.broker.settings.flag("auto.create.topics.enable")):
                raise KorvetError("UNKNOWN_TOPIC_OR_PARTITION")
            topic = await topics.auto_create(name)
        return _describe(session, topic, request)
    except KorvetError as error:
        code, _ = translate(error)
        if name is None and version < _BY_ID:
            name = ""  # the answer of these versions has no null there
        return {"error_code": code, "name": name, "topic_id": _NO_ID if name else identity}


def _describe(session: Session, topic: Topic, request: Values) -> Values:
    known = {place.id for place in session.broker.cluster.places(session.service.listener)}
    row: Values = {
        "name": topic.name,
        "topic_id": topic.id,
        "partitions": [_describe_partition(session, topic, index, known) for index in range(len(topic.partitions))],
    }
    if request["include_topic_authorized_operations"]:
        row["topic_authorized_operations"] = operations.TOPIC
    return row


def _describe_partition(session: Session, topic: Topic, index: int, known: Collection[int]) -> Values:
    leader, epoch = session.broker.find_leader(topic, index)
    if leader not in known:
        session.broker.cluster.look_soon()
        return {"partition_index": index, "leader_id": -1, "error_code": _NO_LEADER}
    alone = [leader]
    return {
        "partition_index": index,
        "leader_id": leader,
        "leader_epoch": epoch,
        "replica_nodes": alone,
        "isr_nodes": alone,
    }


def _around(session: Session, request: Values, topics: list[Values]) -> Values:
    broker, cluster = session.broker, session.broker.cluster
    answer: Values = {
        "brokers": [
            {"node_id": place.id, "host": place.address.host, "port": place.address.port}
            for place in cluster.places(session.service.listener)
        ],
        "cluster_id": broker.cluster_id,
        "controller_id": cluster.controller,
        "topics": topics,
    }
    if request["include_cluster_authorized_operations"]:
        answer["cluster_authorized_operations"] = operations.CLUSTER
    return answer
