"""Messages that consumers pass to each other through a group: the bytes of their subscriptions and assignments.

The broker hands these on as they are. It looks into them only to say which topics a group reads.
Source: ConsumerProtocolSubscription.json and ConsumerProtocolAssignment.json. Assignors of other kinds write what they
like, and so may clients: bytes that cannot be read are None.
"""

from typing import Any, Final

from korvet_fast._native import Schema
from korvet_fast.errors import CodecError
from korvet_fast.wire.kafka.shapes.field import NEVER, Field

CONSUMER: Final = "consumer"  # the protocol type of groups whose members write so
_HIGHEST = 3
_ELEMENTS = 200_000

SUBSCRIPTION: Final = Schema(
    "ConsumerProtocolSubscription",
    (
        Field("version", "int16"),
        Field("topics", "[]string"),
        Field("user_data", "bytes", nullable=0, default=None),
        Field("owned_partitions", "[]", 1, fields=(
            Field("topic", "string", 1),
            Field("partitions", "[]int32", 1),
        )),
        Field("generation_id", "int32", 2, default=-1),
        Field("rack_id", "string", 3, nullable=3, default=None),
    ),
    0,
    _HIGHEST,
    NEVER,
)  # fmt: skip

ASSIGNMENT: Final = Schema(
    "ConsumerProtocolAssignment",
    (
        Field("version", "int16"),
        Field("assigned_partitions", "[]", fields=(
            Field("topic", "string"),
            Field("partitions", "[]int32"),
        )),
        Field("user_data", "bytes", nullable=0, default=None),
    ),
    0,
    _HIGHEST,
    NEVER,
)  # fmt: skip


def _decode(schema: Schema, data: bytes) -> dict[str, Any] | None:
    version = int.from_bytes(data[:2], "big", signed=True)
    if not 0 <= version <= _HIGHEST:
        return None
    try:
        return schema.decode(data, version, _ELEMENTS)
    except CodecError:
        return None


def read_subscription(metadata: bytes) -> set[str] | None:
    """The topics that a member wants to read."""
    values = _decode(SUBSCRIPTION, metadata)
    return None if values is None else set(values["topics"])


def read_assignment(assignment: bytes) -> list[tuple[str, int]] | None:
    """The partitions that a member was given; empty bytes are none."""
    if not assignment:
        return []
    values = _decode(ASSIGNMENT, assignment)
    if values is None:
        return None
    return [(row["topic"], partition) for row in values["assigned_partitions"] for partition in row["partitions"]]
