"""DescribeLogDirs (key 35), versions 1-4: how many bytes each partition has in this broker's store, and a copy's lag.

Over a shared store, only the partitions that this broker leads are told.

1 sizes; 2 flexible; 3 an error for all; 4 the volume's size and free space, unknown here (-1): a store need be no disk.
There is one "directory", the store, so its name says no more than that. Null asks for all partitions.
A partition named more than once is answered once, as Kafka does.
"""

from collections.abc import Iterable
from typing import Final, TypeAlias

from korvet_fast.core.partition.partition import Partition
from korvet_fast.wire.dialect import Reply
from korvet_fast.wire.kafka.array_encoder import ArrayEncoder, LongReply
from korvet_fast.wire.kafka.session import Session, Values
from korvet_fast.wire.kafka.shapes.directories import DESCRIBE_LOG_DIRS

_NAME: Final = "store"
_STORES: Final = ArrayEncoder(DESCRIBE_LOG_DIRS.response_shape, "results")
_TOPICS: Final = ArrayEncoder(_STORES.element, "topics")
_PARTITIONS: Final = ArrayEncoder(_TOPICS.element, "partitions")

Row: TypeAlias = tuple[int, int, int]  # of a partition: its index, bytes, and lag


async def describe_log_dirs(session: Session, request: Values, version: int) -> Reply:
    found = _find(session, request["topics"])
    out = LongReply(session.pace())
    await out.add(_STORES.head({"correlation_id": request["correlation_id"]}, 1, version))
    await out.add(_TOPICS.head({"log_dir": _NAME}, len(found), version))
    for name, partitions in found:
        rows = [row for partition in partitions if (row := await _measure(session, partition)) is not None]
        await out.add(_PARTITIONS.head({"name": name}, len(rows), version))
        for row in rows:
            await out.add(_PARTITIONS.row(row, version))
        await out.add(_PARTITIONS.tail({}, version))
    await out.add(_TOPICS.tail({}, version))
    await out.add(_STORES.tail({}, version))
    return out.finish()


def _find(session: Session, asked: list[Values] | None) -> list[tuple[str, Iterable[Partition]]]:
    """The topics asked for, and the partitions of each."""
    topics = session.broker.topics
    if asked is None:
        return [(topic.name, topic.partitions) for topic in topics]
    wanted: dict[str, set[int]] = {}
    for row in asked:
        wanted.setdefault(row["topic"], set()).update(row["partitions"])
    found: list[tuple[str, Iterable[Partition]]] = []
    for name, indexes in wanted.items():
        topic = topics.get(name)
        if topic is not None:
            many = len(topic.partitions)
            found.append((name, [topic.partitions[index] for index in sorted(indexes) if 0 <= index < many]))
    return found


async def _measure(session: Session, partition: Partition) -> Row | None:
    """None: this broker has nothing of it. Raises `StoreError`."""
    if partition.leadership.leads:
        return partition.index, partition.log.size, 0
    replication = session.broker.replication
    if replication is None:
        return None
    found = await replication.replicas.measure(f"{partition.topic}:{partition.index}")
    return (partition.index, *found) if found is not None else None
