"""Groups looked at and removed: DescribeGroups (key 15), ListGroups (16), DeleteGroups (42)."""

from korvet_fast.wire.kafka.shapes.field import NEVER, Field
from korvet_fast.wire.kafka.shapes.message import message

# 3 authorised operations; 4 static members; 5 flexible; 6 says so where there is no such group (KIP-1043).
DESCRIBE_GROUPS = message(
    "DescribeGroups",
    15,
    (0, 6),
    5,
    request=(
        Field("groups", "[]string"),
        Field("include_authorized_operations", "bool", 3),
    ),
    response=(
        Field("throttle_time_ms", "int32", 1),
        Field("groups", "[]", fields=(
            Field("error_code", "int16"),
            Field("error_message", "string", 6, nullable=6, default=None),
            Field("group_id", "string"),
            Field("group_state", "string"),
            Field("protocol_type", "string"),
            Field("protocol_data", "string"),
            Field("members", "[]", fields=(
                Field("member_id", "string"),
                Field("group_instance_id", "string", 4, nullable=4, default=None),
                Field("client_id", "string"),
                Field("client_host", "string"),
                Field("member_metadata", "bytes"),
                Field("member_assignment", "bytes"),
            )),
            Field("authorized_operations", "int32", 3, default=-(2**31)),
        )),
    ),
)  # fmt: skip

# 3 flexible; 4 by state (KIP-518); 5 by type (KIP-848).
LIST_GROUPS = message(
    "ListGroups",
    16,
    (0, 5),
    3,
    request=(
        Field("states_filter", "[]string", 4),
        Field("types_filter", "[]string", 5),
    ),
    response=(
        Field("throttle_time_ms", "int32", 1),
        Field("error_code", "int16"),
        Field("groups", "[]", fields=(
            Field("group_id", "string"),
            Field("protocol_type", "string"),
            Field("group_state", "string", 4),
            Field("group_type", "string", 5),
        )),
    ),
)  # fmt: skip

# 2 flexible.
DELETE_GROUPS = message(
    "DeleteGroups",
    42,
    (0, 2),
    2,
    request=(
        Field("groups_names", "[]string"),
    ),
    response=(
        Field("throttle_time_ms", "int32"),
        Field("results", "[]", fields=(
            Field("group_id", "string"),
            Field("error_code", "int16"),
        )),
    ),
)  # fmt: skip

# Never flexible.
OFFSET_DELETE = message(
    "OffsetDelete",
    47,
    (0, 0),
    NEVER,
    request=(
        Field("group_id", "string"),
        Field("topics", "[]", fields=(
            Field("name", "string"),
            Field("partitions", "[]", fields=(
                Field("partition_index", "int32"),
            )),
        )),
    ),
    response=(
        Field("error_code", "int16"),
        Field("throttle_time_ms", "int32"),
        Field("topics", "[]", fields=(
            Field("name", "string"),
            Field("partitions", "[]", fields=(
                Field("partition_index", "int32"),
                Field("error_code", "int16"),
            )),
        )),
    ),
)  # fmt: skip
