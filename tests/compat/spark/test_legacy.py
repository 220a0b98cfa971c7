"""A topic of Kafka 0.7's format in a real Spark: what 0.7 wrote, and what 0.7 reads of what Spark wrote."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from compat.legacy.two_listeners import STORES, VALUES, TwoListeners, open_two_listeners, write_old
from compat.spark import topics
from korvet_reference.legacy_client import read_messages

LOG_APPEND_TIME = 1
TWICE = 2 * (3 * len(VALUES))  # messages of two partitions


@pytest.fixture(scope="module", params=STORES)
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoListeners]:
    with open_two_listeners(request.param, tmp_path_factory.mktemp("broker"), "num.partitions=2") as opened:
        yield opened


def load(spark: SparkSession, broker: TwoListeners, topic: str, **given: str) -> DataFrame:
    base = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic}
    return spark.read.format("korvet").options(**{**base, **given}).load()


def test_spark_reads_what_0_7_wrote_at_its_offsets(spark: SparkSession, broker: TwoListeners) -> None:
    wanted = [(index, *row) for index in range(2) for row in write_old(broker, "wrote-07", index)]
    found = load(spark, broker, "wrote-07")
    rows = found.select("partition", "offset", "value", "key", "timestampType").collect()
    assert len(rows) == TWICE
    assert {(row.key, row.timestampType) for row in rows} == {(None, LOG_APPEND_TIME)}
    assert sorted((row.partition, row.offset, bytes(row.value)) for row in rows) == wanted
    split = load(spark, broker, "wrote-07", minPartitions="7").select("partition", "offset", "value").collect()
    assert sorted((row.partition, row.offset, bytes(row.value)) for row in split) == wanted


def test_spark_begins_and_ends_at_positions_of_0_7(spark: SparkSession, broker: TwoListeners) -> None:
    rows = write_old(broker, "part-07")
    first, last = rows[7][0], rows[31][0]
    found = load(
        spark,
        broker,
        "part-07",
        startingOffsets=f'{{"part-07": {{"0": {first}, "1": -2}}}}',
        endingOffsets=f'{{"part-07": {{"0": {last}, "1": -1}}}}',
    )
    seen = sorted((row.offset, bytes(row.value)) for row in found.select("offset", "value").collect())
    assert seen == rows[7:31]


def test_a_stream_goes_on_with_what_0_7_writes(spark: SparkSession, broker: TwoListeners, tmp_path: Path) -> None:
    wanted = write_old(broker, "stream-07")
    for _ in range(2):
        base = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": "stream-07", "startingOffsets": "earliest"}
        stream = spark.readStream.format("korvet").options(**base).load().select("partition", "offset", "value")
        query = (
            stream.writeStream.format("parquet")
            .option("path", str(tmp_path / "out"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(300)
        table = topics.load(tmp_path / "out")
        assert list(zip(*(table[name].to_pylist() for name in ("offset", "value")), strict=True)) == wanted
        wanted += write_old(broker, "stream-07")


def test_0_7_reads_what_spark_wrote(spark: SparkSession, broker: TwoListeners) -> None:
    topics.create(broker.bootstrap, "spark-wrote", 1, storage_layout="legacy")
    frame = spark.range(0, 500, 1, 2).selectExpr("concat('value ', id) AS value")
    options = {"kafka.bootstrap.servers": broker.bootstrap, "topic": "spark-wrote", "kafka.compression.type": "zstd"}
    frame.write.format("korvet").mode("append").options(**options).save()
    with broker.old() as client:
        messages = read_messages(client.fetch("spark-wrote", 0, 0), 0)
        assert client.offsets("spark-wrote", 0) == [messages[-1].following]
    assert sorted(message.payload for message in messages) == sorted(b"value %d" % number for number in range(500))
    offsets = [row.offset for row in load(spark, broker, "spark-wrote").select("offset").collect()]
    assert sorted(offsets) == [0, *(message.following for message in messages[:-1])]


def test_keys_cannot_be_written(spark: SparkSession, broker: TwoListeners) -> None:
    topics.create(broker.bootstrap, "no-keys", 1, storage_layout="legacy")
    frame = spark.sql("SELECT 'k' AS key, 'v' AS value")
    options = {"kafka.bootstrap.servers": broker.bootstrap, "topic": "no-keys"}
    with pytest.raises(PySparkException, match="messages are values only"):
        frame.write.format("korvet").mode("append").options(**options).save()
