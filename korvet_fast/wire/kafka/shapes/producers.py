"""InitProducerId (key 22), versions 0 to 5: an id for an idempotent producer.

2 is flexible; 3 lets a producer go on with the id it has (KIP-360); 4 and 5 change only which errors may come back.
"""

from korvet_fast.wire.kafka.shapes.field import Field
from korvet_fast.wire.kafka.shapes.message import message

INIT_PRODUCER_ID = message(
    "InitProducerId",
    22,
    (0, 5),
    2,
    request=(
        Field("transactional_id", "string", nullable=0, default=None),
        Field("transaction_timeout_ms", "int32"),
        Field("producer_id", "int64", 3, default=-1),
        Field("producer_epoch", "int16", 3, default=-1),
    ),
    response=(
        Field("throttle_time_ms", "int32"),
        Field("error_code", "int16"),
        Field("producer_id", "int64", default=-1),
        Field("producer_epoch", "int16"),
    ),
)
