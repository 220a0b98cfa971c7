"""Topics made, grown and removed: CreateTopics (19), DeleteTopics (20), DeleteRecords (21), CreatePartitions (37)."""

from korvet_fast.wire.kafka.shapes.field import Field
from korvet_fast.wire.kafka.shapes.message import message

# 4 lets -1 stand for the broker's defaults; 5 is flexible and answers with the configs; 7 with the topic id.
CREATE_TOPICS = message(
    "CreateTopics",
    19,
    (2, 7),
    5,
    request=(
        Field("topics", "[]", fields=(
            Field("name", "string"),
            Field("num_partitions", "int32"),
            Field("replication_factor", "int16"),
            Field("assignments", "[]", fields=(
                Field("partition_index", "int32"),
                Field("broker_ids", "[]int32"),
            )),
            Field("configs", "[]", fields=(
                Field("name", "string"),
                Field("value", "string", nullable=0),
            )),
        )),
        Field("timeout_ms", "int32", default=60_000),
        Field("validate_only", "bool", 1),
    ),
    response=(
        Field("throttle_time_ms", "int32", 2),
        Field("topics", "[]", fields=(
            Field("name", "string"),
            Field("topic_id", "uuid", 7),
            Field("error_code", "int16"),
            Field("error_message", "string", 1, nullable=0, default=None),
            Field("topic_config_error_code", "int16", 5, tag=0),
            Field("num_partitions", "int32", 5, default=-1),
            Field("replication_factor", "int16", 5, default=-1),
            Field("configs", "[]", 5, nullable=5, fields=(
                Field("name", "string", 5),
                Field("value", "string", 5, nullable=5),
                Field("read_only", "bool", 5),
                Field("config_source", "int8", 5, default=-1),
                Field("is_sensitive", "bool", 5),
            )),
        )),
    ),
)  # fmt: skip

# 4 is flexible; 5 answers with a sentence; 6 asks by name or by id.
DELETE_TOPICS = message(
    "DeleteTopics",
    20,
    (1, 6),
    4,
    request=(
        Field("topics", "[]", 6, fields=(
            Field("name", "string", 6, nullable=6, default=None),
            Field("topic_id", "uuid", 6),
        )),
        Field("topic_names", "[]string", 0, 5),
        Field("timeout_ms", "int32"),
    ),
    response=(
        Field("throttle_time_ms", "int32", 1),
        Field("responses", "[]", fields=(
            Field("name", "string", nullable=6),
            Field("topic_id", "uuid", 6),
            Field("error_code", "int16"),
            Field("error_message", "string", 5, nullable=5, default=None),
        )),
    ),
)  # fmt: skip

# 2 is flexible.
DELETE_RECORDS = message(
    "DeleteRecords",
    21,
    (0, 2),
    2,
    request=(
        Field("topics", "[]", fields=(
            Field("name", "string"),
            Field("partitions", "[]", fields=(
                Field("partition_index", "int32"),
                Field("offset", "int64"),
            )),
        )),
        Field("timeout_ms", "int32"),
    ),
    response=(
        Field("throttle_time_ms", "int32"),
        Field("topics", "[]", fields=(
            Field("name", "string"),
            Field("partitions", "[]", fields=(
                Field("partition_index", "int32"),
                Field("low_watermark", "int64"),
                Field("error_code", "int16"),
            )),
        )),
    ),
)  # fmt: skip

# 2 is flexible; 3 may be answered by a quota error.
CREATE_PARTITIONS = message(
    "CreatePartitions",
    37,
    (0, 3),
    2,
    request=(
        Field("topics", "[]", fields=(
            Field("name", "string"),
            Field("count", "int32"),
            Field("assignments", "[]", nullable=0, fields=(
                Field("broker_ids", "[]int32"),
            )),
        )),
        Field("timeout_ms", "int32"),
        Field("validate_only", "bool"),
    ),
    response=(
        Field("throttle_time_ms", "int32"),
        Field("results", "[]", fields=(
            Field("name", "string"),
            Field("error_code", "int16"),
            Field("error_message", "string", nullable=0, default=None),
        )),
    ),
)  # fmt: skip
