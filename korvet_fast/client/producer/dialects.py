"""The dialects that batches are sent in, and what each of them cannot do. No I/O: `wires.py` has the connections."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from korvet_fast.client.producer.legacy_messages import check_legacy_message, encode_messages
from korvet_fast.client.producer.message import Message, QueuedRecords
from korvet_fast.client.producer.record_batch import encode
from korvet_fast.client.producer.settings import ALL, LEADER, NO_RESPONSE
from korvet_fast.client.producer.text_lines import check_text_message, encode_lines

# Records, acks, what else a record batch says (compression, transaction), producer id and epoch, the first sequence.
Encode = Callable[[Sequence[QueuedRecords], int, int, tuple[int, int], int], bytes | memoryview]


@dataclass(frozen=True, slots=True)
class Dialect:
    """`scheme`: of an address; `title`: for sentences. `acks`: those it has, the default first; `acks_rule`: why so.

    `refused`: settings by field, and why the dialect cannot have them. `check`: raises `DeliveryFailed` for a message
    that cannot be sent so. `broker_chooses`: the one broker of the address leads every partition, and chooses that of a
    message which names none. `resends`: a batch that may be stored is sent again, for a sequence number or the caller's
    `acks` tells that it may be. `has_times`: a message's time is sent. `most_rows`: of a column in one run.
    """

    scheme: str
    title: str
    acks: tuple[int, ...]
    acks_rule: str
    encode: Encode
    refused: Mapping[str, str] = field(default_factory=dict)
    check: Callable[[Message], None] | None = None
    broker_chooses: bool = True
    resends: bool = False
    has_times: bool = False
    most_rows: int = 1


def _encode_batch(
    records: Sequence[QueuedRecords], _acks: int, kind: int, producer: tuple[int, int], sequence: int
) -> bytes | memoryview:
    return encode(records, kind, producer, sequence)


_ONLY_KAFKA: Final = {
    "idempotent": "has no sequence numbers",
    "transactional_id": "has no transactions",
    "transaction_timeout": "has no transactions",
    "partitioner": "has the broker choose partitions",
    "ignore_keys": "has the broker choose partitions",
    "adaptive": "has the broker choose partitions",
    "metadata_max_age": "tells nobody who leads a partition",
    "metadata_max_idle": "tells nobody who leads a partition",
    "login": "has no SASL",
}

KAFKA: Final = Dialect(
    "kafka",
    "Kafka's protocol",
    (ALL, LEADER, NO_RESPONSE),
    "has acks of all, 1 and 0",
    _encode_batch,
    broker_chooses=False,
    resends=True,
    has_times=True,
    most_rows=10_000,
)
TEXT: Final = Dialect(
    "text",
    "the text protocol",
    (ALL, LEADER),
    "answers every line, so acks is all or 1",
    encode_lines,
    _ONLY_KAFKA
    | {"compression": "has no compression", "acks_timeout": "has the broker wait two seconds for its replicas"},
    check_text_message,
)
LEGACY: Final = Dialect(
    "legacy",
    "Kafka 0.7",
    (NO_RESPONSE,),
    "never answers a PRODUCE, so acks is 0",
    encode_messages,
    _ONLY_KAFKA
    | {
        "compression": "is spoken here without compression",
        "acks_timeout": "has no acks",
        "answer_bytes": "never answers a PRODUCE",
        "security": "never answers a PRODUCE, and inside TLS nobody sees when the system has it",
    },
    check_legacy_message,
)
DIALECTS: Final = {each.scheme: each for each in (KAFKA, TEXT, LEGACY)}
