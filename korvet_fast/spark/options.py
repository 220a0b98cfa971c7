"""The options of the data source in one table: name, parser, and the uses that accept it.

Names, defaults and precedence are those of Spark's own Kafka source (its "Structured Streaming + Kafka Integration
Guide"), so a job moves over when the word after `format` is changed. Case does not matter in names, as in Spark.
"""

# ruff: noqa: RUF009 - the call in each default is the row of the table, and its result is never changed

import dataclasses
import enum
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from korvet_fast.client.protocol.requests import COMPRESSIONS
from korvet_fast.client.security import is_security, read_security
from korvet_fast.config_def import explain_unknown
from korvet_fast.endpoint import read_bootstrap
from korvet_fast.errors import SettingError
from korvet_fast.spark.offsets import OffsetLimit, OffsetQuery, Offsets, read_assignment, read_json
from korvet_fast.spark.row import HEADERS, TYPES, columns
from korvet_fast.spark.unsupported_options import check_unsupported
from korvet_fast.types import EARLIEST, LATEST


class Use(enum.Flag):
    """The kind of job that uses the source."""

    READ = enum.auto()
    STREAM = enum.auto()
    WRITE = enum.auto()

    def __str__(self) -> str:
        return {Use.READ: "batch reads", Use.STREAM: "streams", Use.WRITE: "writes"}[self]


SOURCE = Use.READ | Use.STREAM
EVERYWHERE = SOURCE | Use.WRITE

CLIENT = "kafka."  # before the name of a setting that all of Kafka's clients have
ACKS = {"1": 1, "all": -1, "-1": -1}
DURATION = re.compile(r"(\d+)\s*(ms|s|m|min|h|d)?", re.IGNORECASE)
SECONDS = {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}


def text(given: str) -> str:
    if not given.strip():
        raise ValueError("a text that is not empty")
    return given.strip()


def addresses(given: str) -> str:
    try:
        read_bootstrap(given)
    except ValueError as error:
        raise ValueError(f"HOST:PORT, or several with commas between them ({error})") from None
    return given


def flag(given: str) -> bool:
    if given.lower() not in ("true", "false"):
        raise ValueError("true or false")
    return given.lower() == "true"


def number(lowest: int) -> Callable[[str], int]:
    def read(given: str) -> int:
        if not re.fullmatch(r"\d{1,18}", given) or int(given) < lowest:
            raise ValueError(f"a whole number from {lowest} on")
        return int(given)

    return read


def milliseconds(given: str) -> float:
    return number(1)(given) / 1000


def duration(given: str) -> float:
    match = DURATION.fullmatch(given.strip())
    if match is None:
        raise ValueError("a time like 500ms, 30s, 15m or 1h")
    return int(match[1]) * SECONDS[(match[2] or "ms").lower()]


def choice(*allowed: str) -> Callable[[str], str]:
    def read(given: str) -> str:
        if given.lower() not in allowed:
            raise ValueError(" or ".join(allowed))
        return given.lower()

    return read


def one_of(meanings: Mapping[str, int]) -> Callable[[str], int]:
    def read(given: str) -> int:
        return meanings[choice(*meanings)(given)]

    return read


def names(given: str) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(part.strip() for part in given.split(",") if part.strip()))
    if not found:
        raise ValueError("names with commas between them")
    return found


def column_names(given: str) -> tuple[str, ...]:
    known = {name.lower(): name for name in TYPES}
    found = tuple(known.get(name.lower(), name) for name in names(given))
    for name in found:
        if name not in TYPES:
            raise ValueError(f"names out of {', '.join(TYPES)}; {explain_unknown(name, TYPES)}")
    return found


def offsets(given: str) -> int | Offsets:
    word = given.strip().lower()
    return {"earliest": EARLIEST, "latest": LATEST}[word] if word in ("earliest", "latest") else read_json(given, -2)


def times(given: str) -> Offsets:
    return read_json(given, 0)


def option(name: str, uses: Use, read: Callable[[str], Any], default: Any = None) -> Any:
    """A row of the table: the name in Spark, the uses that accept it, its parser, and the default."""
    return dataclasses.field(default=default, metadata={"name": name, "uses": uses, "read": read})


@dataclass(frozen=True)
class Options:
    """Every option of the source, parsed. None: not given. Times are in seconds."""

    bootstrap: str = option("kafka.bootstrap.servers", EVERYWHERE, addresses, "")
    patience: float = option("kafka.request.timeout.ms", EVERYWHERE, milliseconds, 30.0)
    group: str | None = option("kafka.group.id", Use.STREAM, text)
    isolation: str = option(
        "kafka.isolation.level", SOURCE, choice("read_uncommitted", "read_committed"), "read_uncommitted"
    )
    fetch_max_bytes: int = option("kafka.fetch.max.bytes", SOURCE, number(1), 8 << 20)
    partition_bytes: int = option("kafka.max.partition.fetch.bytes", SOURCE, number(1), 8 << 20)
    fetch_wait: float = option("kafka.fetch.max.wait.ms", SOURCE, milliseconds, 0.5)
    assign: "tuple[tuple[str, int], ...] | None" = option("assign", SOURCE, read_assignment)
    subscribe: tuple[str, ...] | None = option("subscribe", SOURCE, names)
    pattern: str | None = option("subscribePattern", SOURCE, text)
    starting_timestamp: int | None = option("startingTimestamp", SOURCE, number(0))
    starting_times: Offsets | None = option("startingOffsetsByTimestamp", SOURCE, times)
    starting_offsets: int | Offsets | None = option("startingOffsets", SOURCE, offsets)
    strategy: str = option("startingOffsetsByTimestampStrategy", SOURCE, choice("error", "latest"), "error")
    ending_timestamp: int | None = option("endingTimestamp", Use.READ, number(0))
    ending_times: Offsets | None = option("endingOffsetsByTimestamp", Use.READ, times)
    ending_offsets: int | Offsets | None = option("endingOffsets", Use.READ, offsets)
    fail_on_data_loss: bool = option("failOnDataLoss", SOURCE, flag, True)
    max_offsets: int | None = option("maxOffsetsPerTrigger", Use.STREAM, number(1))
    min_offsets: int | None = option("minOffsetsPerTrigger", Use.STREAM, number(1))
    max_delay: float = option("maxTriggerDelay", Use.STREAM, duration, 900.0)
    min_partitions: int | None = option("minPartitions", SOURCE, number(1))
    max_records: int | None = option("maxRecordsPerPartition", SOURCE, number(1))
    poll_timeout: float = option("kafkaConsumer.pollTimeoutMs", SOURCE, milliseconds, 120.0)
    offset_retries: int = option("fetchOffset.numRetries", SOURCE, number(0), 3)
    offset_pause: float = option("fetchOffset.retryIntervalMs", SOURCE, milliseconds, 1.0)
    include_headers: bool = option("includeHeaders", SOURCE, flag, False)
    columns: tuple[str, ...] | None = option("columns", SOURCE, column_names)
    topic: str | None = option("topic", Use.WRITE, text)
    acks: int = option("kafka.acks", Use.WRITE, one_of(ACKS), -1)
    enable_idempotence: bool | None = option("kafka.enable.idempotence", Use.WRITE, flag)
    compression: int = option("kafka.compression.type", Use.WRITE, one_of(COMPRESSIONS), 0)
    batch_bytes: int = option("kafka.batch.size", Use.WRITE, number(1), 900_000)  # below the default message.max.bytes
    request_bytes: int = option("kafka.max.request.size", Use.WRITE, number(1), 8 << 20)
    delivery_timeout: float = option("kafka.delivery.timeout.ms", Use.WRITE, milliseconds, 120.0)
    # kafka.security.protocol and so on, without their `kafka.`, as they were given: tasks carry them to other machines.
    security: tuple[tuple[str, str], ...] = dataclasses.field(default=(), repr=False)

    @property
    def idempotent(self) -> bool:
        """Whether a batch that is sent again is stored once: with acks=all, unless the option says otherwise."""
        return self.acks == ACKS["all"] if self.enable_idempotence is None else self.enable_idempotence

    @property
    def offset_query(self) -> OffsetQuery:
        """How brokers are asked for offsets."""
        return OffsetQuery(self.isolation == "read_committed", self.offset_retries, self.offset_pause)

    def start(self, default: int) -> OffsetLimit:
        """Where a read begins. A time for all partitions comes first, then times for each, then offsets."""
        return _limit("starting", self.starting_timestamp, self.starting_times, self.starting_offsets, default)

    def end(self) -> OffsetLimit:
        """Where a batch read ends, with the same precedence."""
        return _limit("ending", self.ending_timestamp, self.ending_times, self.ending_offsets, LATEST)


def _limit(
    side: str, timestamp: int | None, each: Offsets | None, given: int | Offsets | None, default: int
) -> OffsetLimit:
    if timestamp is not None:
        return OffsetLimit(f"{side}Timestamp", True, timestamp, {})
    if each is not None:
        return OffsetLimit(f"{side}OffsetsByTimestamp", True, None, each)
    if isinstance(given, dict):
        return OffsetLimit(f"{side}Offsets", False, None, given)
    return OffsetLimit(f"{side}Offsets", False, default if given is None else given, {})


ROWS = {row.metadata["name"].lower(): row for row in dataclasses.fields(Options) if row.metadata}


def parse(given: Mapping[str, str], use: Use) -> Options:
    """Read the options of one read, stream or write.

    Raises `SettingError` for an option that is unknown, illegal, missing, or that contradicts another one.
    """
    values: dict[str, Any] = {"security": _read_security(given)}
    for name, value in given.items():
        if _is_security(name):
            continue
        row = ROWS.get(name.lower())
        if row is None:
            here = [each.metadata["name"] for each in ROWS.values() if use in each.metadata["uses"]]
            check_unsupported(name.lower(), str(use), here)
        elif use not in row.metadata["uses"]:
            raise SettingError(f"option {row.metadata['name']!r} is not for {use}: leave it out")
        else:
            values[row.name] = _read(row, value)
    options = Options(**values)
    if not options.bootstrap:
        raise SettingError("option 'kafka.bootstrap.servers' is missing: give the address of a broker, HOST:PORT")
    if use in SOURCE:
        _check_source(options, use, set(values))
    elif options.enable_idempotence and options.acks != ACKS["all"]:
        raise SettingError("option 'kafka.enable.idempotence' needs 'kafka.acks' to be all: leave one of them out")
    return options


def _is_security(name: str) -> bool:
    return name.lower().startswith(CLIENT) and is_security(name[len(CLIENT) :])


def _read_security(given: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The options that say how brokers are connected to. Raises `SettingError`."""
    found = {name.lower().removeprefix(CLIENT): value for name, value in given.items() if _is_security(name)}
    try:
        read_security(found)
    except SettingError as error:
        raise SettingError(f"options of connections, which begin with {CLIENT!r}: {error}") from None
    return tuple(sorted(found.items()))


def parse_columns(given: Mapping[str, str]) -> tuple[str, ...]:
    """The columns of a read. Spark asks for them before it says whether the read is a stream."""
    chosen = {name: _read(ROWS[name], given[name]) for name in ("columns", "includeheaders") if name in given}
    return columns(chosen.get("columns"), chosen.get("includeheaders", False))


def _read(row: "dataclasses.Field[Any]", value: str) -> Any:
    try:
        return row.metadata["read"](value)
    except ValueError as error:
        raise SettingError(f"option {row.metadata['name']!r} is {value!r}, but has to be {error}") from None


def _check_source(options: Options, use: Use, given: set[str]) -> None:
    chosen = [name for name in ("assign", "subscribe", "pattern") if name in given]
    if len(chosen) != 1:
        wrong = "none" if not chosen else "more than one"
        raise SettingError(f"give exactly one of the options 'assign', 'subscribe' and 'subscribePattern', not {wrong}")
    if options.columns is not None and options.include_headers and HEADERS not in options.columns:
        raise SettingError("option 'includeHeaders' is true, but 'columns' leaves 'headers' out: add it there")
    if use is Use.READ:
        _check_batch("startingOffsets", "latest", LATEST, options.starting_offsets)
        _check_batch("endingOffsets", "earliest", EARLIEST, options.ending_offsets)
    if options.min_offsets is None and "max_delay" in given:
        raise SettingError("option 'maxTriggerDelay' bounds the wait for 'minOffsetsPerTrigger': give that too")
    if options.min_offsets is not None and (options.max_offsets or options.min_offsets) < options.min_offsets:
        raise SettingError("option 'minOffsetsPerTrigger' is larger than 'maxOffsetsPerTrigger': raise the latter")


def _check_batch(name: str, word: str, forbidden: int, given: int | Offsets | None) -> None:
    if isinstance(given, dict):
        for (topic, partition), offset in given.items():
            if offset == forbidden:
                raise SettingError(
                    f"option {name!r} has {forbidden} ({word}) for partition {partition} of topic {topic!r}, which a "
                    f"batch read cannot use: give another offset"
                )
    elif given == forbidden:
        raise SettingError(f"option {name!r} is {word!r}, which a batch read cannot use: give another offset")
