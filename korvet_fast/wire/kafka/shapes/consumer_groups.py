"""Groups of the consumer protocol (KIP-848): ConsumerGroupHeartbeat (key 68), ConsumerGroupDescribe (69)."""

from korvet_fast.wire.kafka.shapes.field import Field
from korvet_fast.wire.kafka.shapes.message import message

# Flexible from the first. 1 a regular expression, which the broker applies, and ids that clients make (KIP-1082).
CONSUMER_GROUP_HEARTBEAT = message(
    "ConsumerGroupHeartbeat",
    68,
    (0, 1),
    0,
    request=(
        Field("group_id", "string"),
        Field("member_id", "string"),
        Field("member_epoch", "int32"),
        Field("instance_id", "string", nullable=0, default=None),
        Field("rack_id", "string", nullable=0, default=None),
        Field("rebalance_timeout_ms", "int32", default=-1),
        Field("subscribed_topic_names", "[]string", nullable=0, default=None),
        Field("subscribed_topic_regex", "string", 1, nullable=1, default=None),
        Field("server_assignor", "string", nullable=0, default=None),
        Field("topic_partitions", "[]", nullable=0, default=None, fields=(
            Field("topic_id", "uuid"),
            Field("partitions", "[]int32"),
        )),
    ),
    response=(
        Field("throttle_time_ms", "int32"),
        Field("error_code", "int16"),
        Field("error_message", "string", nullable=0, default=None),
        Field("member_id", "string", nullable=0, default=None),
        Field("member_epoch", "int32"),
        Field("heartbeat_interval_ms", "int32"),
        Field("assignment", "{}", nullable=0, default=None, fields=(
            Field("topic_partitions", "[]", fields=(
                Field("topic_id", "uuid"),
                Field("partitions", "[]int32"),
            )),
        )),
    ),
)  # fmt: skip

_ASSIGNMENT = (
    Field("topic_partitions", "[]", fields=(
        Field("topic_id", "uuid"),
        Field("topic_name", "string"),
        Field("partitions", "[]int32"),
    )),
)  # fmt: skip

# Flexible from the first. 1 which protocol a member uses (KIP-1099).
CONSUMER_GROUP_DESCRIBE = message(
    "ConsumerGroupDescribe",
    69,
    (0, 1),
    0,
    request=(
        Field("group_ids", "[]string"),
        Field("include_authorized_operations", "bool"),
    ),
    response=(
        Field("throttle_time_ms", "int32"),
        Field("groups", "[]", fields=(
            Field("error_code", "int16"),
            Field("error_message", "string", nullable=0, default=None),
            Field("group_id", "string"),
            Field("group_state", "string"),
            Field("group_epoch", "int32"),
            Field("assignment_epoch", "int32"),
            Field("assignor_name", "string"),
            Field("members", "[]", fields=(
                Field("member_id", "string"),
                Field("instance_id", "string", nullable=0, default=None),
                Field("rack_id", "string", nullable=0, default=None),
                Field("member_epoch", "int32"),
                Field("client_id", "string"),
                Field("client_host", "string"),
                Field("subscribed_topic_names", "[]string"),
                Field("subscribed_topic_regex", "string", nullable=0, default=None),
                Field("assignment", "{}", fields=_ASSIGNMENT),
                Field("target_assignment", "{}", fields=_ASSIGNMENT),
                Field("member_type", "int8", 1, default=-1),
            )),
            Field("authorized_operations", "int32", default=-(2**31)),
        )),
    ),
)  # fmt: skip
