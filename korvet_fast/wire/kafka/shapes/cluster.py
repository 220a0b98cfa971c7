"""The cluster's brokers, topics, versions and leaders: Metadata (key 3), ApiVersions (18), ElectLeaders (43), partition
reassignments (45, 46), DescribeCluster (60), DescribeTopicPartitions (75).
"""

from korvet_fast.wire.kafka.shapes.field import Field
from korvet_fast.wire.kafka.shapes.message import API_VERSIONS as API_VERSIONS_KEY
from korvet_fast.wire.kafka.shapes.message import message

NOT_ASKED = -(2**31)  # authorized operations: the request did not ask for them

# 1 controller and racks, null topics = all; 2 cluster id; 4 auto-create may be forbidden; 5 offline replicas;
# 7 leader epochs; 8-10 cluster operations; 9 flexible; 10 topic ids; 12 questions by id.
METADATA = message(
    "Metadata",
    3,
    (0, 12),
    9,
    request=(
        Field("topics", "[]", nullable=1, fields=(
            Field("topic_id", "uuid", 10),
            Field("name", "string", nullable=10),
        )),
        Field("allow_auto_topic_creation", "bool", 4, default=True),
        Field("include_cluster_authorized_operations", "bool", 8, 10),
        Field("include_topic_authorized_operations", "bool", 8),
    ),
    response=(
        Field("throttle_time_ms", "int32", 3),
        Field("brokers", "[]", fields=(
            Field("node_id", "int32"),
            Field("host", "string"),
            Field("port", "int32"),
            Field("rack", "string", 1, nullable=1, default=None),
        )),
        Field("cluster_id", "string", 2, nullable=2, default=None),
        Field("controller_id", "int32", 1, default=-1),
        Field("topics", "[]", fields=(
            Field("error_code", "int16"),
            Field("name", "string", nullable=12),
            Field("topic_id", "uuid", 10),
            Field("is_internal", "bool", 1),
            Field("partitions", "[]", fields=(
                Field("error_code", "int16"),
                Field("partition_index", "int32"),
                Field("leader_id", "int32"),
                Field("leader_epoch", "int32", 7, default=-1),
                Field("replica_nodes", "[]int32"),
                Field("isr_nodes", "[]int32"),
                Field("offline_replicas", "[]int32", 5),
            )),
            Field("topic_authorized_operations", "int32", 8, default=NOT_ASKED),
        )),
        Field("cluster_authorized_operations", "int32", 8, 10, default=NOT_ASKED),
    ),
)  # fmt: skip

# 3 is flexible and names the client's software (KIP-511); 4 allows features whose lowest version is 0.
API_VERSIONS = message(
    "ApiVersions",
    API_VERSIONS_KEY,
    (0, 4),
    3,
    request=(
        Field("client_software_name", "string", 3),
        Field("client_software_version", "string", 3),
    ),
    response=(
        Field("error_code", "int16"),
        Field("api_keys", "[]", fields=(
            Field("api_key", "int16"),
            Field("min_version", "int16"),
            Field("max_version", "int16"),
        )),
        Field("throttle_time_ms", "int32", 1),
        Field("supported_features", "[]", 3, tag=0, fields=(
            Field("name", "string", 3),
            Field("min_version", "int16", 3),
            Field("max_version", "int16", 3),
        )),
        Field("finalized_features_epoch", "int64", 3, default=-1, tag=1),
        Field("finalized_features", "[]", 3, tag=2, fields=(
            Field("name", "string", 3),
            Field("max_version_level", "int16", 3),
            Field("min_version_level", "int16", 3),
        )),
        Field("zk_migration_ready", "bool", 3, tag=3),
    ),
)  # fmt: skip

# Flexible from the first version on; 1 adds the endpoint type: 1 brokers, 2 controllers (KIP-919); 2 brokers that are
# fenced (KIP-1073).
DESCRIBE_CLUSTER = message(
    "DescribeCluster",
    60,
    (0, 2),
    0,
    request=(
        Field("include_cluster_authorized_operations", "bool"),
        Field("endpoint_type", "int8", 1, default=1),
        Field("include_fenced_brokers", "bool", 2),
    ),
    response=(
        Field("throttle_time_ms", "int32"),
        Field("error_code", "int16"),
        Field("error_message", "string", nullable=0, default=None),
        Field("endpoint_type", "int8", 1, default=1),
        Field("cluster_id", "string"),
        Field("controller_id", "int32", default=-1),
        Field("brokers", "[]", fields=(
            Field("broker_id", "int32"),
            Field("host", "string"),
            Field("port", "int32"),
            Field("rack", "string", nullable=0, default=None),
            Field("is_fenced", "bool", 2),
        )),
        Field("cluster_authorized_operations", "int32", default=NOT_ASKED),
    ),
)  # fmt: skip

# 1 the kind of election (KIP-460); 2 flexible.
ELECT_LEADERS = message(
    "ElectLeaders",
    43,
    (0, 2),
    2,
    request=(
        Field("election_type", "int8", 1),
        Field("topic_partitions", "[]", nullable=0, fields=(
            Field("topic", "string"),
            Field("partitions", "[]int32"),
        )),
        Field("timeout_ms", "int32", default=60_000),
    ),
    response=(
        Field("throttle_time_ms", "int32"),
        Field("error_code", "int16", 1),
        Field("replica_election_results", "[]", fields=(
            Field("topic", "string"),
            Field("partition_result", "[]", fields=(
                Field("partition_id", "int32"),
                Field("error_code", "int16"),
                Field("error_message", "string", nullable=0, default=None),
            )),
        )),
    ),
)  # fmt: skip

# Flexible from its only version on (KIP-455).
ALTER_PARTITION_REASSIGNMENTS = message(
    "AlterPartitionReassignments",
    45,
    (0, 0),
    0,
    request=(
        Field("timeout_ms", "int32", default=60_000),
        Field("topics", "[]", fields=(
            Field("name", "string"),
            Field("partitions", "[]", fields=(
                Field("partition_index", "int32"),
                Field("replicas", "[]int32", nullable=0, default=None),
            )),
        )),
    ),
    response=(
        Field("throttle_time_ms", "int32"),
        Field("error_code", "int16"),
        Field("error_message", "string", nullable=0, default=None),
        Field("responses", "[]", fields=(
            Field("name", "string"),
            Field("partitions", "[]", fields=(
                Field("partition_index", "int32"),
                Field("error_code", "int16"),
                Field("error_message", "string", nullable=0, default=None),
            )),
        )),
    ),
)  # fmt: skip

# Flexible from its only version on (KIP-455).
LIST_PARTITION_REASSIGNMENTS = message(
    "ListPartitionReassignments",
    46,
    (0, 0),
    0,
    request=(
        Field("timeout_ms", "int32", default=60_000),
        Field("topics", "[]", nullable=0, default=None, fields=(
            Field("name", "string"),
            Field("partition_indexes", "[]int32"),
        )),
    ),
    response=(
        Field("throttle_time_ms", "int32"),
        Field("error_code", "int16"),
        Field("error_message", "string", nullable=0, default=None),
        Field("topics", "[]", fields=(
            Field("name", "string"),
            Field("partitions", "[]", fields=(
                Field("partition_index", "int32"),
                Field("replicas", "[]int32"),
                Field("adding_replicas", "[]int32"),
                Field("removing_replicas", "[]int32"),
            )),
        )),
    ),
)  # fmt: skip

_CURSOR = (
    Field("topic_name", "string"),
    Field("partition_index", "int32"),
)

# Flexible from its only version on (KIP-966).
DESCRIBE_TOPIC_PARTITIONS = message(
    "DescribeTopicPartitions",
    75,
    (0, 0),
    0,
    request=(
        Field("topics", "[]", fields=(Field("name", "string"),)),
        Field("response_partition_limit", "int32", default=2000),
        Field("cursor", "{}", nullable=0, default=None, fields=_CURSOR),
    ),
    response=(
        Field("throttle_time_ms", "int32"),
        Field("topics", "[]", fields=(
            Field("error_code", "int16"),
            Field("name", "string", nullable=0),
            Field("topic_id", "uuid"),
            Field("is_internal", "bool"),
            Field("partitions", "[]", fields=(
                Field("error_code", "int16"),
                Field("partition_index", "int32"),
                Field("leader_id", "int32"),
                Field("leader_epoch", "int32", default=-1),
                Field("replica_nodes", "[]int32"),
                Field("isr_nodes", "[]int32"),
                Field("eligible_leader_replicas", "[]int32", nullable=0, default=None),
                Field("last_known_elr", "[]int32", nullable=0, default=None),
                Field("offline_replicas", "[]int32"),
            )),
            Field("topic_authorized_operations", "int32", default=NOT_ASKED),
        )),
        Field("next_cursor", "{}", nullable=0, default=None, fields=_CURSOR),
    ),
)  # fmt: skip
