"""Messages, and how sending them ends: message runs, the three outcomes, and the errors that carry them."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple, Self

from korvet_fast.client.protocol.errors import ClientError
from korvet_fast.endpoint import Address

Headers = Sequence[tuple[str, bytes | None]]

OVERHEAD: Final = 512  # bytes that a message takes beside its key, value and headers: objects of Python, rounded up
ANY_PARTITION: Final = (1 << 31) - 1  # stands for the one that the broker chooses
NO_LIMIT: Final = 1 << 31  # messages of a batch
COPIES: Final = 2  # copies of key, value and headers: the message's own, and the record batch they are sent in


class Outcome(StrEnum):
    """The outcome of a message. Every accepted message ends exactly once."""

    DELIVERED = "delivered"
    NOT_WRITTEN = "failed, not written"  # the log does not have the message, and never will
    UNKNOWN = "unknown"  # the message was sent, and may or may not be in the log


class RecordMetadata(NamedTuple):
    """A message's topic, partition and offset (Kafka's RecordMetadata).

    `offset`: -1 if the broker did not say: it had stored the message before, or acks=0. `timestamp`: ms since 1970, -1
    where the broker sets it and does not say. `confirmed`: False with acks=0 and with Kafka 0.7, where nobody says
    whether the message was stored, nor, as `partition` -1, where.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    confirmed: bool = True


class Message(NamedTuple):
    """A message for `AsyncProducer.input` (Sarama's ProducerMessage).

    `partition` None: the partitioner chooses. `timestamp`: ms since 1970; None: when it is sent. `metadata`: anything
    of the caller's; it comes back with the result and is not sent.
    """

    topic: str
    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    partition: int | None = None
    timestamp: int | None = None
    metadata: Any = None


class DeliveryFailed(ClientError):
    """A message was not delivered. `outcome` says whether the log may have it; `cause`: the error behind it, if any."""

    def __init__(self, sentence: str, outcome: Outcome = Outcome.NOT_WRITTEN, cause: Exception | None = None) -> None:
        super().__init__(sentence)
        self.outcome = outcome
        self.cause = cause


class BufferFull(DeliveryFailed):
    """There is no memory for the message within `buffer.memory`, and was none for `max.block.ms`."""

    @classmethod
    def after(cls, seconds: float) -> Self:
        """The failure of a message that waited for so long, `max.block.ms`."""
        return cls(f"no memory within max.block.ms ({seconds:g} s); raise buffer.memory")


class ProducerClosed(DeliveryFailed):
    """The producer takes no more messages, or was closed before it had delivered this one."""


class ProducerBroken(ProducerClosed):
    """The producer met a defect of its own, the `cause`, and delivers nothing any more. Close it, and make another."""


class Expired(DeliveryFailed):
    """`delivery.timeout.ms` passed since the producer accepted the message.

    `cause`: why the last attempt failed, None if there was none.
    """

    @classmethod
    def within(cls, what: str, limit: str, seconds: float, last_error: ClientError | None) -> "Expired":
        """`what` did not happen within the setting `limit`, which is `seconds`, the last time because of an error."""
        reason = f"; the last error was: {last_error}" if last_error is not None else ""
        return cls(f"{what} within {limit} ({seconds:g} s){reason}", cause=last_error)


class Cancelled(DeliveryFailed):
    """The caller withdrew the message before it was sent."""


class QueuedRecords:
    """One message, or one run of rows of `send_many`, on its way through the stages: they are batched as they are.

    `values` and `keys` have `count` elements; `keys` None: all are null. Runs and rows have theirs elsewhere, and say
    their `size`: bytes of the records in a batch, at most. `charge`: bytes counted for them in the budget. `deadline`:
    seconds on the producer's clock. `partition` -1: not chosen yet. The last three fields say how they ended; `outcome`
    None: not yet. Rows have the offsets from `offset` on.
    """

    __slots__ = (
        "charge",
        "count",
        "deadline",
        "destination",
        "error",
        "headers",
        "keys",
        "number",
        "offset",
        "outcome",
        "partition",
        "size",
        "state",
        "timestamp",
        "topic",
        "values",
    )

    def __init__(
        self,
        topic: str,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None] | None,
        headers: Headers,
        partition: int,
        timestamp: int,
        size: int | None = None,
    ) -> None:
        self.topic = topic
        self.values = values
        self.keys = keys
        self.headers = headers
        self.partition = partition
        self.timestamp = timestamp
        self.count = len(values)
        if size is None:
            records = zip(values, keys or [None] * len(values), strict=True)
            size = sum(message_size(value, key, headers) for value, key in records)
        self.size = size
        self.charge = COPIES * self.size + OVERHEAD
        self.deadline = 0.0
        self.number = 0  # rises with every message of the producer
        self.destination: Address | str | tuple[str, str] = ""  # the destination that is charged
        self.state: RecordState = RecordState.NEW
        self.offset = -1
        self.outcome: Outcome | None = None
        self.error: DeliveryFailed | None = None

    def first_key(self) -> bytes | None:
        """The key of the first record."""
        return self.keys[0] if self.keys else None

    def row_values(self) -> Sequence[bytes | None]:
        """The value of each record."""
        return self.values

    def row_keys(self) -> Sequence[bytes | None]:
        """The key of each record."""
        return self.keys if self.keys is not None else (None,) * self.count

    def rows_of_headers(self) -> Sequence[Headers]:
        """The headers of each record."""
        return (self.headers,) * self.count

    def row_times(self) -> Sequence[int]:
        """The time of each record."""
        return (self.timestamp,) * self.count

    def build(self, compression: int, producer_id: int, epoch: int, sequence: int) -> bytes | memoryview | None:
        """The records alone as one batch, built from where they are; None where that cannot be done."""
        return None

    def set_time(self, timestamp: int) -> None:
        """The broker gave all of them this time."""
        self.timestamp = timestamp

    def keeps_memory(self, outcome: Outcome) -> bool:
        """Whether the result waits to be taken: then its bytes count until `MessageLedger.release`."""
        return False

    def halves(self) -> tuple["QueuedRecords", "QueuedRecords"]:
        """The first and the second half of several rows, for a batch that was too large."""
        raise AssertionError("one message alone has no halves")

    def divide(self, places: Sequence[Sequence[int]]) -> Sequence["QueuedRecords"]:
        """Records for each of the sequences of places, which together are all; for rows that ended differently."""
        raise AssertionError("one message alone has no parts")


def failure_of(records: QueuedRecords) -> DeliveryFailed | None:
    """Why records were not delivered: an error of their own, since a batch's is shared; None if they were."""
    if records.outcome is None or records.outcome is Outcome.DELIVERED:
        return None
    shared = records.error
    assert shared is not None, "whatever fails has a reason"
    own = type(shared)(str(shared), records.outcome, shared.cause)
    own.__cause__ = shared.cause
    return own


class RecordState(StrEnum):
    """The stage that a message has reached. A message can be withdrawn up to QUEUED."""

    NEW = "new"
    LINE = "waiting for memory"
    PENDING = "waiting for its topic's partitions"
    QUEUED = "queued at its partition"
    BATCHED = "in a batch"
    ENDED = "ended"


RECORD_MOST: Final = 1 + 5 + 10 + 5 + 5 + 5 + 5  # attributes, then varints: length, time, offset, key, value, headers
BATCH_HEADER: Final = 61
_HEADER_MOST: Final = 10  # bytes of the two lengths of a header


def message_size(value: bytes | None, key: bytes | None, headers: Headers) -> int:
    """Bytes that one record takes in a batch, at most."""
    size = RECORD_MOST + len(value or b"") + len(key or b"")
    return size + headers_size(headers) if headers else size


def headers_size(headers: Headers) -> int:
    """Bytes that the headers of one record take in a batch, at most."""
    return sum(_HEADER_MOST + len(name.encode()) + len(value or b"") for name, value in headers)


def _varint_size(number: int) -> int:
    return max(1, -(-(number << 1).bit_length() // 7)) if number >= 0 else 1  # zigzag; -1 is one byte


def encoded_size(value: bytes | None, key: bytes | None, headers: Headers) -> int:
    """Exact bytes of an uncompressed batch with this record alone (KIP-98's format): Sarama's and Kafka's check."""
    body = 3  # attributes, the differences of time and offset: 0
    for part in (key, value):
        body += _varint_size(-1 if part is None else len(part)) + len(part or b"")
    body += _varint_size(len(headers))
    for name, content in headers:
        length = len(name.encode())
        body += _varint_size(length) + length
        body += _varint_size(-1 if content is None else len(content)) + len(content or b"")
    return BATCH_HEADER + _varint_size(body) + body
