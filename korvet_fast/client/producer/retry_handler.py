"""Judges answers for batches, and none at all (Sarama's retryHandler); `client.backoff` has the pauses."""

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import Any, Final, NamedTuple

from korvet_fast.client.protocol.errors import BrokerError, ClientError, broker_error
from korvet_fast.errors import Errors
from korvet_fast.wire.kafka.errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    NONE,
    RECORD_LIST_TOO_LARGE,
    TOPIC_AUTHORIZATION_FAILED,
)


class Verdict(Enum):
    """How the producer goes on with a batch after an answer."""

    STORED = auto()
    RETRY = auto()
    OUT_OF_ORDER = auto()  # the broker misses a batch before this one, or does not know the producer
    TOO_LARGE = auto()
    REFUSED = auto()
    BY_ROW = auto()  # each record has an answer of its own, and none is sent again


class RowAnswer(NamedTuple):
    """The answer to one record. `uncertain`: the log may have the record in spite of the `error`."""

    partition: int = -1
    offset: int = -1
    error: ClientError | None = None
    uncertain: bool = False


class Answer(NamedTuple):
    """How an attempt ended. `uncertain`: the log may have the batch all the same. `rows`: with BY_ROW."""

    verdict: Verdict
    uncertain: bool = False
    offset: int = -1
    timestamp: int = -1
    error: ClientError | None = None
    rows: Sequence[RowAnswer] = ()


LAST_OFFSET: Final = (1 << 63) - 1
_STORED: Final = Verdict.STORED  # looked up once: the class of an enumeration is slow to ask

# A batch refused with one of these was not stored. With any other it may have been: a leader that lost its office
# while it waited for its replicas answers NOT_LEADER_OR_FOLLOWER (Kafka's DelayedProduce), and the new one may have it.
_NEVER_STORED: Final = frozenset({
    Errors.CORRUPT_MESSAGE, Errors.INVALID_TOPIC_EXCEPTION, Errors.MESSAGE_TOO_LARGE, Errors.NOT_ENOUGH_REPLICAS,
    Errors.INVALID_REQUIRED_ACKS, Errors.UNSUPPORTED_VERSION, Errors.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    Errors.UNSUPPORTED_COMPRESSION_TYPE, Errors.OUT_OF_ORDER_SEQUENCE_NUMBER, Errors.INVALID_PRODUCER_EPOCH,
    Errors.UNKNOWN_PRODUCER_ID, Errors.INVALID_RECORD, Errors.INVALID_TIMESTAMP, Errors.POLICY_VIOLATION,
    Errors.THROTTLING_QUOTA_EXCEEDED, Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
})  # fmt: skip
_LOST_PRODUCER: Final = frozenset({
    Errors.OUT_OF_ORDER_SEQUENCE_NUMBER, Errors.UNKNOWN_PRODUCER_ID, Errors.INVALID_PRODUCER_EPOCH,
})  # fmt: skip
_AUTHORIZATION: Final = frozenset({TOPIC_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED})


def judge(count: int, row: Mapping[str, Any]) -> Answer:
    """The meaning of a partition's row of a Produce answer to a batch of `count` messages."""
    code = row["error_code"]
    if code == NONE:
        offset = row["base_offset"]
        if not 0 <= offset <= LAST_OFFSET - count + 1:  # a lie: nobody knows where the batch is stored
            offset = -1
        cells = _STORED, False, offset, row["log_append_time_ms"], None, ()
        return tuple.__new__(Answer, cells)  # in half the time of a call
    error = broker_error(f"{count:,} message{'s' * (count > 1)}", code, row["error_message"])
    if error.error == Errors.DUPLICATE_SEQUENCE_NUMBER:
        return Answer(Verdict.STORED)  # and the offset stays -1: Sarama says 0, which is another message's
    if error.error in _LOST_PRODUCER:
        return Answer(Verdict.OUT_OF_ORDER, error=error)
    if error.error == Errors.MESSAGE_TOO_LARGE or code == RECORD_LIST_TOO_LARGE:
        return Answer(Verdict.TOO_LARGE, error=error)
    uncertain = error.error not in _NEVER_STORED and code not in _AUTHORIZATION
    return Answer(Verdict.RETRY if error.retriable else Verdict.REFUSED, uncertain, error=error)


def asks_for_metadata(answer: Answer) -> bool:
    """Whether the leader may be another one by now."""
    if not isinstance(answer.error, BrokerError):
        return answer.error is not None
    return answer.error.error in (
        Errors.NOT_LEADER_OR_FOLLOWER,
        Errors.LEADER_NOT_AVAILABLE,
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
        Errors.FENCED_LEADER_EPOCH,
        Errors.UNKNOWN_LEADER_EPOCH,
        Errors.KAFKA_STORAGE_ERROR,
    )
