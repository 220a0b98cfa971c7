"""What `topic describe` tells: partitions, the offsets they hold, who has copies, and the topic's own settings."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from korvet_fast.client.cluster import Cluster
from korvet_fast.client.configs import Resource, ResourceType, describe_configs
from korvet_fast.client.copies import Lags, find_lags
from korvet_fast.client.groups import count_records, find_bounds
from korvet_fast.client.protocol.errors import ConnectionLost, Unreachable, check_error_code

TITLES = ("partition", "leader", "first offset", "next offset", "offsets", "replicas", "in sync", "missing")


class PartitionDescription(NamedTuple):
    """A partition. `leader` None: nobody leads. `records` None: not counted.

    The offsets are None where nobody leads, or the leader does not answer.
    """

    partition: int
    leader: int | None
    first_offset: int | None
    next_offset: int | None
    records: int | None
    replicas: list[int]
    in_sync: list[int]
    missing: list[str]  # brokers that do not answer, and followers that lack something, in words


class TopicDescription(NamedTuple):
    """A topic. `settings`: those of its own."""

    topic: str
    partitions: list[PartitionDescription]
    settings: dict[str, str | None]


async def describe_topic(cluster: Cluster, name: str, count: bool) -> TopicDescription:
    """Describe a topic; `count`: also read all records, to count them. Raises `ClientError`."""
    answer = await cluster.metadata([name])
    (topic,) = answer["topics"]
    check_error_code(f"topic {name!r}", topic["error_code"])
    partitions = sorted(topic["partitions"], key=lambda row: int(row["partition_index"]))
    lags = await find_lags(cluster, name, partitions)
    silent: set[int] = set()
    rows = [await _describe_partition(cluster, name, row, lags, silent, count) for row in partitions]
    configs = await describe_configs(cluster, Resource(ResourceType.TOPIC, name))
    return TopicDescription(name, rows, {each.name: each.value for each in configs if each.source == "topic"})


def row_of(partition: PartitionDescription) -> tuple[str, ...]:
    """A partition as a row of the table: `TITLES`, and how many records it has if they were counted."""
    first, end = partition.first_offset, partition.next_offset
    known = first is not None and end is not None
    return (
        str(partition.partition),
        "none" if partition.leader is None else str(partition.leader),
        *(map(str, (first, end, (end or 0) - (first or 0))) if known else "???"),
        _list(partition.replicas),
        _list(partition.in_sync),
        _list(partition.missing),
        *(() if partition.records is None else (str(partition.records),)),
    )


async def _describe_partition(
    cluster: Cluster, topic: str, row: Mapping[str, Any], lags: Lags, silent: set[int], count: bool
) -> PartitionDescription:
    """`row`: of Metadata's answer; `lags`: see `find_lags`; `silent`: leaders that gave no answer, not asked again."""
    index, leader, replicas, in_sync = (
        row[name] for name in ("partition_index", "leader_id", "replica_nodes", "isr_nodes")
    )
    if leader < 0:
        away = [f"{one} is away" for one in row["offline_replicas"]]
        return PartitionDescription(index, None, None, None, None, replicas, sorted(in_sync), away)
    try:
        if leader in silent:
            return _describe_unknown(row)
        first, end = await find_bounds(cluster, (topic, index))
        records = await count_records(cluster, (topic, index), first, end) if count else None
    except (ConnectionLost, Unreachable):
        silent.add(leader)
        return _describe_unknown(row)
    missing = [
        _describe_follower(broker, lags.get((index, broker)), end - first, broker in in_sync)
        for broker in replicas
        if broker != leader
    ]
    found = list(filter(None, missing))
    return PartitionDescription(index, leader, first, end, records, replicas, sorted(in_sync), found)


def _describe_unknown(row: Mapping[str, Any]) -> PartitionDescription:
    """A partition whose leader does not answer: another broker leads when the rest has noticed."""
    leader = row["leader_id"]
    told = [f"{leader} leads, and does not answer"]
    return PartitionDescription(
        row["partition_index"], leader, None, None, None, row["replica_nodes"], sorted(row["isr_nodes"]), told
    )


def _describe_follower(broker: int, lag: int | None, offsets: int, in_sync: bool) -> str:
    """What a follower lacks, if anything. `lag` None: it does not answer."""
    if lag is None:
        return f"{broker} is away"
    if lag == 0 or (lag < 0 and in_sync):
        return ""
    if lag < 0:
        return f"{broker} has not begun"
    done = 100 * max(0, offsets - lag) // max(1, offsets)
    return f"{broker} lacks {lag:,} ({done} % copied)"


def _list(values: Iterable[object]) -> str:
    return ", ".join(map(str, values))
