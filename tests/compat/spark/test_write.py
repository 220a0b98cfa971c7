"""Writes through a real Spark: what arrives, by another client; plans; and what somebody sees who made a mistake."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from kafka.partitioner import murmur2
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from broker_process import BrokerProcess
from compat.spark import topics
from compat.spark.records import read
from compat.spark.scenes import Scene
from korvet_fast._native import batch_headers
from korvet_fast.cli.ingest import await_topic
from korvet_fast.cli.session import Bootstrap
from korvet_fast.endpoint import read_bootstrap

PARTITIONS = 3
FUNCTIONS = re.compile(r"EvalPython|MapIn|InPandas|PythonUDF|Flat[Mm]ap")


def write(frame: DataFrame, bootstrap: str, topic: str | None = None, **given: str) -> None:
    base = {"kafka.bootstrap.servers": bootstrap} | ({} if topic is None else {"topic": topic})
    frame.write.format("korvet").mode("append").options(**{**base, **given}).save()


def last_plan(spark: SparkSession) -> str:
    """The physical plan of what was run last."""
    return str(spark._jsparkSession.sharedState().statusStore().executionsList().last().physicalPlanDescription())


@pytest.fixture(scope="module")
def numbers(spark: SparkSession) -> DataFrame:
    """5,000 rows in two tasks; a third of the keys null."""
    return spark.range(0, 5000, 1, 2).selectExpr(
        "IF(id % 3 = 0, NULL, concat('k', id)) AS key", "concat('value ', id) AS value", "id"
    )


def test_rows_arrive_where_kafkas_clients_would_put_them(spark: SparkSession, scene: Scene, numbers: DataFrame) -> None:
    topics.create(scene.bootstrap, "keyed", PARTITIONS)
    write(numbers, scene.bootstrap, "keyed")
    plan = last_plan(spark)
    assert "AppendData" in plan
    assert not FUNCTIONS.search(plan)
    found = read(scene.bootstrap, "keyed")
    arrived = [(key, value) for rows in found.values() for key, value, _ in rows]
    expected = [(None if n % 3 == 0 else b"k%d" % n, b"value %d" % n) for n in range(5000)]
    assert sorted(arrived, key=repr) == sorted(expected, key=repr)
    assert set(found) == set(range(PARTITIONS))
    for partition, rows in found.items():
        assert all((murmur2(key) & 0x7FFFFFFF) % PARTITIONS == partition for key, _, _ in rows if key is not None)


def test_a_topic_is_waited_for_that_is_just_being_made(scene: Scene) -> None:
    await_topic(Bootstrap(read_bootstrap(scene.bootstrap), {}), "being-made")
    assert "being-made" in AdminClient({"bootstrap.servers": scene.bootstrap}).list_topics(timeout=120).topics


def test_a_task_keeps_the_order_of_its_rows(spark: SparkSession, broker: BrokerProcess, numbers: DataFrame) -> None:
    topics.create(broker.bootstrap, "ordered", PARTITIONS)
    write(
        numbers.coalesce(1).selectExpr("'one' AS key", "value"),
        broker.bootstrap,
        "ordered",
        **{"kafka.batch.size": "900"},
    )
    (rows,) = read(broker.bootstrap, "ordered").values()
    assert [value for _, value, _ in rows] == [b"value %d" % n for n in range(5000)]


def test_every_column_of_a_record(spark: SparkSession, broker: BrokerProcess) -> None:
    for topic in ("east", "west"):
        topics.create(broker.bootstrap, topic, PARTITIONS)
    frame = spark.sql(
        """SELECT * FROM VALUES
        ('east', 2, CAST('k' AS BINARY), X'00FF', ARRAY(NAMED_STRUCT('key', 'h', 'value', X'01'))),
        ('west', 0, NULL, NULL, NULL),
        ('west', 0, X'', X'', ARRAY(NAMED_STRUCT('key', 'größe', 'value', NULL),
                                    NAMED_STRUCT('key', 'h', 'value', X'')))
        AS t(topic, partition, key, value, headers)"""
    )
    write(frame.coalesce(1), broker.bootstrap)
    assert read(broker.bootstrap, "east") == {2: [(b"k", b"\x00\xff", [("h", b"\x01")])]}
    assert read(broker.bootstrap, "west") == {0: [(None, None, None), (b"", b"", [("größe", None), ("h", b"")])]}


@pytest.mark.parametrize("compression", topics.COMPRESSIONS)
def test_compression_and_numbers_for_repetitions(
    spark: SparkSession, broker: BrokerProcess, numbers: DataFrame, compression: str
) -> None:
    topic = f"packed-{compression}"
    topics.create(broker.bootstrap, topic, 1)
    write(numbers.selectExpr("value"), broker.bootstrap, topic, **{"kafka.compression.type": compression})
    assert sum(len(rows) for rows in read(broker.bootstrap, topic).values()) == 5000
    (log,) = Path(broker.store.removeprefix("file:")).glob(f"{topic}-0/*.log")
    batches = batch_headers(log.read_bytes(), True)
    assert {topics.COMPRESSIONS[batch.compression] for batch in batches} == {compression}
    assert all(batch.producer_id >= 0 and batch.base_sequence >= 0 for batch in batches)


def test_a_stream_in_append_and_in_complete_mode(
    spark: SparkSession, broker: BrokerProcess, numbers: DataFrame, tmp_path: Path
) -> None:
    numbers.write.parquet(str(tmp_path / "files"))
    stream = spark.readStream.schema(numbers.schema).parquet(str(tmp_path / "files"))
    counts = stream.groupBy(F.expr("id % 3").alias("rest")).agg(F.count("*").alias("n"))
    for mode, frame in (
        ("append", stream.select("key", "value")),
        ("complete", counts.selectExpr("CAST(rest AS STRING) AS key", "CAST(n AS STRING) AS value")),
    ):
        topics.create(broker.bootstrap, f"stream-{mode}", PARTITIONS)
        writer = frame.writeStream.format("korvet").outputMode(mode).trigger(availableNow=True)
        writer = writer.option("kafka.bootstrap.servers", broker.bootstrap).option("topic", f"stream-{mode}")
        assert writer.option("checkpointLocation", str(tmp_path / mode)).start().awaitTermination(250)
    appended = [row for rows in read(broker.bootstrap, "stream-append").values() for row in rows]
    assert sorted(value for _, value, _ in appended) == sorted(b"value %d" % n for n in range(5000))
    completed = [row[:2] for rows in read(broker.bootstrap, "stream-complete").values() for row in rows]
    assert sorted(completed) == [(b"0", b"1667"), (b"1", b"1667"), (b"2", b"1666")]


def test_a_topic_that_there_is_not_is_made(spark: SparkSession, broker: BrokerProcess) -> None:
    write(spark.sql("SELECT 'x' AS value"), broker.bootstrap, "made")
    assert [row for rows in read(broker.bootstrap, "made").values() for row in rows] == [(None, b"x", None)]


def test_a_topic_is_not_made_where_the_broker_makes_none(
    spark: SparkSession, start_broker: Callable[..., BrokerProcess]
) -> None:
    broker = start_broker("auto.create.topics.enable=false")
    with pytest.raises(PySparkException, match="topic 'nope': There is no such topic or partition here"):
        write(spark.sql("SELECT 'x' AS value"), broker.bootstrap, "nope", **{"kafka.request.timeout.ms": "5000"})


@pytest.mark.parametrize(
    ("query", "given", "words"),
    [
        ("'x' AS v", {}, "a record needs a column 'value', and the columns are v: name one so"),
        ("1 AS value", {}, "column 'value' is of type int, but has to be string or binary: cast it"),
        ("'x' AS value, 1L AS partition", {}, "column 'partition' is of type bigint, but has to be int: cast it"),
        ("'x' AS value", {"kafka.acks": "0"}, "option 'kafka.acks' is '0', but has to be 1 or all or -1"),
        ("'x' AS value", {"tpoic": "t"}, "there is no option 'tpoic' for writes; did you mean 'topic'?"),
        ("'x' AS value, 9 AS partition", {}, "9"),
        ("repeat('x', 2000) AS value", {"kafka.max.request.size": "1000"}, "kafka.max.request.size"),
        ("repeat('x', 2000000) AS value", {}, "1 record for partition "),
        ("'x' AS value", {"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.request.timeout.ms": "200"},
         "cannot connect to 127.0.0.1:1"),
    ],
)  # fmt: skip
def test_mistakes(spark: SparkSession, broker: BrokerProcess, query: str, given: dict[str, str], words: str) -> None:
    with pytest.raises(PySparkException) as failure:
        write(spark.sql(f"SELECT {query}"), broker.bootstrap, "mistakes", **given)
    assert re.search(r"korvet_fast\.[\w.]+: .*" + re.escape(words), str(failure.value)), failure.value


def test_no_topic_at_all(spark: SparkSession, broker: BrokerProcess) -> None:
    with pytest.raises(PySparkException, match="no topic is named: give the option 'topic', or a column 'topic'"):
        write(spark.sql("SELECT 'x' AS value"), broker.bootstrap)
    with pytest.raises(PySparkException, match=r"korvet_fast\.\S+: .*topic.*null"):
        write(spark.sql("SELECT 'x' AS value, CAST(NULL AS STRING) AS topic"), broker.bootstrap)


def test_a_topic_is_never_overwritten(spark: SparkSession, broker: BrokerProcess) -> None:
    writer = spark.sql("SELECT 'x' AS value").write.format("korvet").option("topic", "mistakes")
    with pytest.raises(PySparkException, match="a topic can only be appended to"):
        writer.option("kafka.bootstrap.servers", broker.bootstrap).mode("overwrite").save()
