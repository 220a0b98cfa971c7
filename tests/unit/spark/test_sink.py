"""The sink without Spark or a broker: its options, and which data frames are records."""

import pytest
from pyspark.sql.types import StructType

from korvet_fast.errors import SettingError
from korvet_fast.spark.options import Use, parse
from korvet_fast.spark.sink import check_columns, warn_of_slow_settings

BROKER = {"kafka.bootstrap.servers": "127.0.0.1:9092"}


def test_what_holds_if_nothing_is_said() -> None:
    options = parse(BROKER, Use.WRITE)
    assert (options.acks, options.idempotent, options.compression, options.topic) == (-1, True, 0, None)
    assert options.batch_bytes < 1_000_000 < options.request_bytes  # of a broker's message.max.bytes, by default


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"kafka.acks": "1"}, {"acks": 1, "idempotent": False}),
        ({"kafka.acks": "all", "kafka.enable.idempotence": "false"}, {"acks": -1, "idempotent": False}),
        ({"kafka.acks": "-1"}, {"acks": -1, "idempotent": True}),
        ({"kafka.compression.type": "zstd", "topic": "orders"}, {"compression": 4, "topic": "orders"}),
        ({"kafka.batch.size": "16384", "kafka.max.request.size": "99"}, {"batch_bytes": 16384, "request_bytes": 99}),
        ({"kafka.delivery.timeout.ms": "2500"}, {"delivery_timeout": 2.5}),
        ({"checkpointLocation": "somewhere", "queryName": "q"}, {}),  # Spark's own
        ({"kafka.linger.ms": "5", "kafka.retries": "3"}, {}),
    ],
)
def test_options(given: dict[str, str], expected: dict[str, object]) -> None:
    options = parse(BROKER | given, Use.WRITE)
    assert {name: getattr(options, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"kafka.acks": "0"}, r"'kafka\.acks' is '0', but has to be 1 or all or -1"),
        ({"kafka.acks": "1", "kafka.enable.idempotence": "true"}, r"'kafka\.enable\.idempotence' needs 'kafka\.acks'"),
        ({"kafka.transactional.id": "t"}, r"'kafka\.transactional\.id' cannot be given: there are no transactions"),
        ({"kafka.compression.type": "brotli"}, r"has to be none or gzip or snappy or lz4 or zstd"),
        ({"topik": "t"}, r"there is no option 'topik' for writes; did you mean 'topic'\?"),
        ({"subscribe": "t"}, r"'subscribe' is not for writes"),
        ({"topic": " "}, r"'topic' is ' ', but has to be a text that is not empty"),
    ],
)
def test_options_that_cannot_be(given: dict[str, str], words: str) -> None:
    with pytest.raises(SettingError, match=words):
        parse(BROKER | given, Use.WRITE)


class Context:
    """A task's, as far as the sink asks it."""

    def __init__(self, bound: str | None) -> None:
        self.bound = bound

    def getLocalProperty(self, name: str) -> str | None:
        return {"spark.sql.execution.arrow.maxBytesPerBatch": self.bound}[name]


@pytest.mark.parametrize("bound", [None, "67108864"])
def test_slow_settings_are_told(bound: str | None) -> None:
    with pytest.warns(UserWarning, match=r"half as fast.*korvet_fast\.spark\.configure\(spark\) sets it"):
        warn_of_slow_settings(Context(bound))  # type: ignore[arg-type]


def test_what_configure_sets_is_not_warned_of() -> None:
    warn_of_slow_settings(Context("2147483647"))  # type: ignore[arg-type]


def test_the_columns_of_a_record_and_others() -> None:
    schema = StructType().add("value", "binary").add("topic", "integer").add("other", "double")
    check_columns(schema, "t")  # the option counts, and what is no part of a record is left out
    with pytest.raises(SettingError, match="column 'topic' is of type int, but has to be string"):
        check_columns(schema, None)
