"""Batch reads through a real Spark: columns, tasks, plans, and what somebody sees who made a mistake."""

import re
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from broker_process import BrokerProcess
from compat.spark import topics
from compat.spark.topics import Row

SCHEMA = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, timestampType INT, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
COUNT = 100  # records of each partition


@pytest.fixture(scope="module")
def rows(broker: BrokerProcess) -> list[Row]:
    """The content of the topic `read`: two partitions with records, and one without."""
    topics.create(broker.bootstrap, "read", 3)
    records = (
        (number % 2, None if number % 3 else b"%d" % number, b"v%d" % number, [("h", None), ("h", b"1")][: number % 3])
        for number in range(2 * COUNT)
    )
    return sorted(topics.send(broker.bootstrap, "read", "zstd", records))


def load(spark: SparkSession, broker: BrokerProcess, **given: str) -> DataFrame:
    base = {"kafka.bootstrap.servers": broker.bootstrap} | ({} if "assign" in given else {"subscribe": "read"})
    return spark.read.format("korvet").options(**{**base, **given}).load()


def values(found: DataFrame) -> list[Any]:
    return sorted(tuple(row) for row in found.collect())


def test_the_row_is_that_of_sparks_kafka_source(spark: SparkSession, broker: BrokerProcess, rows: list[Row]) -> None:
    found = load(spark, broker, includeHeaders="true")
    assert found.schema == StructType.fromDDL(SCHEMA)
    assert load(spark, broker).schema == StructType.fromDDL(SCHEMA[: SCHEMA.index(", headers")])
    seen = found.selectExpr("partition", "offset", "key", "value", "headers", "unix_millis(timestamp)", "timestampType")
    assert values(seen) == [
        (row.partition, row.offset, row.key, row.value, row.headers or None, row.timestamp, 0) for row in rows
    ]


def test_columns_in_any_order(spark: SparkSession, broker: BrokerProcess, rows: list[Row]) -> None:
    found = load(spark, broker, columns="offset,headers,partition")
    assert found.columns == ["offset", "headers", "partition"]
    assert values(found.select("partition", "offset")) == [(row.partition, row.offset) for row in rows]
    assert load(spark, broker, columns="value").filter("value = 'v7'").count() == 1


def test_tasks(spark: SparkSession, broker: BrokerProcess, rows: list[Row]) -> None:
    assert load(spark, broker).rdd.getNumPartitions() == 2  # nothing is read where nothing is
    for given, tasks in (({"minPartitions": "5"}, 6), ({"maxRecordsPerPartition": "30"}, 8)):
        found = load(spark, broker, **given)
        assert found.rdd.getNumPartitions() == tasks
        assert values(found.select("partition", "offset")) == [(row.partition, row.offset) for row in rows]
    assert load(spark, broker, assign='{"read": [2]}').count() == 0


def test_a_part(spark: SparkSession, broker: BrokerProcess, rows: list[Row]) -> None:
    found = load(
        spark,
        broker,
        startingOffsets='{"read": {"0": 10, "1": -2, "2": -2}}',
        endingOffsets='{"read": {"0": -1, "1": 7, "2": 0}}',
    )
    expected = [
        (row.partition, row.offset) for row in rows if (row.offset >= 10 if row.partition == 0 else row.offset < 7)
    ]
    assert values(found.select("partition", "offset")) == expected


def test_no_user_defined_function_is_in_the_plan(spark: SparkSession, broker: BrokerProcess, rows: list[Row]) -> None:
    found = load(spark, broker).where("partition = 1").groupBy("topic").count()
    assert [tuple(row) for row in found.collect()] == [("read", COUNT)]
    plan = found._jdf.queryExecution().toString()
    assert "BatchScan korvet" in plan
    assert not re.search(r"EvalPython|MapIn|InPandas|InArrow|PythonUDF|Flat[Mm]ap", plan)


def test_sql(spark: SparkSession, broker: BrokerProcess, rows: list[Row]) -> None:
    spark.sql(
        "CREATE TEMPORARY VIEW topic USING korvet OPTIONS "
        f"('kafka.bootstrap.servers' '{broker.bootstrap}', subscribe 'read', columns 'key,offset')"
    )
    try:
        assert spark.sql("SELECT count(key), max(offset) FROM topic").collect() == [(67, COUNT - 1)]
    finally:
        spark.catalog.dropTempView("topic")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"subscribe": "nope"}, "topic 'nope': There is no such topic or partition here"),
        ({"startingOffset": "earliest"}, "there is no option 'startingoffset' for batch reads; did you mean"),
        ({"startingOffsets": "latest"}, "option 'startingOffsets' is 'latest', which a batch read cannot use"),
        ({"columns": "val"}, "option 'columns' is 'val', but has to be names out of key, value"),
        (
            {"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.request.timeout.ms": "200"},
            "cannot connect to 127.0.0.1:1",
        ),
        ({"endingOffsets": '{"read": {"0": 1000, "1": 0, "2": 0}}'}, "partition 0 of topic 'read' ends at offset 100"),
    ],
)
def test_mistakes(
    spark: SparkSession, broker: BrokerProcess, rows: list[Row], given: dict[str, str], words: str
) -> None:
    with pytest.raises(PySparkException) as failure:
        load(spark, broker, **given).count()
    assert (
        f"Error: {words}" in str(failure.value)
        or f"BrokerError: {words}" in str(failure.value)
        or (f"Unreachable: {words}" in str(failure.value))
    ), failure.value


def test_a_schema_chooses_columns(
    spark: SparkSession, broker: BrokerProcess, rows: list[Row], capsys: pytest.CaptureFixture[str]
) -> None:
    """Columns that are not chosen are not in the record batches, and the plan says what is read."""
    base = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": "read"}
    found = spark.read.format("korvet").options(**base).schema("offset BIGINT, partition INT").load()
    assert values(found.select("partition", "offset")) == [(row.partition, row.offset) for row in rows]
    found.explain("formatted")
    assert "ReadSchema: struct<offset:bigint,partition:int>" in capsys.readouterr().out
    for wrong in ("value STRING", "values BINARY", "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"):
        with pytest.raises(PySparkException, match=r"the columns of a record are key binary, .*name some of these in"):
            spark.read.format("korvet").options(**base).schema(wrong).load().count()


def test_filters_over_one_frame_do_not_meet(spark: SparkSession, broker: BrokerProcess, rows: list[Row]) -> None:
    """A frame is used for several queries, one after the other and in one plan: each finds its own rows."""
    found = load(spark, broker).select("partition", "offset")
    places = [(row.partition, row.offset) for row in rows]
    ones, early = found.where("partition = 1"), found.where("partition = 0 AND offset < 10")
    early.explain()
    assert values(ones) == [place for place in places if place[0] == 1]
    assert values(found) == places
    assert values(early.union(ones)) == [place for place in places if place[0] == 1 or place[1] < 10]
