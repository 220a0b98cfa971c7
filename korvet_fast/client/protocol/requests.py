"""The values of the requests that every client sends, and readers of their answers. All readers raise `BrokerError`."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from korvet_fast.client.protocol.errors import ClientError, check_error_code
from korvet_fast.client.protocol.metadata import TopicPartition
from korvet_fast.endpoint import Address

GROUP = 0  # a kind of coordinator
CONSUMER = -1  # replica_id of a client that is no broker
COMPRESSIONS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}  # compression.type -> number in a batch

R = TypeVar("R")


def find_coordinator_request(group: str) -> dict[str, Any]:
    """FindCoordinator, for versions that take one key and for those that take several."""
    return {"key": group, "key_type": GROUP, "coordinator_keys": [group]}


def read_coordinator(group: str, answer: Mapping[str, Any]) -> Address:
    """The address of the group's coordinator."""
    found = answer["coordinators"][0] if answer["coordinators"] else answer
    check_error_code(f"the coordinator of group {group!r}", found["error_code"], found["error_message"])
    return Address(found["host"], found["port"])


def list_offsets_request(timestamps: Mapping[TopicPartition, int], committed: bool = False) -> dict[str, Any]:
    """ListOffsets for partitions of one leader: each with -1 (latest), -2 (earliest) or a time in ms.

    `committed`: the latest offset is the one behind the last record that no open transaction may change.
    """
    rows = ((topic, {"partition_index": index, "timestamp": at}) for (topic, index), at in timestamps.items())
    topics = [{"name": name, "partitions": partitions} for name, partitions in _by_topic(rows)]
    return {"replica_id": CONSUMER, "isolation_level": int(committed), "topics": topics}


def read_offsets(answer: Mapping[str, Any]) -> dict[TopicPartition, int]:
    """The offsets of a ListOffsets answer; -1 where no record is as late as the time asked for."""
    offsets = {}
    for topic in answer["topics"]:
        for row in topic["partitions"]:
            subject = f"the offsets of partition {row['partition_index']} of topic {topic['name']!r}"
            check_error_code(subject, row["error_code"])
            offsets[topic["name"], row["partition_index"]] = row["offset"]
    return offsets


def fetch_request(
    topic: str,
    offsets: Mapping[int, int],
    *,
    max_bytes: int,
    partition_max_bytes: int,
    max_wait: float = 0.0,
    min_bytes: int = 1,
    committed: bool = False,
) -> dict[str, Any]:
    """Fetch of partitions of one topic and one leader. `offsets`: partition -> the offset to read next.

    `max_wait`: seconds until an answer with fewer than `min_bytes`; `committed`: only of committed transactions.
    """
    partitions = [
        {"partition": partition, "fetch_offset": offset, "partition_max_bytes": partition_max_bytes}
        for partition, offset in offsets.items()
    ]
    return {
        "replica_id": CONSUMER,
        "max_wait_ms": int(max_wait * 1000),
        "min_bytes": min_bytes,
        "max_bytes": max_bytes,
        "isolation_level": int(committed),
        "topics": [{"topic": topic, "partitions": partitions}],
    }


def read_fetch(topic: str, answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of a Fetch answer, one for each partition."""
    check_error_code(f"topic {topic!r}", answer["error_code"])
    rows = [row for each in answer["responses"] for row in each["partitions"]]
    for row in rows:
        check_error_code(f"partition {row['partition_index']} of topic {topic!r}", row["error_code"])
    return rows


def produce_request(
    batches: Iterable[tuple[TopicPartition, bytes | bytearray | memoryview]], acks: int, timeout: float
) -> dict[str, Any]:
    """Produce for partitions of one leader, one batch each. `acks`: 1, or -1 for all; `timeout`: seconds."""
    rows = ((topic, (partition, data)) for (topic, partition), data in batches)  # a row's first fields
    topics = [{"name": name, "partition_data": partitions} for name, partitions in _by_topic(rows)]
    return {"acks": acks, "timeout_ms": int(timeout * 1000), "topic_data": topics}


def read_produce(answer: Mapping[str, Any]) -> dict[TopicPartition, dict[str, Any]]:
    """The row of each partition in a Produce answer. Error codes are left to the caller."""
    return {(topic["name"], row["index"]): row for topic in answer["responses"] for row in topic["partition_responses"]}


def check_producer_id(answer: Mapping[str, Any]) -> None:
    """Raise `BrokerError` for an InitProducerId answer that refuses an id, `ClientError` for one that cannot be."""
    check_error_code("a broker refused a producer id", answer["error_code"])
    producer_id, epoch = answer["producer_id"], answer["producer_epoch"]
    if producer_id < 0 or epoch < 0:
        raise ClientError(f"a broker gave the producer id {producer_id} with epoch {epoch}; neither may be negative")


def offset_commit_request(group: str, offsets: Mapping[TopicPartition, int]) -> dict[str, Any]:
    """OffsetCommit by a client that is no member of the group."""
    rows = (
        (topic, {"partition_index": partition, "committed_offset": offset, "committed_metadata": ""})
        for (topic, partition), offset in offsets.items()
    )
    return {"group_id": group, "topics": [{"name": name, "partitions": each} for name, each in _by_topic(rows)]}


def check_offset_commit(group: str, answer: Mapping[str, Any]) -> None:
    """Raise `BrokerError` for the first partition whose offset was not committed."""
    for topic in answer["topics"]:
        for row in topic["partitions"]:
            subject = f"group {group!r}, partition {row['partition_index']} of topic {topic['name']!r}"
            check_error_code(subject, row["error_code"])


def _by_topic(rows: Iterable[tuple[str, R]]) -> Iterator[tuple[str, list[R]]]:
    topics: dict[str, list[R]] = {}
    for topic, row in rows:
        topics.setdefault(topic, []).append(row)
    yield from topics.items()
