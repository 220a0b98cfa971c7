"""Life in a group: JoinGroup (key 11), Heartbeat (12), LeaveGroup (13), SyncGroup (14)."""

from korvet_fast.wire.kafka.shapes.field import Field
from korvet_fast.wire.kafka.shapes.message import message

# 1 rebalance timeout (KIP-62); 4 a newcomer is given its id first (KIP-394); 5 static members (KIP-345); 6 flexible;
# 7 the protocol type is answered; 8 a reason (KIP-800); 9 a leader may be told to make no assignment (KIP-814).
JOIN_GROUP = message(
    "JoinGroup",
    11,
    (0, 9),
    6,
    request=(
        Field("group_id", "string"),
        Field("session_timeout_ms", "int32"),
        Field("rebalance_timeout_ms", "int32", 1, default=-1),
        Field("member_id", "string"),
        Field("group_instance_id", "string", 5, nullable=5, default=None),
        Field("protocol_type", "string"),
        Field("protocols", "[]", fields=(
            Field("name", "string"),
            Field("metadata", "bytes"),
        )),
        Field("reason", "string", 8, nullable=8, default=None),
    ),
    response=(
        Field("throttle_time_ms", "int32", 2),
        Field("error_code", "int16"),
        Field("generation_id", "int32", default=-1),
        Field("protocol_type", "string", 7, nullable=7, default=None),
        Field("protocol_name", "string", nullable=7),
        Field("leader", "string"),
        Field("skip_assignment", "bool", 9),
        Field("member_id", "string"),
        Field("members", "[]", fields=(
            Field("member_id", "string"),
            Field("group_instance_id", "string", 5, nullable=5, default=None),
            Field("metadata", "bytes"),
        )),
    ),
)  # fmt: skip

# 3 static members; 4 flexible.
HEARTBEAT = message(
    "Heartbeat",
    12,
    (0, 4),
    4,
    request=(
        Field("group_id", "string"),
        Field("generation_id", "int32"),
        Field("member_id", "string"),
        Field("group_instance_id", "string", 3, nullable=3, default=None),
    ),
    response=(
        Field("throttle_time_ms", "int32", 1),
        Field("error_code", "int16"),
    ),
)  # fmt: skip

# 3 several members, static ones by their instance id; 4 flexible; 5 a reason (KIP-800).
LEAVE_GROUP = message(
    "LeaveGroup",
    13,
    (0, 5),
    4,
    request=(
        Field("group_id", "string"),
        Field("member_id", "string", 0, 2),
        Field("members", "[]", 3, fields=(
            Field("member_id", "string", 3),
            Field("group_instance_id", "string", 3, nullable=3, default=None),
            Field("reason", "string", 5, nullable=5, default=None),
        )),
    ),
    response=(
        Field("throttle_time_ms", "int32", 1),
        Field("error_code", "int16"),
        Field("members", "[]", 3, fields=(
            Field("member_id", "string", 3),
            Field("group_instance_id", "string", 3, nullable=3),
            Field("error_code", "int16", 3),
        )),
    ),
)  # fmt: skip

# 3 static members; 4 flexible; 5 names the protocol (KIP-559).
SYNC_GROUP = message(
    "SyncGroup",
    14,
    (0, 5),
    4,
    request=(
        Field("group_id", "string"),
        Field("generation_id", "int32"),
        Field("member_id", "string"),
        Field("group_instance_id", "string", 3, nullable=3, default=None),
        Field("protocol_type", "string", 5, nullable=5, default=None),
        Field("protocol_name", "string", 5, nullable=5, default=None),
        Field("assignments", "[]", fields=(
            Field("member_id", "string"),
            Field("assignment", "bytes"),
        )),
    ),
    response=(
        Field("throttle_time_ms", "int32", 1),
        Field("error_code", "int16"),
        Field("protocol_type", "string", 5, nullable=5, default=None),
        Field("protocol_name", "string", 5, nullable=5, default=None),
        Field("assignment", "bytes"),
    ),
)  # fmt: skip
