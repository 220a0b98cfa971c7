"""Requests of a transactional producer to its coordinator (KIP-98), which our broker does not serve: the client's side.

AddPartitionsToTxn (key 24), versions 0 to 3, later ones are for brokers; EndTxn (key 26), versions 0 to 4. In both 3 is
flexible.
"""

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any, Final

from korvet_fast.client.protocol.metadata import TopicPartition
from korvet_fast.wire.kafka.shapes.field import Field
from korvet_fast.wire.kafka.shapes.message import message

TRANSACTION: Final = 1  # the kind of a coordinator's key
OPERATION_NOT_ATTEMPTED: Final = 55  # an error code: another partition of the request was refused, so none was added

_PRODUCER: Final = (
    Field("transactional_id", "string"),
    Field("producer_id", "int64"),
    Field("producer_epoch", "int16"),
)

ADD_PARTITIONS_TO_TXN = message(
    "AddPartitionsToTxn",
    24,
    (0, 3),
    3,
    request=(
        *_PRODUCER,
        Field("topics", "[]", fields=(Field("name", "string"), Field("partitions", "[]int32"))),
    ),
    response=(
        Field("throttle_time_ms", "int32"),
        Field("results", "[]", fields=(
            Field("name", "string"),
            Field("partitions", "[]", fields=(Field("index", "int32"), Field("error_code", "int16"))),
        )),
    ),
)  # fmt: skip

END_TXN = message(
    "EndTxn",
    26,
    (0, 4),
    3,
    request=(*_PRODUCER, Field("committed", "bool")),
    response=(Field("throttle_time_ms", "int32"), Field("error_code", "int16")),
)


def add_partitions_request(partitions: Iterable[TopicPartition]) -> dict[str, Any]:
    """AddPartitionsToTxn without the producer's fields."""
    rows = groupby(sorted(partitions), key=lambda each: each[0])
    return {"topics": [{"name": name, "partitions": [index for _, index in found]} for name, found in rows]}


def read_add_partitions(partitions: Iterable[TopicPartition], answer: Mapping[str, Any]) -> list[int]:
    """The error codes of an answer. A partition that it leaves out was not added: OPERATION_NOT_ATTEMPTED."""
    rows = [(topic["name"], row) for topic in answer["results"] for row in topic["partitions"]]
    missing = set(partitions) - {(name, row["index"]) for name, row in rows}
    return [row["error_code"] for _, row in rows] + [OPERATION_NOT_ATTEMPTED] * len(missing)


def find_transaction_coordinator_request(transactional_id: str) -> dict[str, Any]:
    """FindCoordinator, in all versions at once: each takes the fields that it has."""
    return {"key": transactional_id, "key_type": TRANSACTION, "coordinator_keys": [transactional_id]}
