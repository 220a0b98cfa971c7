"""FindCoordinator (key 10), versions 0 to 5: who keeps a group's or a transaction's state.

1 the kind of key, a sentence with the error; 2 nothing new; 3 flexible; 4 several keys in one call; 5 nothing new here.
"""

from korvet_fast.wire.kafka.shapes.field import Field
from korvet_fast.wire.kafka.shapes.message import message

FIND_COORDINATOR = message(
    "FindCoordinator",
    10,
    (0, 5),
    3,
    request=(
        Field("key", "string", 0, 3),
        Field("key_type", "int8", 1),
        Field("coordinator_keys", "[]string", 4),
    ),
    response=(
        Field("throttle_time_ms", "int32", 1),
        Field("error_code", "int16", 0, 3),
        Field("error_message", "string", 1, 3, nullable=1, default=None),
        Field("node_id", "int32", 0, 3),
        Field("host", "string", 0, 3),
        Field("port", "int32", 0, 3),
        Field("coordinators", "[]", 4, fields=(
            Field("key", "string", 4),
            Field("node_id", "int32", 4),
            Field("host", "string", 4),
            Field("port", "int32", 4),
            Field("error_code", "int16", 4),
            Field("error_message", "string", 4, nullable=4, default=None),
        )),
    ),
)  # fmt: skip
