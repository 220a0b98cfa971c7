"""DescribeTopicPartitions (key 75), version 0 (KIP-966): topics and their partitions, a page at a time.

No name asks for all topics. The rows are in the order of names, begin at the cursor, and end with the cursor of the
next page. A page has 2,000 partitions at most, as in Kafka; here a topic that does not exist counts as one. Nothing is
created. There are no eligible leader replicas: the lists are empty, as Java's client does not take null.
"""

from collections.abc import Iterator
from itertools import compress, dropwhile
from typing import Final, NamedTuple

from korvet_fast.core.topics.topic import Topic, check_name
from korvet_fast.errors import Errors, KorvetError
from korvet_fast.wire.dialect import Reply
from korvet_fast.wire.kafka.api.topic_description import (
    describe_partition,
    describe_topic,
    find_brokers,
    refresh_topics,
)
from korvet_fast.wire.kafka.array_encoder import ArrayEncoder, LongReply
from korvet_fast.wire.kafka.errors import translate
from korvet_fast.wire.kafka.rights import DESCRIBE_TOPIC, require, sees
from korvet_fast.wire.kafka.session import Session, Values
from korvet_fast.wire.kafka.shapes.cluster import DESCRIBE_TOPIC_PARTITIONS

LARGEST_PAGE: Final = 2000  # partitions: Kafka's max.request.partition.size.limit
_NO_ELR: Final[Values] = {"eligible_leader_replicas": [], "last_known_elr": []}
_TOPICS: Final = ArrayEncoder(DESCRIBE_TOPIC_PARTITIONS.response_shape, "topics")
_PARTITIONS: Final = ArrayEncoder(_TOPICS.element, "partitions")


class _Row(NamedTuple):
    """A topic of the page, and which of its partitions; or an error."""

    topic: Topic | Values
    partitions: range = range(0)


async def describe_topic_partitions(session: Session, request: Values, version: int) -> Reply:
    topics = session.broker.topics
    names = sorted({row["name"] for row in request["topics"]})
    if any(topics.get(name) is None for name in names):
        await refresh_topics(session)  # another broker may have just made one
    limit = max(1, min(request["response_partition_limit"], LARGEST_PAGE))
    if not names:
        every = [topic.name for topic in topics]
        visible = await session.pace().map(lambda name: sees(session, DESCRIBE_TOPIC, name), every)
        names = list(compress(every, visible))
    rows, after = _take_page(session, names, request["cursor"], limit)
    around = {"correlation_id": request["correlation_id"], "next_cursor": after}
    known = find_brokers(session)
    out = LongReply(session.pace())
    await out.add(_TOPICS.head(around, len(rows), version))
    for topic, partitions in rows:
        if not isinstance(topic, Topic):
            await out.add(_TOPICS.row(topic, version))
            continue
        described = describe_topic(session, topic, authorized=True)
        await out.add(_PARTITIONS.head(described, len(partitions), version))
        for index in partitions:
            await out.add(_PARTITIONS.row(describe_partition(session, topic, index, known) | _NO_ELR, version))
        await out.add(_PARTITIONS.tail(described, version))
    await out.add(_TOPICS.tail(around, version))
    return out.finish()


def _take_page(
    session: Session, names: list[str], cursor: Values | None, limit: int
) -> tuple[list[_Row], Values | None]:
    """The rows of one page, and the cursor of the next one; None if this is the last."""
    rows: list[_Row] = []
    for name, first in _begin(names, cursor):
        if limit <= 0:
            return rows, {"topic_name": name, "partition_index": 0}
        topic = _find(session, name)
        many = len(topic.partitions) if isinstance(topic, Topic) else 0
        end = min(many, first + limit)
        rows.append(_Row(topic, range(first, end)))
        if end < many:
            return rows, {"topic_name": name, "partition_index": end}
        limit -= max(1, end - first)
    return rows, None


def _begin(names: list[str], cursor: Values | None) -> Iterator[tuple[str, int]]:
    """The names from the cursor on, each with its first partition."""
    if cursor is None:
        return ((name, 0) for name in names)
    at, index = cursor["topic_name"], max(0, cursor["partition_index"])
    return ((name, index if name == at else 0) for name in dropwhile(lambda name: name < at, names))


def _find(session: Session, name: str) -> Topic | Values:
    """The topic, or the row that says why not."""
    topic = session.broker.topics.get(name)
    try:
        require(session, DESCRIBE_TOPIC_PARTITIONS, DESCRIBE_TOPIC, name)
        if topic is not None:
            return topic
        check_name(name)
        raise KorvetError(Errors.UNKNOWN_TOPIC_OR_PARTITION)
    except KorvetError as error:
        return {"error_code": translate(error)[0], "name": name}
