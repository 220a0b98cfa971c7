"""The one table of who may send what.

It has for each API the rights that are needed, where the request names the resources, and where the answer has the
error of who lacks one. `guard` acts on it; what `guard` cannot do alone, the API's handler does.

Source: KafkaApis.scala, ControllerApis.scala and AclApis.java of Apache Kafka 4.1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from korvet_fast.wire.kafka import rights
from korvet_fast.wire.kafka.rights import Right
from korvet_fast.wire.kafka.session import Values
from korvet_fast.wire.kafka.shapes import (
    cluster,
    commits,
    configs,
    consumer_groups,
    coordinators,
    directories,
    group_admin,
    groups,
    offsets,
    producers,
    quorum,
    security,
    topics,
)
from korvet_fast.wire.kafka.shapes.fetch import FETCH
from korvet_fast.wire.kafka.shapes.produce import PRODUCE


@dataclass(frozen=True, slots=True)
class RowShape:
    """An array of the request and the one of the answer that has a row for each of its rows, by their names.

    `name` and `told_name`: the fields that name the resource; "": the row is the name. `inner`: the array in each row,
    its field that goes into the answer ("": the element itself), and the same two of the answer. `error`: what the
    answer says besides of a row that is refused.
    """

    asked: str
    name: str
    told: str
    told_name: str
    inner: tuple[str, str, str, str] | None = None
    error: Values = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Each:
    """The right is needed for each row; those that are refused are answered so, and the others as ever.

    `action`: what CLUSTER_ACTION, the right of brokers, does. INSTEAD: who says to be a replica needs it, and nothing
    else; ENOUGH: who has it needs nothing else.
    """

    right: Right
    rows: RowShape
    action: str = ""


@dataclass(frozen=True, slots=True)
class Whole:
    """The right is needed for the whole request. `field`: it names the resource; "" is the cluster.

    `rows`: those of the answer that have the error too.
    """

    right: Right
    field: str = ""
    rows: RowShape | None = None


@dataclass(frozen=True, slots=True)
class Handled:
    """The handler asks for the right itself. `asked` and `told`: paths of the names, and of the error in the answer.

    `told` "" leaves out what is refused. `since`: the first version that has these fields.
    """

    right: Right
    asked: str = ""
    told: str = ""
    since: int = 0


INSTEAD, ENOUGH = "instead", "enough"

Access: TypeAlias = Each | Whole | Handled


def _partitions(name: str = "name", index: str = "partition_index", told: str = "topics", **error: int) -> RowShape:
    """The shape that most requests about partitions have."""
    told_index = "partition_index" if told == "responses" else index
    return RowShape("topics", name, told, name, ("partitions", index, "partitions", told_index), dict(error))


_PRODUCED: Final = RowShape(
    "topic_data",
    "name",
    "responses",
    "name",
    ("partition_data", "index", "partition_responses", "index"),
    {"base_offset": -1},
)
_ELECTED: Final = RowShape(
    "topic_partitions",
    "topic",
    "replica_election_results",
    "topic",
    ("partitions", "", "partition_result", "partition_id"),
)
_CREATIONS: Final = RowShape("creations", "", "results", "")
_QUOTAS: Final = RowShape("entries", "entity", "entries", "entity")
_FILTERS: Final = RowShape("filters", "", "filter_results", "")
_COMMITTED: Final = _partitions()
_OF_GROUP: Final = (Whole(rights.READ_GROUP, "group_id"),)
_RESOURCES: Final = "resources.resource_name"

# By key. No right at all: everybody who reaches the listener may send it.
ACCESS: Final[Mapping[int, tuple[Access, ...]]] = {
    PRODUCE.key: (Each(rights.WRITE_TOPIC, _PRODUCED),),
    FETCH.key: (Each(rights.READ_TOPIC, _partitions("topic", "partition", "responses", high_watermark=-1), INSTEAD),),
    offsets.LIST_OFFSETS.key: (Each(rights.DESCRIBE_TOPIC, _partitions()),),
    cluster.METADATA.key: (
        Handled(rights.DESCRIBE_TOPIC, "topics.name", "topics.error_code"),
        Handled(rights.CREATE_TOPIC, "topics.name", "topics.error_code"),
    ),
    commits.OFFSET_COMMIT.key: (
        Whole(rights.READ_GROUP, "group_id", _COMMITTED),
        Each(rights.READ_TOPIC, _COMMITTED),
    ),
    commits.OFFSET_FETCH.key: (
        Handled(rights.DESCRIBE_GROUP, "groups.group_id", "groups.error_code", 8),
        Handled(rights.DESCRIBE_TOPIC, "groups.topics.name", "groups.topics.partitions.error_code", 8),
    ),
    coordinators.FIND_COORDINATOR.key: (
        Handled(rights.DESCRIBE_GROUP, "coordinator_keys", "coordinators.error_code", 4),
        Handled(rights.DESCRIBE_TRANSACTION, "coordinator_keys", "coordinators.error_code", 4),
    ),
    groups.JOIN_GROUP.key: _OF_GROUP,
    groups.HEARTBEAT.key: _OF_GROUP,
    groups.LEAVE_GROUP.key: _OF_GROUP,
    groups.SYNC_GROUP.key: _OF_GROUP,
    group_admin.DESCRIBE_GROUPS.key: (Handled(rights.DESCRIBE_GROUP, "groups", "groups.error_code"),),
    group_admin.LIST_GROUPS.key: (Handled(rights.DESCRIBE_CLUSTER), Handled(rights.DESCRIBE_GROUP)),
    cluster.API_VERSIONS.key: (),
    topics.CREATE_TOPICS.key: (
        Handled(rights.CREATE_CLUSTER),
        Handled(rights.CREATE_TOPIC, "topics.name", "topics.error_code"),
        Handled(rights.DESCRIBE_TOPIC_CONFIGS, "topics.name", "topics.topic_config_error_code", 5),
    ),
    topics.DELETE_TOPICS.key: (
        Handled(rights.DELETE_CLUSTER),
        Handled(rights.DELETE_TOPIC, "topics.name", "responses.error_code", 6),
    ),
    topics.DELETE_RECORDS.key: (Each(rights.DELETE_TOPIC, _partitions(low_watermark=-1)),),
    producers.INIT_PRODUCER_ID.key: (
        Handled(rights.IDEMPOTENT_WRITE, "", "error_code"),
        Handled(rights.WRITE_TRANSACTION, "transactional_id", "error_code"),
    ),
    offsets.OFFSET_FOR_LEADER_EPOCH.key: (Each(rights.DESCRIBE_TOPIC, _partitions("topic", "partition"), ENOUGH),),
    configs.DESCRIBE_CONFIGS.key: (
        Handled(rights.DESCRIBE_TOPIC_CONFIGS, _RESOURCES, "results.error_code"),
        Handled(rights.DESCRIBE_GROUP_CONFIGS, _RESOURCES, "results.error_code"),
        Handled(rights.DESCRIBE_CLUSTER_CONFIGS, _RESOURCES, "results.error_code"),
    ),
    configs.ALTER_CONFIGS.key: (
        Handled(rights.ALTER_TOPIC_CONFIGS, _RESOURCES, "responses.error_code"),
        Handled(rights.ALTER_GROUP_CONFIGS, _RESOURCES, "responses.error_code"),
        Handled(rights.ALTER_CLUSTER_CONFIGS, _RESOURCES, "responses.error_code"),
    ),
    configs.INCREMENTAL_ALTER_CONFIGS.key: (
        Handled(rights.ALTER_TOPIC_CONFIGS, _RESOURCES, "responses.error_code"),
        Handled(rights.ALTER_GROUP_CONFIGS, _RESOURCES, "responses.error_code"),
        Handled(rights.ALTER_CLUSTER_CONFIGS, _RESOURCES, "responses.error_code"),
    ),
    directories.DESCRIBE_LOG_DIRS.key: (Whole(rights.DESCRIBE_CLUSTER),),
    topics.CREATE_PARTITIONS.key: (Each(rights.ALTER_TOPIC, RowShape("topics", "name", "results", "name")),),
    group_admin.DELETE_GROUPS.key: (Each(rights.DELETE_GROUP, RowShape("groups_names", "", "results", "group_id")),),
    cluster.ELECT_LEADERS.key: (Whole(rights.ALTER_CLUSTER, "", _ELECTED),),
    cluster.ALTER_PARTITION_REASSIGNMENTS.key: (Whole(rights.ALTER_CLUSTER, "", _partitions(told="responses")),),
    cluster.LIST_PARTITION_REASSIGNMENTS.key: (Whole(rights.DESCRIBE_CLUSTER),),
    group_admin.OFFSET_DELETE.key: (
        Whole(rights.DELETE_GROUP, "group_id"),
        Each(rights.READ_TOPIC, _partitions()),
    ),
    cluster.DESCRIBE_CLUSTER.key: (),
    consumer_groups.CONSUMER_GROUP_HEARTBEAT.key: (
        *_OF_GROUP,
        Handled(rights.DESCRIBE_TOPIC, "subscribed_topic_names", "error_code"),
    ),
    consumer_groups.CONSUMER_GROUP_DESCRIBE.key: (
        Handled(rights.DESCRIBE_GROUP, "group_ids", "groups.error_code"),
        Handled(rights.DESCRIBE_TOPIC, "", "groups.error_code"),
    ),
    security.SASL_HANDSHAKE.key: (),
    security.SASL_AUTHENTICATE.key: (),
    security.DESCRIBE_ACLS.key: (Whole(rights.DESCRIBE_CLUSTER),),
    security.CREATE_ACLS.key: (Whole(rights.ALTER_CLUSTER, "", _CREATIONS),),
    security.DELETE_ACLS.key: (Whole(rights.ALTER_CLUSTER, "", _FILTERS),),
    quorum.DESCRIBE_CLIENT_QUOTAS.key: (Whole(rights.DESCRIBE_CLUSTER_CONFIGS),),
    quorum.ALTER_CLIENT_QUOTAS.key: (Whole(rights.ALTER_CLUSTER_CONFIGS, "", _QUOTAS),),
    security.DESCRIBE_USER_SCRAM_CREDENTIALS.key: (Whole(rights.DESCRIBE_CLUSTER),),
    security.ALTER_USER_SCRAM_CREDENTIALS.key: (Handled(rights.ALTER_CLUSTER, "deletions.name", "results.error_code"),),
    quorum.DESCRIBE_QUORUM.key: (Whole(rights.DESCRIBE_CLUSTER),),
    configs.LIST_CONFIG_RESOURCES.key: (Whole(rights.DESCRIBE_CLUSTER_CONFIGS),),
    cluster.DESCRIBE_TOPIC_PARTITIONS.key: (Handled(rights.DESCRIBE_TOPIC, "topics.name", "topics.error_code"),),
}
