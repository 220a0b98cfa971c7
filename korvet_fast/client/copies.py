"""How far the copies of a topic's partitions are, as the brokers that keep them say."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from korvet_fast.client.cluster import Cluster
from korvet_fast.client.protocol.errors import ClientError, check_error_code
from korvet_fast.client.protocol.requests import read_offsets
from korvet_fast.types import LATEST
from korvet_fast.wire.kafka.shapes.directories import DESCRIBE_LOG_DIRS
from korvet_fast.wire.kafka.shapes.offsets import LIST_OFFSETS

_DEBUGGING = -2  # a replica_id: every broker answers for its own copy

Lags: TypeAlias = dict[tuple[int, int], int]


async def find_lags(cluster: Cluster, topic: str, partitions: Sequence[Mapping[str, Any]]) -> Lags:
    """By partition and follower, how many offsets the follower lacks; -1 where that is not known yet.

    `partitions`: of Metadata's answer. Brokers that do not answer are left out. Raises `ClientError`.
    """
    asked: dict[int, list[int]] = {}
    for row in partitions:
        for broker in row["replica_nodes"]:
            if broker != row["leader_id"] and broker not in row["offline_replicas"]:
                asked.setdefault(broker, []).append(row["partition_index"])
    found: Lags = {}
    for broker, indexes in asked.items():
        request = {"topics": [{"topic": topic, "partitions": indexes}]}
        try:
            answer = await (await cluster.broker(broker)).request(DESCRIBE_LOG_DIRS, request)
        except ClientError:  # or there is no such broker any more
            continue
        for directory in answer["results"]:
            check_error_code(f"the copies of broker {broker}", directory["error_code"])
            for each in directory["topics"]:
                found |= {(row["partition_index"], broker): row["offset_lag"] for row in each["partitions"]}
    return found


async def find_ends(cluster: Cluster, topic: str, partition: Mapping[str, Any]) -> dict[int, int]:
    """By broker, where its copy of a partition ends. Brokers that do not answer are left out."""
    index = partition["partition_index"]
    asked = [{"name": topic, "partitions": [{"partition_index": index, "timestamp": LATEST}]}]
    found = {}
    for broker in partition["replica_nodes"]:
        if broker in partition["offline_replicas"]:
            continue
        try:
            answer = await (await cluster.broker(broker)).request(
                LIST_OFFSETS, {"replica_id": _DEBUGGING, "isolation_level": 0, "topics": asked}
            )
        except ClientError:
            continue
        found[broker] = read_offsets(answer)[topic, index]
    return found
