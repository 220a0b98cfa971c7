"""What a transaction coordinator's errors mean, and what to do about each (kafka.apache.org/protocol).

A broker of ours has no coordinator for transactions, so most of these are not among `errors.Errors`.
"""

from typing import Final

from korvet_fast.client.protocol.errors import explain
from korvet_fast.errors import Errors

FENCED: Final = frozenset({47, 90})  # INVALID_PRODUCER_EPOCH, PRODUCER_FENCED
TAKEN_OVER: Final = (
    "another producer has begun with this transactional.id, or a transaction took longer than transaction.timeout.ms; "
    "close this one"
)
_BEGIN_AGAIN: Final = "abort the transaction, then begin again"

# Code -> Kafka's name, and a sentence.
_REFUSALS: Final[dict[int, tuple[str, str]]] = {
    29: (
        Errors.TOPIC_AUTHORIZATION_FAILED,
        "this user may not write to a topic of the transaction; grant WRITE on it",
    ),
    31: (
        Errors.CLUSTER_AUTHORIZATION_FAILED,
        "this user may not use idempotent producers; grant IDEMPOTENT_WRITE on the cluster",
    ),
    35: (
        Errors.UNSUPPORTED_VERSION,
        "the broker serves no version of the request that the producer has",
    ),
    42: (
        Errors.INVALID_REQUEST,
        "the coordinator takes the request for wrong; check the transactional.id",
    ),
    47: (Errors.INVALID_PRODUCER_EPOCH, TAKEN_OVER),
    48: (
        "INVALID_TXN_STATE",
        "the coordinator's transaction is in another state than the producer's, perhaps aborted for its "
        f"transaction.timeout.ms; {_BEGIN_AGAIN}",
    ),
    49: (
        "INVALID_PRODUCER_ID_MAPPING",
        "the coordinator knows another producer id for this name, or forgot it after "
        "transactional.id.expiration.ms without use; abort the transaction, then call init_transactions",
    ),
    50: (
        "INVALID_TRANSACTION_TIMEOUT",
        "transaction.timeout.ms is above the broker's transaction.max.timeout.ms; give less",
    ),
    53: (
        Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        "this user may not use the transactional.id; grant WRITE and DESCRIBE on it",
    ),
    90: ("PRODUCER_FENCED", TAKEN_OVER),
    120: ("TRANSACTION_ABORTABLE", f"the transaction cannot be committed any more; {_BEGIN_AGAIN}"),
}


def explain_refusal(code: int, detail: str | None = None) -> str:
    """An error code of a transaction coordinator as a sentence. `detail`: the broker's own."""
    if code not in _REFUSALS:
        return explain(code, detail)
    name, sentence = _REFUSALS[code]
    return f"{detail or sentence} ({name})"
