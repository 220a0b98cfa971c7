"""Requests for every right of the table, of every version: what is asked of ours is asked of Apache Kafka too.

Resources are named by what is allowed: `just-READ` lets READ and nothing else, `but-READ` everything else, `pre-READ`
is a prefix that lets READ, and `shut` has no ACL. The cluster has one name, so its ACLs change from step to step.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kafka_messages import CATALOG
from kafka_server import make_batch
from korvet_fast.core.acls.binding import (
    CLUSTER_NAME,
    AclBinding,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from korvet_fast.wire.kafka import rights
from korvet_fast.wire.kafka.access import ACCESS, Access, Handled, Whole
from korvet_fast.wire.kafka.errors import CODES
from korvet_fast.wire.kafka.rights import Right
from korvet_fast.wire.kafka.routes import ROUTES
from korvet_fast.wire.kafka.shapes.field import Field

WHO: Final = "User:ANONYMOUS"
OPEN: Final = "open"  # a topic and a group of which everything is allowed
KINDS: Final = ("just", "but", "pre", "shut")
OPERATIONS: Final = tuple(one for one in Operation if Operation.ALL < one <= Operation.IDEMPOTENT_WRITE)
AUTHORIZATION: Final = frozenset({29, 30, 31, 53})

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER


def name_of(kind: str, operation: Operation, *, gone: bool = False) -> str:
    """The resource of a kind for an operation. `gone`: no topic of this name exists."""
    return f"{kind}-{operation.name}-{'gone' if gone else 'here'}"


def bindings() -> Iterator[AclBinding]:
    """All ACLs of topics and groups."""
    for resource in (TOPIC, GROUP):
        yield _allow(resource, OPEN, Operation.ALL)
        for one in OPERATIONS:
            yield _allow(resource, name_of("pre", one)[:-4], one, PatternType.PREFIXED)
            for gone in (False, True):
                yield _allow(resource, name_of("just", one, gone=gone), one)
                name = name_of("but", one, gone=gone)
                yield _allow(resource, name, Operation.ALL)
                yield _allow(resource, name, one)._replace(permission=Permission.DENY)
    # Metadata tells of a topic that it may create only to who may describe it.
    for kind in ("just", "pre"):
        yield _allow(TOPIC, name_of(kind, Operation.CREATE, gone=True), Operation.DESCRIBE)
        # CreateTopics tells of settings to who may create the topic.
        yield _allow(TOPIC, name_of(kind, Operation.DESCRIBE_CONFIGS, gone=True), Operation.CREATE)


def cluster_bindings(kind: str, operation: Operation) -> list[AclBinding]:
    """The ACLs of the cluster in one step."""
    if kind == "just":
        return [_allow(CLUSTER, CLUSTER_NAME, operation)]
    denied = _allow(CLUSTER, CLUSTER_NAME, operation)._replace(permission=Permission.DENY)
    return [_allow(CLUSTER, CLUSTER_NAME, Operation.ALL), denied] if kind == "but" else []


def _allow(
    resource: ResourceType, name: str, operation: Operation, pattern: PatternType = PatternType.LITERAL
) -> AclBinding:
    return AclBinding(resource, name, pattern, WHO, "*", operation, Permission.ALLOW)


def topics() -> list[str]:
    """The topics that exist."""
    return [OPEN, "shut-here", *(name_of(kind, one) for kind in KINDS for one in OPERATIONS)]


@dataclass(frozen=True)
class Case:
    """One request, and whether it is allowed. `path`: where the error is in the answer."""

    key: int
    version: int
    access: Access
    kind: str
    values: Mapping[str, Any]
    path: str

    @property
    def right(self) -> Right:
        return self.access.right

    @property
    def allowed(self) -> bool:
        return self.kind in ("just", "pre")

    def __str__(self) -> str:
        api = CATALOG[self.key].name
        return f"{api} v{self.version} {self.right.resource.name} {self.right.operation.name} {self.kind}"

    def find_codes(self, answer: Mapping[str, Any]) -> list[int]:
        """The error codes at the path."""
        found: list[Any] = [answer]
        for part in self.path.split("."):
            found = [inner for one in found for inner in (one[part] if isinstance(one[part], list) else [one[part]])]
        return found


def cases() -> list[Case]:
    """Every route, version, right and kind of resource."""
    return [
        Case(key, version, access, kind, _make_request(key, version, access, kind), path)
        for key, route in ROUTES.items()
        for version in range(route.lowest, route.highest + 1)
        for access in ACCESS[key]
        if (path := find_path(key, version, access))
        for kind in (("just", "but", "shut") if access.right.resource is CLUSTER else KINDS)
        if _is_asked(key, access, kind)
    ]


def _is_asked(key: int, access: Access, kind: str) -> bool:
    """Whether a request can be made that needs this right and no other one. The rest are tests of their own."""
    if isinstance(access, Handled) and not access.asked:
        return False
    if (key, access.right) == (19, rights.DESCRIBE_TOPIC_CONFIGS) and kind == "shut":
        return False
    # Transactions are not served: the error is the same for who may have them.
    return access.right.resource is not ResourceType.TRANSACTIONAL_ID


def find_path(key: int, version: int, access: Access) -> str:
    """Where the answer has the error; "" where it has none, and is another one."""
    shape = CATALOG[key].response_shape.fields
    if isinstance(access, Handled):
        if version >= access.since:
            return access.told
        older = _OLDER.get((key, access.right), "")
        return older if not older.startswith("error_code") or _has(shape, "error_code", version) else _OF_ROWS
    rows = access.rows
    if isinstance(access, Whole) and _has(shape, "error_code", version):
        return "error_code"
    if rows is None:
        return ""
    return f"{rows.told}.{rows.inner[2]}.error_code" if rows.inner else f"{rows.told}.error_code"


_OF_ROWS: Final = "topics.partitions.error_code"  # of OffsetFetch
# Of versions that have other fields than the table tells.
_OLDER: Final = {
    (9, rights.DESCRIBE_GROUP): "error_code",
    (9, rights.DESCRIBE_TOPIC): _OF_ROWS,
    (10, rights.DESCRIBE_GROUP): "error_code",
    (20, rights.DELETE_TOPIC): "responses.error_code",
}


def _has(shape: tuple[Field, ...], name: str, version: int) -> bool:
    return any(field.name == name and field.since <= version <= field.until for field in shape)


def _make_request(key: int, version: int, access: Access, kind: str) -> dict[str, Any]:
    """A request that needs nothing but this right, of what is not allowed anyway."""
    right = access.right
    # Who may describe a topic, and may not delete it, is told whether it exists.
    gone = (key, right) in _OF_GONE and (right, kind) != (rights.DELETE_TOPIC, "but")
    named = "shut-here" if kind == "shut" else name_of(kind, right.operation, gone=gone)
    topic = named if right.resource is TOPIC else OPEN
    group = named if right.resource is GROUP else OPEN
    values = _REQUESTS[key]
    return _fill(values(right, version) if callable(values) else values, topic, group)


_OF_GONE: Final = {
    (3, rights.CREATE_TOPIC),
    (19, rights.CREATE_TOPIC),
    (19, rights.DESCRIBE_TOPIC_CONFIGS),
    (20, rights.DELETE_TOPIC),
}


def _fill(values: Any, topic: str, group: str) -> Any:
    if isinstance(values, dict):
        return {name: _fill(value, topic, group) for name, value in values.items()}
    if isinstance(values, list):
        return [_fill(value, topic, group) for value in values]
    return {"TOPIC": topic, "GROUP": group}.get(values, values) if isinstance(values, str) else values


def _each_partition(name: str = "name", index: str = "partition_index", **more: Any) -> list[dict[str, Any]]:
    return [{name: "TOPIC", "partitions": [{index: 0} | more]}]


def _offset_fetch(right: Right, version: int) -> dict[str, Any]:
    asked = {"group_id": "GROUP", "topics": [{"name": "TOPIC", "partition_indexes": [0]}]}
    return {"groups": [asked]} if version >= 8 else asked


def _find_coordinator(right: Right, version: int) -> dict[str, Any]:
    return {"coordinator_keys": ["GROUP"]} if version >= 4 else {"key": "GROUP"}


def _create_topics(right: Right, version: int) -> dict[str, Any]:
    topic = {"name": "TOPIC", "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
    return {"topics": [topic], "timeout_ms": 5000, "validate_only": True}


def _delete_topics(right: Right, version: int) -> dict[str, Any]:
    rows = {"topics": [{"name": "TOPIC"}]} if version >= 6 else {"topic_names": ["TOPIC"]}
    return {"timeout_ms": 5000} | rows


def _resources(right: Right, version: int, **more: Any) -> dict[str, Any]:
    kind, name = {TOPIC: (2, "TOPIC"), GROUP: (32, "GROUP"), CLUSTER: (4, "1")}[right.resource]
    row = {"resource_type": kind, "resource_name": name}
    return {"resources": [row | more]}


def _metadata(right: Right, version: int) -> dict[str, Any]:
    return {"topics": [{"name": "TOPIC", "topic_id": bytes(16)}], "allow_auto_topic_creation": True}


_MEMBER: Final = {"group_id": "GROUP", "member_id": "nobody", "generation_id": 1}
_FILTER: Final = {
    "resource_type_filter": 2,
    "resource_name_filter": "nothing",
    "pattern_type_filter": 3,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}
_CREATION: Final = {
    "resource_type": 2,
    "resource_name": "something",
    "resource_pattern_type": 3,
    "principal": "User:nobody",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}
_REQUESTS: Final[Mapping[int, Any]] = {
    0: lambda right, version: {
        "acks": -1,
        "timeout_ms": 5000,
        "topic_data": [{"name": "TOPIC", "partition_data": [{"index": 0, "records": bytes(make_batch(b"x"))}]}],
    },
    1: {
        "max_wait_ms": 0,
        "min_bytes": 0,
        "max_bytes": 1000,
        "session_id": 0,
        "topics": _each_partition("topic", "partition", fetch_offset=0, partition_max_bytes=1000),
    },
    2: {"replica_id": -1, "topics": _each_partition(timestamp=-2)},
    3: _metadata,
    8: {
        "group_id": "GROUP",
        "member_id": "",
        "topics": _each_partition(committed_offset=0, committed_metadata=""),
    },
    9: _offset_fetch,
    10: _find_coordinator,
    11: {
        "group_id": "GROUP",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "member_id": "nobody",
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b""}],
    },
    12: _MEMBER,
    13: {"group_id": "GROUP", "member_id": "nobody", "members": [{"member_id": "nobody"}]},
    14: _MEMBER | {"assignments": [], "protocol_type": "consumer", "protocol_name": "range"},
    15: {"groups": ["GROUP"]},
    19: _create_topics,
    20: _delete_topics,
    21: {"topics": _each_partition(offset=0), "timeout_ms": 5000},
    22: {"transactional_id": None, "transaction_timeout_ms": 5000},
    23: {"replica_id": -1, "topics": _each_partition("topic", "partition", leader_epoch=0)},
    29: _FILTER,
    30: {"creations": [_CREATION]},
    31: {"filters": [_FILTER]},
    32: lambda right, version: _resources(right, version, configuration_keys=["no.such.setting"]),
    33: lambda right, version: _resources(right, version, configs=[]) | {"validate_only": True},
    35: {"topics": [{"topic": OPEN, "partitions": [0]}]},
    37: {"topics": [{"name": "TOPIC", "count": 1, "assignments": None}], "timeout_ms": 5000, "validate_only": True},
    42: {"groups_names": ["GROUP"]},
    43: {"election_type": 0, "topic_partitions": [{"topic": OPEN, "partitions": [0]}], "timeout_ms": 5000},
    44: lambda right, version: _resources(right, version, configs=[]) | {"validate_only": True},
    45: {"timeout_ms": 5000, "topics": _each_partition(replicas=None)},
    46: {"timeout_ms": 5000, "topics": [{"name": OPEN, "partition_indexes": [0]}]},
    47: {"group_id": "GROUP", "topics": _each_partition()},
    48: {"components": [], "strict": False},
    49: {"entries": [{"entity": [{"entity_type": "user", "entity_name": "nobody"}], "ops": []}], "validate_only": True},
    50: {"users": [{"name": "nobody"}]},
    51: {"deletions": [{"name": "nobody", "mechanism": 1}], "upsertions": []},
    55: {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]},
    68: lambda right, version: {
        "group_id": "GROUP",
        "member_id": f"m-{right.operation.name}-{version}" if version else "",
        "member_epoch": 0,
        "rebalance_timeout_ms": 5000,
        "subscribed_topic_names": ["TOPIC"],
        "topic_partitions": [],
    },
    69: {"group_ids": ["GROUP"], "include_authorized_operations": False},
    74: {"resource_types": []},
    75: {"topics": [{"name": "TOPIC"}], "response_partition_limit": 10, "cursor": None},
}


def error_of(case: Case) -> int:
    """The code of who lacks the right."""
    return CODES[case.right.error]
