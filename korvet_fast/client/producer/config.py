"""The producer's settings as values, and the rules between them."""

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Final

from korvet_fast.client.producer.dialects import KAFKA, Dialect
from korvet_fast.client.producer.settings import ALL, SETTINGS, Setting
from korvet_fast.client.protocol.sasl import OAuthLogin, SaslLogin
from korvet_fast.client.security import Security, is_security, read_security
from korvet_fast.errors import SettingError

TRANSACTIONAL: Final = 1 << 4


@dataclass(frozen=True, kw_only=True)
class ProducerConfig:
    """The settings as values; times in seconds, sizes in bytes. `SETTINGS` says what each means.

    `dialect`: of the address. What follows from the settings is worked out once: it is asked for with each batch.
    """

    dialect: Dialect
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
    metadata_max_idle: float
    partitioner: str
    ignore_keys: bool
    adaptive: bool
    return_successes: bool
    return_errors: bool
    on_failure: str
    stall: float
    transactional_id: str | None
    transaction_timeout: float
    answer_bytes: int
    interceptors: Sequence[Any]
    security: Security

    @property
    def login(self) -> SaslLogin | OAuthLogin | None:
        """Who logs in by SASL, if anybody does."""
        return self.security.login

    @cached_property
    def batch_kind(self) -> int:
        """How the native codec is told of compression and transactions."""
        return self.compression | (TRANSACTIONAL if self.transactional_id is not None else 0)

    @cached_property
    def batch_limit(self) -> int:
        """Bytes of one batch before compression."""
        return min(self.batch_bytes, self.message_bytes)

    @cached_property
    def full_bytes(self) -> float:
        """A queue with so many bytes waits for no more messages."""
        return _least(self.batch_limit, self.flush_bytes)

    @cached_property
    def full_messages(self) -> float:
        """A queue with so many messages waits for no more."""
        return _least(self.batch_messages, self.flush_messages)

    @cached_property
    def window(self) -> int:
        """Batches of one partition on their way: a broker remembers 5 of an idempotent producer (KIP-98)."""
        return self.in_flight if self.idempotent else 1


def _least(*limits: int) -> float:
    """The least of those that are set."""
    return min((limit for limit in limits if limit), default=float("inf"))


def _spelling(name: str) -> str:
    return name.removeprefix("Producer.").replace("_", ".").lower()


_NAMES: Final = {_spelling(name): each for each in SETTINGS for name in (each.name, each.sarama)}


def read_config(given: Mapping[str, Any], dialect: Dialect = KAFKA) -> ProducerConfig:
    """Settings by Kafka's names (`linger_ms` or `linger.ms`) or Sarama's (`Producer.Flush.Frequency`).

    Times by Kafka's names are milliseconds, by Sarama's seconds; either may be a `timedelta`. `security.protocol`,
    `ssl.` and `sasl.` are as `read_security` has them. Raises `SettingError`.
    """
    security = read_security({name: value for name, value in given.items() if is_security(name)})
    values = {each.field: each.default for each in SETTINGS}
    values["acks"] = dialect.acks[0]
    named: dict[str, str] = {}
    for name, value in given.items():
        if is_security(name):
            continue
        setting = _find(name)
        if setting.field in named:
            raise SettingError(f"{name} and {named[setting.field]} are the same setting; give one of them")
        named[setting.field] = name
        by_sarama = _spelling(name) != _spelling(setting.name)
        values[setting.field] = _read(setting, name, value, by_sarama)
    if security.tls:
        named["security"] = "security.protocol"
    if security.login is not None:
        named["login"] = "security.protocol"
    if values["idempotent"] is None:
        values["idempotent"] = values["acks"] == ALL and "idempotent" not in dialect.refused
    config = ProducerConfig(dialect=dialect, security=security, **values)
    _check_dialect(config, named)
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
    except ValueError as error:
        raise SettingError(f"{name}={reprlib.repr(value)} cannot be used; it must be {error}, or left out") from None


def _check_dialect(config: ProducerConfig, named: Mapping[str, str]) -> None:
    """Refuse what the dialect of the address cannot do."""
    dialect = config.dialect
    if config.acks not in dialect.acks:
        raise SettingError(f"{named['acks']}: {dialect.title} {dialect.acks_rule}")
    for field, why in dialect.refused.items():
        if field in named and getattr(config, field) not in (None, False, 0):
            raise SettingError(f"{named[field]}: {dialect.title} {why}; leave {named[field]} out, or use kafka://")


def _check(config: ProducerConfig, named: Mapping[str, str]) -> None:
    """Refuse settings that contradict each other, and those under which a message would never be sent."""

    def name(field: str) -> str:
        return named.get(field) or next(each.name for each in SETTINGS if each.field == field)

    if config.idempotent and config.acks != ALL:
        raise SettingError(f"{name('idempotent')} needs {name('acks')}=all; set one of them otherwise")
    if config.transactional_id is not None and not config.idempotent:
        raise SettingError(f"{name('transactional_id')} needs {name('idempotent')} and {name('acks')}=all")
    if config.transactional_id is not None and config.on_failure != "fail":
        raise SettingError(
            f"{name('transactional_id')} needs {name('on_failure')}=fail: a message that fails ends its transaction"
        )
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
    for field in (
        "delivery_timeout",
        "request_timeout",
        "connect_timeout",
        "metadata_max_age",
        "metadata_max_idle",
        "stall",
        "transaction_timeout",
    ):
        if not getattr(config, field):
            raise SettingError(f"{name(field)} of 0 leaves no time at all; give more")
    if config.acks_timeout > config.request_timeout and "acks_timeout" in named:
        raise SettingError(f"{name('acks_timeout')} is above {name('request_timeout')}: answers would come too late")
