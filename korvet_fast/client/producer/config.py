"""The producer's settings: Kafka's names, Sarama's names, defaults and rules, in one table."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

from korvet_fast.client.producer.partitioners import ALIASES, PARTITIONERS
from korvet_fast.errors import SettingError

ALL, LEADER, NO_RESPONSE = -1, 1, 0
_ACKS: Final = {"all": ALL, "WaitForAll": ALL, "WaitForLocal": LEADER, "NoResponse": NO_RESPONSE}
COMPRESSIONS: Final = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
FAILURES: Final = ("fail", "stop", "continue")


def _whole(low: int, high: int = (1 << 31) - 1) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        number = int(value)
        if isinstance(value, bool) or number != float(value) or not low <= number <= high:
            raise ValueError(f"a whole number from {low:,} to {high:,}")
        return number

    return read


def _milliseconds(value: Any) -> float:
    return _seconds(value if isinstance(value, timedelta) else float(value) / 1000)


def _seconds(value: Any) -> float:
    number = value.total_seconds() if isinstance(value, timedelta) else float(value)
    if not 0 <= number < 1e9:
        raise ValueError("a time that is not negative")
    return number


def _flag(value: Any) -> bool:
    words = {"true": True, "false": False}
    if isinstance(value, bool):
        return value
    if str(value).lower() not in words:
        raise ValueError("true or false")
    return words[str(value).lower()]


def _acks(value: Any) -> int:
    number = _ACKS[value] if value in _ACKS else int(value)
    if number not in (ALL, LEADER, NO_RESPONSE):
        raise ValueError("all, 1 or 0")
    return number


def _compression(value: Any) -> int:
    if value not in COMPRESSIONS:
        raise ValueError("one of " + ", ".join(COMPRESSIONS))
    return COMPRESSIONS[value]


def _partitioner(value: Any) -> str:
    name = ALIASES.get(value, value)
    if name not in PARTITIONERS:
        raise ValueError("one of " + ", ".join(PARTITIONERS))
    return str(name)


def _failure(value: Any) -> str:
    if value not in FAILURES:
        raise ValueError("one of " + ", ".join(FAILURES))
    return str(value)


def _interceptors(value: Any) -> tuple[Any, ...]:
    found = tuple(value)
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


def _time(field: str, name: str, sarama: str, default: float | None, meaning: str) -> Setting:
    return Setting(field, name, sarama, _optional(_milliseconds), default, meaning, _optional(_seconds))


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
    _time("max_block", "max.block.ms", "MaxBlock", 60.0, "how long a message waits for memory"),
    _time("delivery_timeout", "delivery.timeout.ms", "DeliveryTimeout", 120.0,
          "how long a message is tried to be delivered, from its acceptance on"),
    _time("request_timeout", "request.timeout.ms", "Net.ReadTimeout", 30.0, "how long a broker has for one answer"),
    _time("acks_timeout", "timeout.ms", "Timeout", 10.0, "how long a broker waits for its replicas"),
    _time("connect_timeout", "socket.connection.setup.timeout.ms", "Net.DialTimeout", 10.0,
          "how long a connection may take to be made"),
    Setting("retries", "retries", "Retry.Max", _optional(_whole(0)), None,
            "how often a batch is sent again; none: until delivery.timeout.ms"),
    _time("backoff", "retry.backoff.ms", "Retry.Backoff", 0.1, "the first pause after a failure; each next is doubled"),
    _time("backoff_max", "retry.backoff.max.ms", "Retry.BackoffMax", 1.0, "the longest pause after a failure"),
    _time("metadata_max_age", "metadata.max.age.ms", "Metadata.RefreshFrequency", 300.0,
          "after how long the leaders are asked for again without a reason"),
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
    _time("stall", "stall.ms", "Stall", 30.0, "a partition with messages and no progress for so long is reported"),
    Setting("answer_bytes", "receive.message.max.bytes", "MaxResponseSize", _whole(1024), 16_777_216,
            "the largest answer that is taken from a broker"),
    Setting("interceptors", "interceptor.classes", "Interceptors", _interceptors, (),
            "objects with on_send(message) and on_acknowledgement(metadata, error); each is called once a message"),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerConfig:
    """The settings as values; times in seconds, sizes in bytes. `SETTINGS` says what each means."""

    acks: int
    idempotent: bool
    in_flight: int
    compression: int
    batch_bytes: int
    batch_messages: int
    linger: float
    flush_bytes: int
    flush_messages: int
    message_bytes: int
    memory: int
    max_block: float
    delivery_timeout: float
    request_timeout: float
    acks_timeout: float
    connect_timeout: float
    retries: int | None
    backoff: float
    backoff_max: float
    metadata_max_age: float
    partitioner: str
    ignore_keys: bool
    adaptive: bool
    return_successes: bool
    return_errors: bool
    on_failure: str
    stall: float
    answer_bytes: int
    interceptors: Sequence[Any]

    @property
    def batch_limit(self) -> int:
        """Bytes of one batch before compression."""
        return min(self.batch_bytes, self.message_bytes)

    @property
    def window(self) -> int:
        """Batches of one partition on their way: a broker remembers 5 of an idempotent producer (KIP-98)."""
        return self.in_flight if self.idempotent else 1


def _spelling(name: str) -> str:
    return name.removeprefix("Producer.").replace("_", ".").lower()


_NAMES: Final = {_spelling(name): each for each in SETTINGS for name in (each.name, each.sarama)}


def read_config(given: Mapping[str, Any]) -> ProducerConfig:
    """Settings by Kafka's names (`linger_ms` or `linger.ms`) or Sarama's (`Producer.Flush.Frequency`).

    Times by Kafka's names are milliseconds, by Sarama's seconds; either may be a `timedelta`. Raises `SettingError`.
    """
    values = {each.field: each.default for each in SETTINGS}
    named: dict[str, str] = {}
    for name, value in given.items():
        setting = _find(name)
        if setting.field in named:
            raise SettingError(f"{name} and {named[setting.field]} are the same setting; give one of them")
        named[setting.field] = name
        by_sarama = _spelling(name) != _spelling(setting.name)
        values[setting.field] = _read(setting, name, value, by_sarama)
    if values["idempotent"] is None:
        values["idempotent"] = values["acks"] == ALL
    config = ProducerConfig(**values)
    _check(config, named)
    return config


def _find(name: str) -> Setting:
    setting = _NAMES.get(_spelling(name))
    if setting is None:
        near = get_close_matches(_spelling(name), _NAMES, n=1, cutoff=0.0)[0]
        raise SettingError(f"the producer has no setting {name!r}; did you mean {_NAMES[near].name!r}?")
    return setting


def _read(setting: Setting, name: str, value: Any, by_sarama: bool) -> Any:
    read = setting.sarama_read if by_sarama and setting.sarama_read else setting.read
    try:
        return read(value)
    except (TypeError, ValueError) as error:
        wanted = str(error) if isinstance(error, ValueError) and "invalid literal" not in str(error) else "a number"
        raise SettingError(f"{name}={value!r} cannot be used; it must be {wanted}") from None


def _check(config: ProducerConfig, named: Mapping[str, str]) -> None:
    """Refuse settings that contradict each other, and those under which a message would never be sent."""

    def name(field: str) -> str:
        return named.get(field) or next(each.name for each in SETTINGS if each.field == field)

    if config.idempotent and config.acks != ALL:
        raise SettingError(f"{name('idempotent')} needs {name('acks')}=all; set one of them otherwise")
    if config.idempotent and config.retries == 0:
        raise SettingError(f"{name('idempotent')} needs {name('retries')} of 1 or more, or none at all")
    for field in ("flush_bytes", "flush_messages"):
        if getattr(config, field) and not config.linger:
            raise SettingError(
                f"{name(field)} without {name('linger')} may never send what is left over; set {name('linger')} too"
            )
    if config.linger >= config.delivery_timeout:
        raise SettingError(f"{name('linger')} is not below {name('delivery_timeout')}: messages expire unsent")
    if config.flush_bytes > config.memory // 4:  # they are counted twice, and other partitions need some
        raise SettingError(f"{name('flush_bytes')} is above a quarter of {name('memory')}: it is never reached")
    if 4 * config.message_bytes > config.memory:
        raise SettingError(f"{name('memory')} is less than four times {name('message_bytes')}; raise it")
    if config.backoff > config.backoff_max:
        raise SettingError(f"{name('backoff')} is above {name('backoff_max')}")
    for field in ("delivery_timeout", "request_timeout", "connect_timeout", "metadata_max_age", "stall"):
        if not getattr(config, field):
            raise SettingError(f"{name(field)} of 0 leaves no time at all; give more")
    if config.acks_timeout > config.request_timeout and "acks_timeout" in named:
        raise SettingError(f"{name('acks_timeout')} is above {name('request_timeout')}: answers would come too late")
