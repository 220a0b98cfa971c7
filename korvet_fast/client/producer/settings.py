"""The table of the producer's settings: Kafka's names, Sarama's names, defaults, and how values are read."""

import re
from collections.abc import Callable, Iterable
from datetime import timedelta
from math import nan
from numbers import Real
from typing import Any, Final, NamedTuple

from korvet_fast.client.producer.partitioners import ALIASES, PARTITIONERS

ALL, LEADER, NO_RESPONSE = -1, 1, 0
_ACKS: Final = {"all": ALL, "WaitForAll": ALL, "WaitForLocal": LEADER, "NoResponse": NO_RESPONSE}
COMPRESSIONS: Final = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
_LONGEST: Final = 999_999_999  # seconds
_LONGEST_SENT: Final = ((1 << 31) - 1) / 1000  # seconds: a request has milliseconds in four bytes
_DIGITS: Final = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?")
FAILURES: Final = ("fail", "stop", "continue")


def _number(value: Any) -> float:
    """The number that a setting names: a number, or digits. NaN: it names none, so no comparison holds."""
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        return int(value) if value.lstrip("-").isdigit() else float(value)
    return value if isinstance(value, Real) and not isinstance(value, bool) else nan  # type: ignore[return-value]


def _whole(low: int, high: int = (1 << 31) - 1) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        number = _number(value)
        if not low <= number <= high or number != int(number):
            raise ValueError(f"a whole number from {low:,} to {high:,}")
        return int(number)

    return read


def _time_of(unit: str, parts: int, most: float) -> Callable[[Any], float]:
    """Reads a time in `unit`, of which a second has `parts`, or a timedelta: seconds, `most` at most."""

    def read(value: Any) -> float:
        is_timedelta = isinstance(value, timedelta)
        number, scale = (value.total_seconds(), 1) if is_timedelta else (_number(value), parts)
        if not 0 <= number <= scale * most:
            raise ValueError(f"{unit}, not negative and at most {parts * most:,.12g}, or a timedelta")
        return float(number) / scale

    return read


def _flag(value: Any) -> bool:
    words = {"true": True, "false": False}
    if isinstance(value, bool):
        return value
    if not isinstance(value, str) or value.lower() not in words:
        raise ValueError("true or false")
    return words[value.lower()]


def _acks(value: Any) -> int:
    number = _ACKS[value] if isinstance(value, str) and value in _ACKS else _number(value)
    if number not in (ALL, LEADER, NO_RESPONSE):
        raise ValueError("all, 1 or 0")
    return int(number)


def _compression(value: Any) -> int:
    if not isinstance(value, str) or value not in COMPRESSIONS:
        raise ValueError("one of " + ", ".join(COMPRESSIONS))
    return COMPRESSIONS[value]


def _partitioner(value: Any) -> str:
    name = ALIASES.get(value, value) if isinstance(value, str) else None
    if name not in PARTITIONERS:
        raise ValueError("one of " + ", ".join(PARTITIONERS))
    return str(name)


def _name(value: Any) -> str:
    if not isinstance(value, str) or not value.isprintable() or not 0 < len(value.encode()) < 1 << 15:
        raise ValueError("a text of 1 to 32,767 bytes that can be printed")
    return value


def _failure(value: Any) -> str:
    if value not in FAILURES:
        raise ValueError("one of " + ", ".join(FAILURES))
    return str(value)


def _interceptors(value: Any) -> tuple[Any, ...]:
    found = tuple(value) if isinstance(value, Iterable) else (value,)
    for each in found:
        if not hasattr(each, "on_send") and not hasattr(each, "on_acknowledgement"):
            raise ValueError("objects with a method on_send, on_acknowledgement, or both")
    return found


def _optional(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else read(value)


class Setting(NamedTuple):
    """A setting. `name`: Kafka's; `sarama`: Sarama's, without "Producer."; `field`: of `ProducerConfig`."""

    field: str
    name: str
    sarama: str
    read: Callable[[Any], Any]
    default: Any
    meaning: str
    sarama_read: Callable[[Any], Any] | None = None  # times: Sarama's are seconds or a timedelta, Kafka's milliseconds


def _time(field: str, name: str, sarama: str, default: float, meaning: str, most: float = _LONGEST) -> Setting:
    milliseconds, seconds = _time_of("milliseconds", 1000, most), _time_of("seconds", 1, most)
    return Setting(field, name, sarama, milliseconds, default, meaning, seconds)


SETTINGS: Final = (
    Setting("acks", "acks", "RequiredAcks", _acks, ALL, "who has to have a message: all in-sync replicas, 1, or 0"),
    Setting("idempotent", "enable.idempotence", "Idempotent", _optional(_flag), None,
            "nothing is stored twice, order is kept with several batches on their way; on unless acks is 1 or 0"),
    Setting("in_flight", "max.in.flight.requests.per.connection", "Net.MaxOpenRequests", _whole(1, 5), 5,
            "requests to one broker without an answer; of one partition 1 without idempotence"),
    Setting("compression", "compression.type", "Compression", _compression, 0, "none, gzip, snappy, lz4 or zstd"),
    Setting("batch_bytes", "batch.size", "BatchBytes", _whole(1), 131_072, "bytes of one batch before compression"),
    Setting("batch_messages", "batch.num.messages", "Flush.MaxMessages", _whole(0), 0,
            "messages of one batch; 0: no limit"),
    _time("linger", "linger.ms", "Flush.Frequency", 0.0,
          "how long a batch waits for more; 0: it is sent as soon as it can be"),
    Setting("flush_bytes", "flush.bytes", "Flush.Bytes", _whole(0), 0,
            "with linger.ms: so many bytes of a partition do not wait longer"),
    Setting("flush_messages", "flush.messages", "Flush.Messages", _whole(0), 0,
            "with linger.ms: so many messages of a partition do not wait longer"),
    Setting("message_bytes", "max.request.size", "MaxMessageBytes", _whole(100), 1_048_576,
            "bytes of a message as a batch of its own, and of a request of several batches"),
    Setting("memory", "buffer.memory", "Retry.MaxBufferBytes", _whole(1, 1 << 50), 67_108_864,
            "bytes of everything the producer holds"),
    _time("max_block", "max.block.ms", "MaxBlock", 60.0,
          "how long a message waits for memory, and a column for its topic's partitions"),
    _time("delivery_timeout", "delivery.timeout.ms", "DeliveryTimeout", 120.0,
          "how long a message is tried to be delivered, from its acceptance on"),
    _time("request_timeout", "request.timeout.ms", "Net.ReadTimeout", 30.0, "how long a broker has for one answer"),
    _time("acks_timeout", "timeout.ms", "Timeout", 10.0, "how long a broker waits for its replicas",
          _LONGEST_SENT),
    _time("connect_timeout", "socket.connection.setup.timeout.ms", "Net.DialTimeout", 10.0,
          "how long a connection may take to be made"),
    Setting("retries", "retries", "Retry.Max", _optional(_whole(0)), None,
            "how often a batch is sent again; none: until delivery.timeout.ms"),
    _time("backoff", "retry.backoff.ms", "Retry.Backoff", 0.1,
          "the first pause after a failure, 1 ms at least; each next is doubled"),
    _time("backoff_max", "retry.backoff.max.ms", "Retry.BackoffMax", 1.0, "the longest pause after a failure"),
    _time("metadata_max_age", "metadata.max.age.ms", "Metadata.RefreshFrequency", 300.0,
          "after how long the leaders are asked for again without a reason"),
    _time("metadata_max_idle", "metadata.max.idle.ms", "Metadata.MaxIdle", 300.0,
          "after how long without messages a topic is forgotten, and not asked for any more"),
    Setting("partitioner", "partitioner", "Partitioner", _partitioner, "murmur2", ", ".join(PARTITIONERS)),
    Setting("ignore_keys", "partitioner.ignore.keys", "PartitionerIgnoreKeys", _flag, False,
            "messages with a key are spread as those without"),
    Setting("adaptive", "partitioner.adaptive.partitioning.enable", "PartitionerAdaptive", _flag, True,
            "messages without a key rather go where less waits (KIP-794)"),
    Setting("return_successes", "return.successes", "Return.Successes", _flag, False,
            "what came by `input` and was delivered waits in `successes`, and in memory, until it is taken"),
    Setting("return_errors", "return.errors", "Return.Errors", _flag, True,
            "what came by `input` and failed waits in `errors`, and in memory, until it is taken"),
    Setting("on_failure", "on.failure", "OnFailure", _failure, "fail",
            "what a failure does behind it in its partition: fail what waits there, stop the partition, continue"),
    _time("stall", "stall.ms", "Stall", 30.0,
          "messages that make no progress for so long are reported, by partition or topic"),
    Setting("transactional_id", "transactional.id", "Transaction.ID", _optional(_name), None,
            "messages are sent in transactions, by one producer with this name at a time; none: without"),
    _time("transaction_timeout", "transaction.timeout.ms", "Transaction.Timeout", 60.0,
          "how long a transaction may take; then its coordinator aborts it", _LONGEST_SENT),
    Setting("answer_bytes", "receive.message.max.bytes", "MaxResponseSize", _whole(1024), 16_777_216,
            "the largest answer that is taken from a broker"),
    Setting("interceptors", "interceptor.classes", "Interceptors", _interceptors, (),
            "objects with on_send(message) and on_acknowledgement(metadata, error); each is called once a message"),
)  # fmt: skip
