"""Questions about offsets: ListOffsets (key 2) and OffsetForLeaderEpoch (key 23)."""

from korvet_fast.wire.kafka.shapes.field import Field
from korvet_fast.wire.kafka.shapes.message import message

# 2 isolation levels; 4 leader epochs; 6 flexible; 7 the largest timestamp (-3); 8 and 9 tiered offsets (-4, -5).
LIST_OFFSETS = message(
    "ListOffsets",
    2,
    (1, 9),
    6,
    request=(
        Field("replica_id", "int32"),
        Field("isolation_level", "int8", 2),
        Field("topics", "[]", fields=(
            Field("name", "string"),
            Field("partitions", "[]", fields=(
                Field("partition_index", "int32"),
                Field("current_leader_epoch", "int32", 4, default=-1),
                Field("timestamp", "int64"),
            )),
        )),
    ),
    response=(
        Field("throttle_time_ms", "int32", 2),
        Field("topics", "[]", fields=(
            Field("name", "string"),
            Field("partitions", "[]", fields=(
                Field("partition_index", "int32"),
                Field("error_code", "int16"),
                Field("timestamp", "int64", 1, default=-1),
                Field("offset", "int64", 1, default=-1),
                Field("leader_epoch", "int32", 4, default=-1),
            )),
        )),
    ),
)  # fmt: skip

# 2 current leader epoch; 3 replica id (-2: a consumer of unknown kind); 4 flexible (KIP-320).
OFFSET_FOR_LEADER_EPOCH = message(
    "OffsetForLeaderEpoch",
    23,
    (2, 4),
    4,
    request=(
        Field("replica_id", "int32", 3, default=-2),
        Field("topics", "[]", fields=(
            Field("topic", "string"),
            Field("partitions", "[]", fields=(
                Field("partition", "int32"),
                Field("current_leader_epoch", "int32", 2, default=-1),
                Field("leader_epoch", "int32"),
            )),
        )),
    ),
    response=(
        Field("throttle_time_ms", "int32", 2),
        Field("topics", "[]", fields=(
            Field("topic", "string"),
            Field("partitions", "[]", fields=(
                Field("error_code", "int16"),
                Field("partition", "int32"),
                Field("leader_epoch", "int32", 1, default=-1),
                Field("end_offset", "int64", default=-1),
            )),
        )),
    ),
)  # fmt: skip
