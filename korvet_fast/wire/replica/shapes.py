"""The requests between brokers that Kafka has none for. Their keys are far from Kafka's.

CHALLENGE and PROVE: see `core/replication/secret.py`. KEYS: a verb of the metadata log's keys. VOTE: see `Election`.
"""

from korvet_fast.wire.kafka.shapes.field import Field
from korvet_fast.wire.kafka.shapes.message import message

CHALLENGE = message(
    "Challenge",
    1000,
    (0, 0),
    0,
    request=(
        Field("broker_id", "int32"),
        Field("expected_id", "int32"),
        Field("nonce", "bytes"),
    ),
    response=(
        Field("nonce", "bytes"),
        Field("proof", "bytes"),
    ),
)  # fmt: skip

PROVE = message(
    "Prove",
    1001,
    (0, 0),
    0,
    request=(Field("proof", "bytes"),),
    response=(),
)

KEYS = message(
    "Keys",
    1002,
    (0, 0),
    0,
    request=(
        Field("verb", "int8"),
        Field("key", "string"),
        Field("changes", "[]", fields=(
            Field("key", "string"),
            Field("value", "bytes", nullable=0),
            Field("expected", "bytes", nullable=0),
        )),
        Field("after", "string"),
    ),
    response=(
        Field("error_code", "int16"),
        Field("error_message", "string", nullable=0, default=None),
        Field("done", "bool"),
        Field("number", "int64"),
        Field("rows", "[]", fields=(
            Field("key", "string"),
            Field("value", "bytes"),
        )),
    ),
)  # fmt: skip

VOTE = message(
    "Vote",
    1003,
    (0, 0),
    0,
    request=(
        Field("candidate", "int32"),
        Field("epoch", "int32"),
        Field("last_epoch", "int32"),
        Field("end_offset", "int64"),
        Field("trial", "bool"),
        Field("unclean", "bool"),
    ),
    response=(
        Field("error_code", "int16"),
        Field("error_message", "string", nullable=0, default=None),
        Field("granted", "bool"),
        Field("epoch", "int32"),
        Field("leader_id", "int32"),
        Field("elected", "bool"),
        Field("last_epoch", "int32"),
        Field("end_offset", "int64"),
        Field("new", "bool"),
    ),
)  # fmt: skip
