"""DescribeLogDirs (key 35), versions 1-4: how many bytes each partition that is led here has in the store.

1 sizes; 2 flexible; 3 an error for all; 4 the volume's size and free space, unknown here (-1): a store need be no disk.
There is one "directory", the store, so its name says no more than that. Null asks for all partitions.
"""

from collections.abc import Iterable
from typing import Final

from korvet_fast.core.partition import Partition
from korvet_fast.wire.kafka.session import Session, Values

_NAME: Final = "store"


async def describe_log_dirs(session: Session, request: Values, version: int) -> Values:
    topics = session.broker.topics
    rows = []
    if request["topics"] is None:
        rows = [_describe(topic.name, topic.partitions) for topic in topics]
    else:
        for asked in request["topics"]:
            topic = topics.get(asked["topic"])
            if topic is not None:
                wanted = set(asked["partitions"])
                rows.append(_describe(topic.name, [one for one in topic.partitions if one.index in wanted]))
    return {"results": [{"log_dir": _NAME, "topics": rows}]}


def _describe(name: str, partitions: Iterable[Partition]) -> Values:
    return {
        "name": name,
        "partitions": [
            {"partition_index": partition.index, "partition_size": partition.size, "offset_lag": 0}
            for partition in partitions
            if partition.led
        ],
    }
