"""The requests that are measured, and what each may cost."""

from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

from benchmarks.requests.wire import PATIENCE, Wire
from korvet_fast import _native as native
from korvet_fast.wire.kafka.routes import ROUTES
from korvet_fast.wire.kafka.shapes.cluster import API_VERSIONS, METADATA
from korvet_fast.wire.kafka.shapes.commits import OFFSET_COMMIT, OFFSET_FETCH
from korvet_fast.wire.kafka.shapes.consumer_groups import CONSUMER_GROUP_HEARTBEAT
from korvet_fast.wire.kafka.shapes.coordinators import FIND_COORDINATOR
from korvet_fast.wire.kafka.shapes.fetch import FETCH
from korvet_fast.wire.kafka.shapes.groups import HEARTBEAT, JOIN_GROUP, SYNC_GROUP
from korvet_fast.wire.kafka.shapes.membership import ASSIGNMENT, SUBSCRIPTION
from korvet_fast.wire.kafka.shapes.message import Message
from korvet_fast.wire.kafka.shapes.offsets import LIST_OFFSETS
from korvet_fast.wire.kafka.shapes.produce import PRODUCE
from korvet_fast.wire.kafka.shapes.producers import INIT_PRODUCER_ID
from korvet_fast.wire.kafka.shapes.topics import CREATE_TOPICS

MANY = 100  # partitions of a large request
NOW = 1_700_000_000_000  # ms
ELEMENTS = 1 << 20


class Case(NamedTuple):
    """Requests that are sent in turn. `budget`: microseconds that one may cost, None where none was set."""

    name: str
    message: Message
    frames: Sequence[bytes]
    budget: int | None = None


class BrokerError(Exception):
    """The broker answered with an error, so that what was measured would not be what the name says."""


async def prepare(wire: Wire) -> list[Case]:
    """Topics, records and group members are there then; every request was answered well once. Raises `BrokerError`."""
    kilobyte, page = batch(1 << 10), batch(64 << 10)
    await call(wire, CREATE_TOPICS, {"timeout_ms": 1000, "topics": [topic("one", 1), topic("many", MANY)]})
    await call(wire, PRODUCE, produce_to("one", [page]))
    await call(wire, PRODUCE, produce_to("many", [kilobyte] * MANY))
    member = await join(wire)
    place = {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}
    commit = {"topics": [{"name": "one", "partitions": [place]}]}
    cases = [
        case("Produce 1 KB", PRODUCE, produce_to("one", [kilobyte])),
        case("Produce 16 KB", PRODUCE, produce_to("one", [batch(16 << 10)]), 60),
        case("Produce 64 KB", PRODUCE, produce_to("one", [page])),
        case(f"Produce {MANY} partitions, 1 KB each", PRODUCE, produce_to("many", [kilobyte] * MANY)),
        case("Fetch 64 KB", FETCH, fetch_from("one", 1), 50),
        case(f"Fetch {MANY} partitions, 1 KB each", FETCH, fetch_from("many", MANY)),
        case("Heartbeat", HEARTBEAT, member, 25),
        case("ConsumerGroupHeartbeat", CONSUMER_GROUP_HEARTBEAT, await subscribe(wire)),
        case("JoinGroup, once more", JOIN_GROUP, await rejoin(wire)),
        case("SyncGroup, once more", SYNC_GROUP, {**member, **ASSIGNED}),
        case("OffsetCommit", OFFSET_COMMIT, {**member, **commit, "generation_id_or_member_epoch": 1}),
        case("OffsetFetch", OFFSET_FETCH, {"groups": [{"group_id": "group", "topics": None}]}),
        case("FindCoordinator", FIND_COORDINATOR, {"key_type": 0, "coordinator_keys": ["group"]}),
        case("ListOffsets", LIST_OFFSETS, {"replica_id": -1, "topics": [latest("one")]}),
        case("Metadata, one topic", METADATA, {"topics": [{"name": "one"}], "allow_auto_topic_creation": False}),
        case(f"Metadata, {MANY} partitions", METADATA, {"topics": None}),
        case("ApiVersions", API_VERSIONS, {"client_software_name": "bench", "client_software_version": "1"}),
        case("InitProducerId", INIT_PRODUCER_ID, {"transaction_timeout_ms": 1000}),
    ]
    for one in cases:
        await verify(wire, one)
    return cases


def version(message: Message) -> int:
    """The newest that is served."""
    return ROUTES[message.key].highest


def encode(message: Message, values: dict[str, Any]) -> bytes:
    """A frame, its length included."""
    head = {"api_key": message.key, "api_version": version(message), "correlation_id": 7, "client_id": "bench"}
    known = {field.name for field in message.request_shape.fields}
    body = {name: value for name, value in values.items() if name in known}
    return b"".join(map(bytes, message.request.frame(head | body, version(message))))


def case(name: str, message: Message, values: dict[str, Any], budget: int | None = None) -> Case:
    return Case(name, message, [encode(message, values)], budget)


async def call(wire: Wire, message: Message, values: dict[str, Any]) -> dict[str, Any]:
    return await verify(wire, Case(message.name, message, [encode(message, values)]))


async def verify(wire: Wire, one: Case) -> dict[str, Any]:
    """The answer to the last of the requests. Raises `BrokerError` if there is an error code in it."""
    reply = await wire.ask(one.frames)
    answer = one.message.response.decode(reply, version(one.message), ELEMENTS)
    if errors := [code for code in error_codes(answer) if code]:
        raise BrokerError(f"{one.name} was answered with error code {errors[0]}")
    return answer


def error_codes(values: Any) -> list[int]:
    """The error codes of an answer and of everything in it."""
    if isinstance(values, list):
        return [code for value in values for code in error_codes(value)]
    if not isinstance(values, dict):
        return []
    own = [values["error_code"]] if "error_code" in values else []
    return own + [code for value in values.values() for code in error_codes(value)]


# What the requests say


def batch(size: int) -> bytes:
    """One batch of at most so many bytes: records of 100 bytes without keys, as many as fit."""
    count = (size - 61) // 110
    columns: dict[str, Any] = {
        "timestamp": array("q", [NOW] * count),
        "key_offsets": array("i", [0] * (count + 1)),
        "key": b"",
        "key_valid": bytes(count),
        "value_offsets": array("i", range(0, 100 * count + 1, 100)),
        "value": bytes(range(100)) * count,
        "value_valid": b"\1" * count,
    }
    return bytes(native.build_batch(columns, 0, 0, -1, -1, -1))


def topic(name: str, partitions: int) -> dict[str, Any]:
    return {"name": name, "num_partitions": partitions, "replication_factor": 1}


def produce_to(name: str, batches: Sequence[bytes]) -> dict[str, Any]:
    rows = [{"index": index, "records": data} for index, data in enumerate(batches)]
    return {"acks": -1, "timeout_ms": 1000, "topic_data": [{"name": name, "partition_data": rows}]}


def fetch_from(name: str, partitions: int) -> dict[str, Any]:
    rows = [{"partition": index, "fetch_offset": 0, "partition_max_bytes": 1 << 20} for index in range(partitions)]
    return {"max_wait_ms": 500, "min_bytes": 1, "topics": [{"topic": name, "partitions": rows}]}


def latest(name: str) -> dict[str, Any]:
    return {"name": name, "partitions": [{"partition_index": 0, "timestamp": -1}]}


# Members of groups

ASSIGNED = {"protocol_type": "consumer", "protocol_name": "range"}


def joining(group: str, member: str) -> dict[str, Any]:
    subscription = (0).to_bytes(2, "big") + SUBSCRIPTION.encode({"version": 0, "topics": ["one"]}, 0)[2:]
    return {
        "group_id": group,
        "session_timeout_ms": PATIENCE,
        "rebalance_timeout_ms": PATIENCE,
        "member_id": member,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": subscription}],
    }


async def join(wire: Wire) -> dict[str, Any]:
    """The only member of `group`, with its assignment."""
    member = await rejoin(wire, "group")
    given = ASSIGNMENT.encode({"version": 0, "assigned_partitions": [{"topic": "one", "partitions": [0]}]}, 0)
    who = {"group_id": "group", "member_id": member["member_id"], "generation_id": 1}
    assignments = [{"member_id": member["member_id"], "assignment": given}]
    await call(wire, SYNC_GROUP, {**who, **ASSIGNED, "assignments": assignments})
    return who


async def rejoin(wire: Wire, group: str = "forming") -> dict[str, Any]:
    """The only member of a group that waits for its assignment: it may join again, and nothing changes."""
    first = encode(JOIN_GROUP, joining(group, ""))
    refusal = JOIN_GROUP.response.decode(await wire.ask([first]), version(JOIN_GROUP), ELEMENTS)
    asked = joining(group, refusal["member_id"])  # newcomers are given an id and join again with it
    await call(wire, JOIN_GROUP, asked)
    return asked


async def subscribe(wire: Wire) -> dict[str, Any]:
    """A member of a group of the consumer protocol, whose assignment is settled."""
    asked = {"group_id": "new", "member_id": "m", "member_epoch": 0, "rebalance_timeout_ms": PATIENCE}
    asked |= {"subscribed_topic_names": ["one"], "topic_partitions": []}
    answer = await call(wire, CONSUMER_GROUP_HEARTBEAT, asked)
    return {"group_id": "new", "member_id": "m", "member_epoch": answer["member_epoch"]}
