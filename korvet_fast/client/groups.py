"""Groups as their administrators see them: who is in them, where they are, and how far they are behind."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from korvet_fast._native import columns, headers
from korvet_fast.client.cluster import Cluster
from korvet_fast.client.reader import DECOMPRESSED_MAX, MAX_BYTES, find_offset
from korvet_fast.client.refusal import check
from korvet_fast.core.types import EARLIEST, LATEST
from korvet_fast.wire.kafka.shapes.commits import OFFSET_COMMIT, OFFSET_FETCH
from korvet_fast.wire.kafka.shapes.configs import DESCRIBE_CONFIGS
from korvet_fast.wire.kafka.shapes.consumer_groups import CONSUMER_GROUP_DESCRIBE
from korvet_fast.wire.kafka.shapes.fetch import FETCH
from korvet_fast.wire.kafka.shapes.group_admin import DELETE_GROUPS, DESCRIBE_GROUPS, LIST_GROUPS
from korvet_fast.wire.kafka.shapes.membership import CONSUMER, read_assignment

TOPIC = 2  # a resource type of the config requests
NOT_FOUND = 69
UNKNOWN_TOPIC = 3

Place = tuple[str, int]  # topic, partition


class Listed(NamedTuple):
    """A group of the list; `state` and `kind` are "" where the broker is too old to say."""

    group: str
    state: str
    protocol_type: str
    kind: str


class Progress(NamedTuple):
    """Where a group is in a partition. None: not known. `lag`: records between what is committed and the end."""

    topic: str
    partition: int
    committed: int | None
    end: int | None
    lag: int | None
    member: str
    client: str
    host: str
    metadata: str


class Described(NamedTuple):
    """A group. `kind`: classic or consumer, the protocols of groups. `protocol`: how partitions are assigned."""

    group: str
    kind: str
    state: str
    protocol: str
    members: int
    progress: list[Progress]


async def list_groups(cluster: Cluster, states: Iterable[str] = (), kinds: Iterable[str] = ()) -> list[Listed]:
    """The groups of all brokers, by name. Raises `ClientError`."""
    found: list[Listed] = []
    for broker in await cluster.brokers():
        answer = await broker.request(LIST_GROUPS, {"states_filter": list(states), "types_filter": list(kinds)})
        check("the list of groups", answer["error_code"])
        found += [
            Listed(row["group_id"], row["group_state"], row["protocol_type"], row["group_type"])
            for row in answer["groups"]
        ]
    return sorted(found)


async def describe_group(cluster: Cluster, group: str) -> Described:
    """One group, partition by partition. Raises `ClientError`."""
    coordinator = await cluster.coordinator(group)
    (row,) = (await coordinator.request(DESCRIBE_GROUPS, {"groups": [group]}))["groups"]
    kind, protocol, owners = "classic", row["protocol_data"], _owners(row)
    code = row["error_code"] or (NOT_FOUND if row["group_state"] == "Dead" else 0)
    if code == NOT_FOUND and coordinator.speaks(CONSUMER_GROUP_DESCRIBE):
        (row,) = (await coordinator.request(CONSUMER_GROUP_DESCRIBE, {"group_ids": [group]}))["groups"]
        kind, protocol, owners = "consumer", row["assignor_name"], _consumers(row)
        code = row["error_code"]
    check(f"group {group!r}", code, None if code == NOT_FOUND else row["error_message"])
    committed = await fetch_committed(cluster, group)
    places = sorted({*owners, *committed})
    layouts = await _layouts(cluster, {topic for topic, _ in places})
    progress = [
        await _measure(cluster, place, committed.get(place), owners.get(place, {}), layouts[place[0]])
        for place in places
    ]
    return Described(group, kind, row["group_state"], protocol, len(row["members"]), progress)


def _owners(row: Mapping[str, Any]) -> dict[Place, dict[str, Any]]:
    """The member of a classic group that has each partition."""
    if row["protocol_type"] != CONSUMER:
        return {}
    members: list[dict[str, Any]] = row["members"]
    return {place: member for member in members for place in read_assignment(member["member_assignment"]) or ()}


def _consumers(row: Mapping[str, Any]) -> dict[Place, dict[str, Any]]:
    """The member of a group of the consumer protocol that has each partition."""
    members: list[dict[str, Any]] = row["members"]
    return {
        (topic["topic_name"], partition): member
        for member in members
        for topic in member["assignment"]["topic_partitions"]
        for partition in topic["partitions"]
    }


async def fetch_committed(cluster: Cluster, group: str) -> dict[Place, tuple[int, str]]:
    """All that a group has committed: offset and text. Raises `ClientError`."""
    asked = {"group_id": group, "topics": None, "groups": [{"group_id": group, "topics": None}]}
    answer = await (await cluster.coordinator(group)).request(OFFSET_FETCH, asked)
    found = answer["groups"][0] if answer["groups"] else answer
    check(f"what group {group!r} has committed", found["error_code"])
    return {
        (topic["name"], row["partition_index"]): (row["committed_offset"], row["metadata"] or "")
        for topic in found["topics"]
        for row in topic["partitions"]
        if row["error_code"] == 0 and row["committed_offset"] >= 0
    }


async def commit(cluster: Cluster, group: str, positions: Mapping[Place, int]) -> None:
    """Set what a group has committed; it may have no members. Raises `ClientError`."""
    topics: dict[str, list[dict[str, Any]]] = {}
    for (topic, partition), offset in positions.items():
        row = {"partition_index": partition, "committed_offset": offset, "committed_metadata": ""}
        topics.setdefault(topic, []).append(row)
    asked = {"group_id": group, "topics": [{"name": name, "partitions": rows} for name, rows in topics.items()]}
    answer = await (await cluster.coordinator(group)).request(OFFSET_COMMIT, asked)
    for topic in answer["topics"]:
        for row in topic["partitions"]:
            check(f"partition {row['partition_index']} of topic {topic['name']!r}", row["error_code"])


async def delete_group(cluster: Cluster, group: str) -> None:
    """Remove a group without members, and all that it has committed. Raises `ClientError`."""
    answer = await (await cluster.coordinator(group)).request(DELETE_GROUPS, {"groups_names": [group]})
    (row,) = answer["results"]
    check(f"group {group!r} was not deleted", row["error_code"])


async def find_bounds(cluster: Cluster, place: Place) -> tuple[int, int]:
    """The first offset that a partition holds, and the one after its last. Raises `ClientError`."""
    first, end = await asyncio.gather(find_offset(cluster, *place, EARLIEST), find_offset(cluster, *place, LATEST))
    return first, end


async def _measure(
    cluster: Cluster, place: Place, committed: tuple[int, str] | None, owner: Mapping[str, Any], layout: str | None
) -> Progress:
    end = lag = None
    if layout is not None:
        first, end = await find_bounds(cluster, place)
        if committed is not None:
            start = max(first, committed[0])
            # Where offsets are made of times, only counting tells how many records lie between two of them.
            lag = await count_records(cluster, place, start, end) if layout == "entries" else max(0, end - start)
    offset, metadata = committed or (None, "")
    member, client, host = (owner.get(name, "") for name in ("member_id", "client_id", "client_host"))
    return Progress(*place, offset, end, lag, member, client, host, metadata)


async def _layouts(cluster: Cluster, topics: Iterable[str]) -> dict[str, str | None]:
    """How the records of each topic are kept: "" if the broker does not say, None if there is no such topic."""
    layouts: dict[str, str | None] = {}
    for topic in sorted(topics):
        resource = {"resource_type": TOPIC, "resource_name": topic, "configuration_keys": ["storage.layout"]}
        answer = await cluster.ask_controller(DESCRIBE_CONFIGS, {"resources": [resource]})
        (found,) = answer["results"]
        if found["error_code"] == UNKNOWN_TOPIC:
            layouts[topic] = None
            continue
        check(f"the layout of topic {topic!r}", found["error_code"], found["error_message"])
        layouts[topic] = next((str(row["value"]) for row in found["configs"]), "")
    return layouts


async def count_records(cluster: Cluster, place: Place, start: int, end: int) -> int:
    """How many records there are at `start` <= offset < `end`: all of them are fetched. Raises `ClientError`."""
    topic, partition = place
    leader = await cluster.leader(topic, partition)
    count, offset = 0, start
    while offset < end:
        asked = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": MAX_BYTES}
        topics = [{"topic": topic, "partitions": [asked]}]
        answer = await leader.request(FETCH, {"replica_id": -1, "max_bytes": MAX_BYTES, "topics": topics})
        (found,) = answer["responses"][0]["partitions"]
        check(f"partition {partition} of topic {topic!r}", found["error_code"])
        data = found["records"] or b""
        batches = headers(data, False)
        if not batches:
            break
        for batch in batches:
            if batch.base_offset >= offset and batch.last_offset < end:
                count += batch.count
            else:
                part = columns(data[batch.start : batch.start + batch.size], DECOMPRESSED_MAX)
                count += sum(offset <= each < end for each in memoryview(part["offset"]).tolist())
        offset = batches[-1].last_offset + 1
    return count
