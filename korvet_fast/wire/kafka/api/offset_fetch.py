"""OffsetFetch (key 9), versions 1-9: the committed offsets of groups; -1 where there is none.

2 null asks for all partitions, and the group has an error of its own; 3 and 4 nothing new; 5 leader epochs; 6 flexible;
7 only stable offsets (all are: there are no transactions); 8 several groups; 9 the member that asks, with its epoch.
A partition named more than once is answered each time, as Kafka does. A group named more than once is refused with
INVALID_REQUEST: Kafka answers it each time, however much it has committed.

In versions 2 to 5 each partition that was asked for has the error of its group too, which Kafka tells without any
partition: aiokafka (0.14, version 3) looks at partitions only, and reads from `auto_offset_reset` where one is missing.
"""

from functools import partial
from operator import attrgetter
from typing import Final

from korvet_fast.core.fair_queue import Pace
from korvet_fast.core.groups.documents import OffsetAndMetadata, TopicPartition
from korvet_fast.errors import Errors
from korvet_fast.wire.kafka.api.repeated import find_twice
from korvet_fast.wire.kafka.array_encoder import ArrayEncoder, LongReply
from korvet_fast.wire.kafka.errors import CODES, number
from korvet_fast.wire.kafka.rights import DESCRIBE_GROUP, DESCRIBE_TOPIC, has, sees
from korvet_fast.wire.kafka.session import Answer, Session, Values
from korvet_fast.wire.kafka.shapes.commits import OFFSET_FETCH

_INDEX: Final = attrgetter("partition")
_FEW: Final = 64  # partitions that are told in one step
_ALONE: Final = 6  # since this version the error of a group stands alone
_TOPICS: Final = ArrayEncoder(OFFSET_FETCH.response_shape, "topics")
_PARTITIONS: Final = ArrayEncoder(_TOPICS.element, "partitions")
_GROUPS: Final = ArrayEncoder(OFFSET_FETCH.response_shape, "groups")  # since version 8
_GROUP_TOPICS: Final = ArrayEncoder(_GROUPS.element, "topics")
_GROUP_PARTITIONS: Final = ArrayEncoder(_GROUP_TOPICS.element, "partitions")
_REFUSED: Final = number(DESCRIBE_TOPIC.error)


class _Found:
    """A group's committed offsets of `count` `partitions`, which are in the order of the answer.

    `refused`: topics that the client may not describe.
    """

    __slots__ = ("count", "error", "offsets", "partitions", "refused")

    def __init__(
        self,
        error: int,
        partitions: dict[str, list[TopicPartition]],
        offsets: dict[TopicPartition, OffsetAndMetadata],
        count: int,
    ) -> None:
        self.error = error
        self.partitions = partitions
        self.offsets = offsets
        self.count = count
        self.refused: frozenset[str] = frozenset()

    async def limit(self, session: Session, pace: Pace, *, named: bool) -> None:
        """Refuse topics that the client may not describe if it has `named` them, and leave them out if not."""
        names = list(self.partitions)
        may = partial(has, session, OFFSET_FETCH) if named else partial(sees, session)  # of lists nothing is written
        allowed = await pace.map(partial(may, DESCRIBE_TOPIC), names)
        refused = frozenset(name for name, good in zip(names, allowed, strict=True) if not good)
        if named:
            self.refused = refused
            return
        for name in refused:
            self.count -= len(self.partitions.pop(name))

    def tell(self) -> Values:
        topics = [(topic, list(map(self.tell_one, partitions))) for topic, partitions in self.partitions.items()]
        return {"error_code": self.error, "topics": topics}

    def tell_one(self, partition: TopicPartition) -> tuple[int, int, int, str, int]:
        """A row of the answer, its fields in the order of the shape."""
        if partition.topic in self.refused:
            return partition.partition, -1, -1, "", _REFUSED
        offset = self.offsets.get(partition)
        if offset is None:
            return partition.partition, -1, -1, "", self.error
        return partition.partition, offset.offset, offset.leader_epoch, offset.metadata, self.error


_TWICE: Final = _Found(CODES[Errors.INVALID_REQUEST], {}, {}, 0)


async def offset_fetch(session: Session, request: Values, version: int) -> Answer:
    pace = session.pace()
    if version < 8:
        found = await _find(session, request, version, pace)
        if found.count <= _FEW:
            return found.tell()
        out = LongReply(pace)
        await _write(out, _TOPICS, _PARTITIONS, _head(request), found, version)
        return out.finish()
    groups = request["groups"]
    only = await _find(session, groups[0], version, pace) if len(groups) == 1 else None
    if only is not None and only.count <= _FEW:
        return {"groups": [{"group_id": groups[0]["group_id"], **only.tell()}]}
    twice = find_twice(one["group_id"] for one in groups)
    out = LongReply(pace)
    await out.add(_GROUPS.head(_head(request), len(groups), version))
    for one in groups:
        row = {"group_id": one["group_id"]}
        found = _TWICE if one["group_id"] in twice else only or await _find(session, one, version, pace)
        if found.count <= _FEW:
            await out.add(_GROUPS.row(row | found.tell(), version))
        else:
            await _write(out, _GROUP_TOPICS, _GROUP_PARTITIONS, row, found, version)
    await out.add(_GROUPS.tail({}, version))
    return out.finish()


def _head(request: Values) -> Values:
    return {"correlation_id": request["correlation_id"]}


async def _find(session: Session, asked: Values, version: int, pace: Pace) -> _Found:
    topics = asked["topics"]
    by_topic: dict[str, list[TopicPartition]] = {}
    partitions: list[TopicPartition] | None = None
    if topics is not None:
        partitions = []
        for topic in topics:
            if partitions and pace.due():
                await pace.turn()
            name = topic["name"]
            rows = [TopicPartition(name, index) for index in topic["partition_indexes"]]
            if rows:
                partitions += rows
                by_topic.setdefault(name, []).extend(rows)
    member_id, epoch = (asked["member_id"], asked["member_epoch"]) if version >= 9 else (None, -1)
    if has(session, OFFSET_FETCH, DESCRIBE_GROUP, asked["group_id"]):
        fetch = session.broker.groups.offsets.fetch
        refusal, found = await fetch(asked["group_id"], partitions, member_id, epoch, pace)
    else:
        refusal, found = DESCRIBE_GROUP.error, {}
    error, count = number(refusal), len(found if partitions is None else partitions)
    if error and version >= _ALONE:
        by_topic, count = {}, 0
    elif partitions is None:
        for partition in found:
            by_topic.setdefault(partition.topic, []).append(partition)
        for rows in by_topic.values():
            rows.sort(key=_INDEX)
        if len(by_topic) > 1:
            by_topic = dict(sorted(by_topic.items()))
    told = _Found(error, by_topic, found, count)
    if not error and session.find_permissions() is not None:
        await told.limit(session, pace, named=partitions is not None)
    return told


async def _write(
    out: LongReply, topics: ArrayEncoder, rows: ArrayEncoder, head: Values, found: _Found, version: int
) -> None:
    """The same as `_Found.tell`, row by row."""
    await out.add(topics.head(head, len(found.partitions), version))
    for topic, partitions in found.partitions.items():
        await out.add(rows.head({"name": topic}, len(partitions), version))
        for partition in partitions:
            await out.add(rows.row(found.tell_one(partition), version))
        await out.add(rows.tail({}, version))
    await out.add(topics.tail({"error_code": found.error}, version))
