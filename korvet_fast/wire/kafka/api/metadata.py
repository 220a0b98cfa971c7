"""Metadata (key 3), versions 0-12: the brokers, and the topics with their partitions; unknown topics are created.

0 an empty list means all topics; 1 null does, and the controller; 2 cluster id; 3 throttle time; 4 auto-creation may
be forbidden; 5 offline replicas; 6 nothing new; 7 leader epochs; 8-10 authorised operations of the cluster; 8 and up,
of topics; 9 flexible; 10 topic ids; 12 topics asked for by id.
Missing on purpose: the cluster's operations after 10 (DescribeCluster has them), as in Kafka.

A topic named more than once is answered once, as Kafka does. The answer for all topics is kept, encoded, until a topic,
a leader or an ACL changes: with 10,000 partitions it is long. With ACLs it has the topics that the client may describe,
and those who may do the same from the same address share one. Long answers are encoded a slice at a time.
"""

import asyncio
from collections.abc import Collection, Sequence
from itertools import compress
from typing import Final

from korvet_fast.core.acls.binding import ResourceType
from korvet_fast.core.topics.topic import Topic, check_name, may_auto_create
from korvet_fast.errors import Errors, KorvetError, forget_frames
from korvet_fast.wire.dialect import Reply
from korvet_fast.wire.kafka.api import acl_operations
from korvet_fast.wire.kafka.api.throttle import ClientMutations
from korvet_fast.wire.kafka.api.topic_description import (
    describe_partition,
    describe_topic,
    find_brokers,
    refresh_topics,
)
from korvet_fast.wire.kafka.array_encoder import ArrayEncoder, LongReply
from korvet_fast.wire.kafka.errors import translate
from korvet_fast.wire.kafka.rights import DESCRIBE_CLUSTER, DESCRIBE_TOPIC, has, require, sees
from korvet_fast.wire.kafka.session import Answer, Session, Values
from korvet_fast.wire.kafka.shapes.cluster import METADATA

_NO_ID: Final = bytes(16)
_BY_ID: Final = 12  # the first version in which a topic may be asked for by its id alone
_CORRELATION: Final = slice(4, 8)  # where the correlation id is in a response, its length prefix included
_KEPT: Final = 64  # answers for all topics that are kept, by version and principal
_OFTEN: Final = 16  # topics between two looks at the clock
_SHORT: Final = 200  # topics and partitions that are encoded in one call
_TOPICS: Final = ArrayEncoder(METADATA.response_shape, "topics")
_PARTITIONS: Final = ArrayEncoder(_TOPICS.element, "partitions")


async def metadata(session: Session, request: Values, version: int) -> Answer:
    asked = request["topics"]
    if asked is None or (version == 0 and not asked):
        flags = request["include_topic_authorized_operations"] + 2 * request["include_cluster_authorized_operations"]
        making = _recall(session, flags, version) or await _describe_all(session, request, version, flags)
        reply = making.result() if making.done() else await making
        correlation_id = request["correlation_id"].to_bytes(4, "big", signed=True)
        return [reply[: _CORRELATION.start], correlation_id, memoryview(reply)[_CORRELATION.stop :]]
    if len(asked) == 1:
        name, by_name = asked[0]["name"], version < _BY_ID or asked[0]["topic_id"] == _NO_ID
        one: Topic | Values | None = session.broker.topics.get(name) if by_name else None
        if by_name and name and not sees(session, DESCRIBE_TOPIC, name):
            one = await _find(session, asked[0], request, version, None)
        elif one is None:
            unseen = await refresh_topics(session) if name else None
            one = await _find(session, asked[0], request, version, unseen)
        else:
            require(session, METADATA, DESCRIBE_TOPIC, name)  # it is allowed; the audit log may want to know
        if isinstance(one, Topic) and len(one.partitions) <= _SHORT:
            answer = _around(session, request)
            answer["topics"] = [_describe(session, one, request, find_brokers(session))]
            return answer
        return await _encode(session, request, version, [one])
    found = await _find_all(session, request, version)
    if len(found) + sum(len(one.partitions) for one in found if isinstance(one, Topic)) > _SHORT:
        return await _encode(session, request, version, found)
    known = find_brokers(session)
    answer = _around(session, request)
    answer["topics"] = [_describe(session, one, request, known) if isinstance(one, Topic) else one for one in found]
    return answer


async def _find_all(session: Session, request: Values, version: int) -> list[Topic | Values]:
    """The requested topics, each once, with the values for the answer."""
    pace, known = session.pace(), session.broker.topics
    found: list[Topic | Values] = []
    wanted = {(topic["topic_id"], topic["name"]): topic for topic in request["topics"]}
    unseen: KorvetError | None = None
    if not all(known.get(name) for _, name in wanted if name):
        # Another broker may have just made one. One look for all topics: 20,000 looks at Redis took half a minute.
        unseen = await refresh_topics(session)
    for asked in wanted.values():
        found.append(await _find(session, asked, request, version, unseen))
        if len(found) % _OFTEN == 0 and pace.due():
            await pace.turn()
    return found


def _recall(session: Session, flags: int, version: int) -> "asyncio.Future[bytes] | None":
    """The answer for all topics, if one is kept or being made, and still true."""
    made_at, reply = session.service.metadata.get((version, flags, session.find_permissions()), (-1, None))
    return reply if made_at == _find_version(session) else None


def _find_version(session: Session) -> int:
    """A number that is another one after each change of what any client is told of topics."""
    authorizer = session.broker.authorizer
    return session.broker.topics.version + (0 if authorizer is None else authorizer.version)


async def _describe_all(session: Session, request: Values, version: int, flags: int) -> "asyncio.Future[bytes]":
    """The answer for all topics, made now and kept; requests that come meanwhile wait for the same one."""
    kept, topics = session.service.metadata, list(session.broker.topics)
    making: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    key = version, flags, session.find_permissions()
    kept[key] = _find_version(session), making
    if len(kept) > _KEPT:
        del kept[next(iter(kept))]
    try:
        if session.find_permissions() is not None:
            visible = await session.pace().map(lambda topic: sees(session, DESCRIBE_TOPIC, topic.name), topics)
            topics = list(compress(topics, visible))
        making.set_result(b"".join(await _encode(session, request, version, topics)))
    except BaseException as error:
        if kept.get(key, (0, None))[1] is making:  # else it has been made anew meanwhile
            del kept[key]
        making.set_exception(error)
        making.exception()  # nobody has to be waiting
        raise
    return making


async def _encode(session: Session, request: Values, version: int, rows: Sequence[Topic | Values]) -> Reply:
    """The answer with these topics, encoded a slice at a time. A row that is no topic is an error."""
    around = _around(session, request) | {"correlation_id": request["correlation_id"]}
    known = find_brokers(session)
    out = LongReply(session.pace())
    await out.add(_TOPICS.head(around, len(rows), version))
    for one in rows:
        if not isinstance(one, Topic):
            await out.add(_TOPICS.row(one, version))
        elif len(one.partitions) <= _SHORT:
            await out.add(_TOPICS.row(_describe(session, one, request, known), version))
        else:
            topic, many = (
                describe_topic(session, one, authorized=request["include_topic_authorized_operations"]),
                len(one.partitions),
            )
            await out.add(_PARTITIONS.head(topic, many, version))
            for index in range(many):
                await out.add(_PARTITIONS.row(describe_partition(session, one, index, known), version))
            await out.add(_PARTITIONS.tail(topic, version))
    await out.add(_TOPICS.tail(around, version))
    return out.finish()


async def _find(
    session: Session, asked: Values, request: Values, version: int, unseen: KorvetError | None
) -> Topic | Values:
    """One topic, by id or name, or a row that says why not. An unknown name is created if that is allowed.

    `unseen`: why topics that other brokers have just made are not known here.
    """
    topics = session.broker.topics
    identity, name = asked["topic_id"], asked["name"]
    if version >= _BY_ID and identity != _NO_ID:
        name = None  # Java's clients leave the name empty, not null
    try:
        if name is None:
            if version < _BY_ID:
                raise KorvetError(Errors.INVALID_REQUEST)
            topic = topics.by_id(identity)
            if topic is None:
                raise KorvetError(Errors.UNKNOWN_TOPIC_ID)
            require(session, METADATA, DESCRIBE_TOPIC, topic.name)
            return topic
        require(session, METADATA, DESCRIBE_TOPIC, name)
        topic = topics.get(name)
        if topic is None:
            if unseen is not None:
                raise forget_frames(unseen)
            check_name(name)
            wanted = request["allow_auto_topic_creation"] and not session.closed  # no topics for clients that have gone
            if not (wanted and may_auto_create(session.broker.settings, name)):
                raise KorvetError(Errors.UNKNOWN_TOPIC_OR_PARTITION)
            session.check_creation(METADATA.name, name)
            mutations = ClientMutations(session, request)
            if mutations.wait_ms:
                raise KorvetError(Errors.UNKNOWN_TOPIC_OR_PARTITION)  # clients try again then
            topic = await topics.auto_create(name, session.changer)
            mutations.count(len(topic.partitions))
        return topic
    except KorvetError as error:
        code, _ = translate(error)
        if name is None and version < _BY_ID:
            name = ""  # the answer of these versions has no null there
        return {"error_code": code, "name": name, "topic_id": _NO_ID if name else identity}


def _describe(session: Session, topic: Topic, request: Values, known: Collection[int]) -> Values:
    row = describe_topic(session, topic, authorized=request["include_topic_authorized_operations"])
    row["partitions"] = [describe_partition(session, topic, index, known) for index in range(len(topic.partitions))]
    return row


def _around(session: Session, request: Values) -> Values:
    """All fields of the answer but its topics."""
    broker, cluster = session.broker, session.broker.cluster
    answer: Values = {
        "brokers": [
            {"node_id": node.id, "host": node.address.host, "port": node.address.port, "rack": node.rack}
            for node in cluster.nodes(session.service.listener)
        ],
        "cluster_id": broker.cluster_id,
        "controller_id": cluster.controller,
    }
    if request["include_cluster_authorized_operations"]:
        allowed = has(session, METADATA, DESCRIBE_CLUSTER)
        found = acl_operations.find_operations(session, ResourceType.CLUSTER) if allowed else 0
        answer["cluster_authorized_operations"] = found
    return answer
