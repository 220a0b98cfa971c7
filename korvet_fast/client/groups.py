"""Consumer groups for administrators: their members, their committed offsets, and their lag."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from korvet_fast._native import batch_headers, to_columns
from korvet_fast.client.cluster import Cluster
from korvet_fast.client.consumer import DECOMPRESSED_MAX, MAX_BYTES, find_offset
from korvet_fast.client.protocol.errors import BrokerError, ClientError, check_error_code
from korvet_fast.client.protocol.metadata import TopicPartition
from korvet_fast.client.protocol.requests import check_offset_commit, fetch_request, offset_commit_request, read_fetch
from korvet_fast.errors import Errors
from korvet_fast.types import EARLIEST, LATEST
from korvet_fast.wire.kafka.errors import CODES, NONE
from korvet_fast.wire.kafka.shapes.commits import OFFSET_COMMIT, OFFSET_FETCH
from korvet_fast.wire.kafka.shapes.configs import DESCRIBE_CONFIGS
from korvet_fast.wire.kafka.shapes.consumer_groups import CONSUMER_GROUP_DESCRIBE
from korvet_fast.wire.kafka.shapes.fetch import FETCH
from korvet_fast.wire.kafka.shapes.group_admin import DELETE_GROUPS, DESCRIBE_GROUPS, LIST_GROUPS
from korvet_fast.wire.kafka.shapes.membership import CONSUMER, read_assignment

TOPIC = 2  # a resource type of the config requests
NOT_FOUND = CODES[Errors.GROUP_ID_NOT_FOUND]
UNKNOWN_TOPIC = CODES[Errors.UNKNOWN_TOPIC_OR_PARTITION]


class GroupListing(NamedTuple):
    """A group in the list of groups. `state` and `kind` are "" if the broker is too old to send them."""

    group: str
    state: str
    protocol_type: str
    kind: str


class PartitionProgress(NamedTuple):
    """The position of a group in a partition. None: not known. `lag`: the end minus the committed offset."""

    topic: str
    partition: int
    committed: int | None
    end: int | None
    lag: int | None
    member: str
    client: str
    host: str
    metadata: str


class GroupDescription(NamedTuple):
    """A group. `kind`: its protocol, classic or consumer. `protocol`: the assignor that its members use."""

    group: str
    kind: str
    state: str
    protocol: str
    members: int
    progress: list[PartitionProgress]


async def list_groups(cluster: Cluster, states: Iterable[str] = (), kinds: Iterable[str] = ()) -> list[GroupListing]:
    """The groups of all brokers, by name. Raises `ClientError`."""
    found: list[GroupListing] = []
    for broker in await cluster.brokers():
        answer = await broker.request(LIST_GROUPS, {"states_filter": list(states), "types_filter": list(kinds)})
        check_error_code("the list of groups", answer["error_code"])
        found += [
            GroupListing(row["group_id"], row["group_state"], row["protocol_type"], row["group_type"])
            for row in answer["groups"]
        ]
    return sorted(found)


async def describe_group(cluster: Cluster, group: str) -> GroupDescription:
    """One group, partition by partition. Raises `ClientError`."""
    coordinator = await cluster.coordinator(group)
    (row,) = (await coordinator.request(DESCRIBE_GROUPS, {"groups": [group]}))["groups"]
    kind, protocol, owners = "classic", row["protocol_data"], _owners(row)
    code = row["error_code"] or (NOT_FOUND if row["group_state"] == "Dead" else NONE)
    if code == NOT_FOUND and coordinator.speaks(CONSUMER_GROUP_DESCRIBE):
        (row,) = (await coordinator.request(CONSUMER_GROUP_DESCRIBE, {"group_ids": [group]}))["groups"]
        kind, protocol, owners = "consumer", row["assignor_name"], _consumers(row)
        code = row["error_code"]
    check_error_code(f"group {group!r}", code, None if code == NOT_FOUND else row["error_message"])
    committed = await fetch_committed(cluster, group)
    partitions = sorted({*owners, *committed})
    layouts = await _layouts(cluster, {topic for topic, _ in partitions})
    progress = [
        await _measure(cluster, each, committed.get(each), owners.get(each, {}), layouts[each[0]])
        for each in partitions
    ]
    return GroupDescription(group, kind, row["group_state"], protocol, len(row["members"]), progress)


def _owners(row: Mapping[str, Any]) -> dict[TopicPartition, dict[str, Any]]:
    """The member of a classic group that has each partition."""
    if row["protocol_type"] != CONSUMER:
        return {}
    members: list[dict[str, Any]] = row["members"]
    return {each: member for member in members for each in read_assignment(member["member_assignment"]) or ()}


def _consumers(row: Mapping[str, Any]) -> dict[TopicPartition, dict[str, Any]]:
    """The member of a group of the consumer protocol that has each partition."""
    members: list[dict[str, Any]] = row["members"]
    return {
        (topic["topic_name"], partition): member
        for member in members
        for topic in member["assignment"]["topic_partitions"]
        for partition in topic["partitions"]
    }


async def fetch_committed(cluster: Cluster, group: str) -> dict[TopicPartition, tuple[int, str]]:
    """The committed offsets of a group, each with its metadata. Raises `ClientError`."""
    asked = {"group_id": group, "topics": None, "groups": [{"group_id": group, "topics": None}]}
    answer = await (await cluster.coordinator(group)).request(OFFSET_FETCH, asked)
    found = answer["groups"][0] if answer["groups"] else answer
    check_error_code(f"what group {group!r} has committed", found["error_code"])
    return {
        (topic["name"], row["partition_index"]): (row["committed_offset"], row["metadata"] or "")
        for topic in found["topics"]
        for row in topic["partitions"]
        if row["error_code"] == NONE and row["committed_offset"] >= 0
    }


async def commit(cluster: Cluster, group: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Replace committed offsets of a group without members. Raises `ClientError`."""
    coordinator = await cluster.coordinator(group)
    answer = await coordinator.request(OFFSET_COMMIT, offset_commit_request(group, offsets))
    try:
        check_offset_commit(group, answer)
    except BrokerError as error:
        if error.error is not Errors.UNKNOWN_MEMBER_ID:
            raise
        raise ClientError(f"group {group!r} has members: stop them, then try again ({error.error})") from error


async def delete_group(cluster: Cluster, group: str) -> None:
    """Delete a group without members, with its committed offsets. Raises `ClientError`."""
    answer = await (await cluster.coordinator(group)).request(DELETE_GROUPS, {"groups_names": [group]})
    (row,) = answer["results"]
    check_error_code(f"group {group!r} was not deleted", row["error_code"])


async def find_bounds(cluster: Cluster, partition: TopicPartition) -> tuple[int, int]:
    """The first offset of a partition, and the one after its last. Raises `ClientError`."""
    first, end = await asyncio.gather(
        find_offset(cluster, *partition, EARLIEST), find_offset(cluster, *partition, LATEST)
    )
    return first, end


async def _measure(
    cluster: Cluster,
    partition: TopicPartition,
    committed: tuple[int, str] | None,
    owner: Mapping[str, Any],
    layout: str | None,
) -> PartitionProgress:
    end = lag = None
    if layout is not None:
        first, end = await find_bounds(cluster, partition)
        if committed is not None:
            lag = end - committed[0]
            # In layout `entries` offsets follow the clock: only counting says how many records lie between two offsets.
            if layout == "entries":
                lag = await count_records(cluster, partition, max(first, committed[0]), end)
    offset, metadata = committed or (None, "")
    member, client, host = (owner.get(name, "") for name in ("member_id", "client_id", "client_host"))
    return PartitionProgress(*partition, offset, end, lag, member, client, host, metadata)


async def _layouts(cluster: Cluster, topics: Iterable[str]) -> dict[str, str | None]:
    """The `storage.layout` of each topic: "" if the broker does not send it, None if the topic does not exist."""
    layouts: dict[str, str | None] = {}
    for topic in sorted(topics):
        resource = {"resource_type": TOPIC, "resource_name": topic, "configuration_keys": ["storage.layout"]}
        answer = await cluster.ask_controller(DESCRIBE_CONFIGS, {"resources": [resource]})
        (found,) = answer["results"]
        if found["error_code"] == UNKNOWN_TOPIC:
            layouts[topic] = None
            continue
        check_error_code(f"the layout of topic {topic!r}", found["error_code"], found["error_message"])
        layouts[topic] = next((str(row["value"]) for row in found["configs"]), "")
    return layouts


async def count_records(cluster: Cluster, partition: TopicPartition, start: int, end: int) -> int:
    """How many records have offsets from `start` to below `end`; fetches all of them. Raises `ClientError`."""
    topic, index = partition
    leader = await cluster.leader(topic, index)
    count, offset = 0, start
    while offset < end:
        request = fetch_request(topic, {index: offset}, max_bytes=MAX_BYTES, partition_max_bytes=MAX_BYTES, min_bytes=0)
        (found,) = read_fetch(topic, await leader.request(FETCH, request))
        data = found["records"] or b""
        batches = batch_headers(data, False)
        if not batches:
            break
        for batch in batches:
            if batch.base_offset >= offset and batch.last_offset < end:
                count += batch.count
            else:
                part = to_columns(data[batch.start : batch.start + batch.size], DECOMPRESSED_MAX)
                count += sum(offset <= each < end for each in memoryview(part["offset"]).tolist())
        offset = batches[-1].last_offset + 1
    return count
