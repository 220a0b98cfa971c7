"""DescribeLogDirs (key 35), versions 1 to 4: the partitions in the data directory.

2 is flexible; 3 can say why nothing is answered; 4 gives the size of the volume and its free space (KIP-827).
"""

from korvet_fast.wire.kafka.shapes.field import Field
from korvet_fast.wire.kafka.shapes.message import message

DESCRIBE_LOG_DIRS = message(
    "DescribeLogDirs",
    35,
    (1, 4),
    2,
    request=(
        Field("topics", "[]", nullable=0, fields=(
            Field("topic", "string"),
            Field("partitions", "[]int32"),
        )),
    ),
    response=(
        Field("throttle_time_ms", "int32"),
        Field("error_code", "int16", 3),
        Field("results", "[]", fields=(
            Field("error_code", "int16"),
            Field("log_dir", "string"),
            Field("topics", "[]", fields=(
                Field("name", "string"),
                Field("partitions", "[]", fields=(
                    Field("partition_index", "int32"),
                    Field("partition_size", "int64"),
                    Field("offset_lag", "int64"),
                    Field("is_future_key", "bool"),
                )),
            )),
            Field("total_bytes", "int64", 4, default=-1),
            Field("usable_bytes", "int64", 4, default=-1),
        )),
    ),
)  # fmt: skip
