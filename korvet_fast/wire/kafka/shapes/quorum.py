"""The metadata quorum, and quotas: DescribeClientQuotas (48), AlterClientQuotas (49), DescribeQuorum (55)."""

from korvet_fast.wire.kafka.shapes.field import Field
from korvet_fast.wire.kafka.shapes.message import message

# 1 flexible (KIP-546).
DESCRIBE_CLIENT_QUOTAS = message(
    "DescribeClientQuotas",
    48,
    (0, 1),
    1,
    request=(
        Field("components", "[]", fields=(
            Field("entity_type", "string"),
            Field("match_type", "int8"),
            Field("match", "string", nullable=0),
        )),
        Field("strict", "bool"),
    ),
    response=(
        Field("throttle_time_ms", "int32"),
        Field("error_code", "int16"),
        Field("error_message", "string", nullable=0, default=None),
        Field("entries", "[]", nullable=0, fields=(
            Field("entity", "[]", fields=(
                Field("entity_type", "string"),
                Field("entity_name", "string", nullable=0),
            )),
            Field("values", "[]", fields=(
                Field("key", "string"),
                Field("value", "float64"),
            )),
        )),
    ),
)  # fmt: skip

# 1 flexible (KIP-546).
ALTER_CLIENT_QUOTAS = message(
    "AlterClientQuotas",
    49,
    (0, 1),
    1,
    request=(
        Field("entries", "[]", fields=(
            Field("entity", "[]", fields=(
                Field("entity_type", "string"),
                Field("entity_name", "string", nullable=0),
            )),
            Field("ops", "[]", fields=(
                Field("key", "string"),
                Field("value", "float64"),
                Field("remove", "bool"),
            )),
        )),
        Field("validate_only", "bool"),
    ),
    response=(
        Field("throttle_time_ms", "int32"),
        Field("entries", "[]", fields=(
            Field("error_code", "int16"),
            Field("error_message", "string", nullable=0, default=None),
            Field("entity", "[]", fields=(
                Field("entity_type", "string"),
                Field("entity_name", "string", nullable=0),
            )),
        )),
    ),
)  # fmt: skip

_REPLICA_STATE = (
    Field("replica_id", "int32"),
    Field("replica_directory_id", "uuid", 2),
    Field("log_end_offset", "int64"),
    Field("last_fetch_timestamp", "int64", 1, default=-1),
    Field("last_caught_up_timestamp", "int64", 1, default=-1),
)

# Flexible from the first version on (KIP-595). 1 times (KIP-836); 2 directories, nodes and sentences (KIP-853).
DESCRIBE_QUORUM = message(
    "DescribeQuorum",
    55,
    (0, 2),
    0,
    request=(
        Field("topics", "[]", fields=(
            Field("topic_name", "string"),
            Field("partitions", "[]", fields=(
                Field("partition_index", "int32"),
            )),
        )),
    ),
    response=(
        Field("error_code", "int16"),
        Field("error_message", "string", 2, nullable=2, default=None),
        Field("topics", "[]", fields=(
            Field("topic_name", "string"),
            Field("partitions", "[]", fields=(
                Field("partition_index", "int32"),
                Field("error_code", "int16"),
                Field("error_message", "string", 2, nullable=2, default=None),
                Field("leader_id", "int32"),
                Field("leader_epoch", "int32"),
                Field("high_watermark", "int64"),
                Field("current_voters", "[]", fields=_REPLICA_STATE),
                Field("observers", "[]", fields=_REPLICA_STATE),
            )),
        )),
        Field("nodes", "[]", 2, fields=(
            Field("node_id", "int32", 2),
            Field("listeners", "[]", 2, fields=(
                Field("name", "string", 2),
                Field("host", "string", 2),
                Field("port", "uint16", 2),
            )),
        )),
    ),
)  # fmt: skip
