"""Produce (key 0), versions 3 to 12.

3 brings batches v2; 5 the log start offset; 7 zstd; 8 errors per record; 9 is flexible; 10 names a new leader
(KIP-951); 12 adds nothing to the bytes (KIP-890).
"""

from korvet_fast.wire.kafka.shapes.field import Field
from korvet_fast.wire.kafka.shapes.message import message

PRODUCE = message(
    "Produce",
    0,
    (3, 12),
    9,
    request=(
        Field("transactional_id", "string", 3, nullable=3, default=None),
        Field("acks", "int16"),
        Field("timeout_ms", "int32"),
        Field("topic_data", "[]", fields=(
            Field("name", "string"),
            Field("partition_data", "[]", fields=(
                Field("index", "int32"),
                Field("records", "records", nullable=0, default=None),
            )),
        )),
    ),
    response=(
        Field("responses", "[]", fields=(
            Field("name", "string"),
            Field("partition_responses", "[]", fields=(
                Field("index", "int32"),
                Field("error_code", "int16"),
                Field("base_offset", "int64"),
                Field("log_append_time_ms", "int64", 2, default=-1),
                Field("log_start_offset", "int64", 5, default=-1),
                Field("record_errors", "[]", 8, fields=(
                    Field("batch_index", "int32", 8),
                    Field("batch_index_error_message", "string", 8, nullable=8, default=None),
                )),
                Field("error_message", "string", 8, nullable=8, default=None),
                Field("current_leader", "{}", 10, tag=0, fields=(
                    Field("leader_id", "int32", 10, default=-1),
                    Field("leader_epoch", "int32", 10, default=-1),
                )),
            )),
        )),
        Field("throttle_time_ms", "int32", 1),
        Field("node_endpoints", "[]", 10, tag=0, fields=(
            Field("node_id", "int32", 10),
            Field("host", "string", 10),
            Field("port", "int32", 10),
            Field("rack", "string", 10, nullable=10, default=None),
        )),
    ),
)  # fmt: skip
