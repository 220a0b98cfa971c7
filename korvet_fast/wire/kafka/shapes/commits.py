"""Positions of a group: OffsetCommit (key 8), OffsetFetch (9). Version 10 of both, by topic id, is not served."""

from korvet_fast.wire.kafka.shapes.field import Field
from korvet_fast.wire.kafka.shapes.message import message

# 5 no retention time any more; 6 leader epochs (KIP-320); 7 static members; 8 flexible; 9 epochs of members (KIP-848).
OFFSET_COMMIT = message(
    "OffsetCommit",
    8,
    (2, 9),
    8,
    request=(
        Field("group_id", "string"),
        Field("generation_id_or_member_epoch", "int32", 1, default=-1),
        Field("member_id", "string", 1),
        Field("group_instance_id", "string", 7, nullable=7, default=None),
        Field("retention_time_ms", "int64", 2, 4, default=-1),
        Field("topics", "[]", fields=(
            Field("name", "string"),
            Field("partitions", "[]", fields=(
                Field("partition_index", "int32"),
                Field("committed_offset", "int64"),
                Field("committed_leader_epoch", "int32", 6, default=-1),
                Field("committed_metadata", "string", nullable=0),
            )),
        )),
    ),
    response=(
        Field("throttle_time_ms", "int32", 3),
        Field("topics", "[]", fields=(
            Field("name", "string"),
            Field("partitions", "[]", fields=(
                Field("partition_index", "int32"),
                Field("error_code", "int16"),
            )),
        )),
    ),
)  # fmt: skip

# 2 null asks for all partitions, an error of the whole; 5 leader epochs; 6 flexible; 7 only offsets that no transaction
# may still change (KIP-447); 8 several groups (KIP-709); 9 the member (KIP-848).
OFFSET_FETCH = message(
    "OffsetFetch",
    9,
    (1, 9),
    6,
    request=(
        Field("group_id", "string", 0, 7),
        Field("topics", "[]", 0, 7, nullable=2, fields=(
            Field("name", "string", 0, 7),
            Field("partition_indexes", "[]int32", 0, 7),
        )),
        Field("groups", "[]", 8, fields=(
            Field("group_id", "string", 8),
            Field("member_id", "string", 9, nullable=9, default=None),
            Field("member_epoch", "int32", 9, default=-1),
            Field("topics", "[]", 8, nullable=8, fields=(
                Field("name", "string", 8),
                Field("partition_indexes", "[]int32", 8),
            )),
        )),
        Field("require_stable", "bool", 7),
    ),
    response=(
        Field("throttle_time_ms", "int32", 3),
        Field("topics", "[]", 0, 7, fields=(
            Field("name", "string", 0, 7),
            Field("partitions", "[]", 0, 7, fields=(
                Field("partition_index", "int32", 0, 7),
                Field("committed_offset", "int64", 0, 7),
                Field("committed_leader_epoch", "int32", 5, 7, default=-1),
                Field("metadata", "string", 0, 7, nullable=0),
                Field("error_code", "int16", 0, 7),
            )),
        )),
        Field("error_code", "int16", 2, 7),
        Field("groups", "[]", 8, fields=(
            Field("group_id", "string", 8),
            Field("topics", "[]", 8, fields=(
                Field("name", "string", 8),
                Field("partitions", "[]", 8, fields=(
                    Field("partition_index", "int32", 8),
                    Field("committed_offset", "int64", 8),
                    Field("committed_leader_epoch", "int32", 8, default=-1),
                    Field("metadata", "string", 8, nullable=8),
                    Field("error_code", "int16", 8),
                )),
            )),
            Field("error_code", "int16", 8),
        )),
    ),
)  # fmt: skip
