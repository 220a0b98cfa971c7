"""Fetch (key 1), versions 4 to 12.

4 brings batches v2 and isolation levels; 5 the log start offset; 7 sessions; 9 the leader epoch; 10 zstd; 11 racks;
12 is flexible. From 13 on topics go by id only, which is not served.
"""

from korvet_fast.wire.kafka.shapes.field import Field
from korvet_fast.wire.kafka.shapes.message import message

FETCH = message(
    "Fetch",
    1,
    (4, 12),
    12,
    request=(
        Field("cluster_id", "string", 12, nullable=12, default=None, tag=0),
        Field("replica_id", "int32", default=-1),
        Field("max_wait_ms", "int32"),
        Field("min_bytes", "int32"),
        Field("max_bytes", "int32", 3, default=2**31 - 1),
        Field("isolation_level", "int8", 4),
        Field("session_id", "int32", 7),
        Field("session_epoch", "int32", 7, default=-1),
        Field("topics", "[]", fields=(
            Field("topic", "string"),
            Field("partitions", "[]", fields=(
                Field("partition", "int32"),
                Field("current_leader_epoch", "int32", 9, default=-1),
                Field("fetch_offset", "int64"),
                Field("last_fetched_epoch", "int32", 12, default=-1),
                Field("log_start_offset", "int64", 5, default=-1),
                Field("partition_max_bytes", "int32"),
            )),
        )),
        Field("forgotten_topics_data", "[]", 7, fields=(
            Field("topic", "string", 7),
            Field("partitions", "[]int32", 7),
        )),
        Field("rack_id", "string", 11),
    ),
    response=(
        Field("throttle_time_ms", "int32", 1),
        Field("error_code", "int16", 7),
        Field("session_id", "int32", 7),
        Field("responses", "[]", fields=(
            Field("topic", "string"),
            Field("partitions", "[]", fields=(
                Field("partition_index", "int32"),
                Field("error_code", "int16"),
                Field("high_watermark", "int64"),
                Field("last_stable_offset", "int64", 4, default=-1),
                Field("log_start_offset", "int64", 5, default=-1),
                Field("diverging_epoch", "{}", 12, tag=0, fields=(
                    Field("epoch", "int32", 12, default=-1),
                    Field("end_offset", "int64", 12, default=-1),
                )),
                Field("current_leader", "{}", 12, tag=1, fields=(
                    Field("leader_id", "int32", 12, default=-1),
                    Field("leader_epoch", "int32", 12, default=-1),
                )),
                Field("snapshot_id", "{}", 12, tag=2, fields=(
                    Field("end_offset", "int64", default=-1),
                    Field("epoch", "int32", default=-1),
                )),
                Field("aborted_transactions", "[]", 4, nullable=4, fields=(
                    Field("producer_id", "int64", 4),
                    Field("first_offset", "int64", 4),
                )),
                Field("preferred_read_replica", "int32", 11, default=-1),
                Field("records", "records", nullable=0, default=None),
            )),
        )),
    ),
)  # fmt: skip
