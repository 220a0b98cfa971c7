"""Streams through a real Spark: limits, restarts from every state a checkpoint can be left in, new partitions."""

import json
import shutil
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery, StreamingQueryListener
from pyspark.sql.streaming.listener import QueryProgressEvent, QueryStartedEvent, QueryTerminatedEvent

from broker_process import BrokerProcess
from compat.spark import topics
from korvet_fast.spark import source_metrics

Put = Callable[[Iterable[int], int], None]


@pytest.fixture
def put(broker: BrokerProcess, topic: str) -> Put:
    """`put(numbers, partition)`: a record of each number, to a topic of the test's own with two partitions."""
    topics.create(broker.bootstrap, topic, 2)

    def put(numbers: Iterable[int], partition: int) -> None:
        topics.send(broker.bootstrap, topic, "lz4", ((partition, None, b"%d" % number, None) for number in numbers))

    return put


def load(spark: SparkSession, broker: BrokerProcess, **given: str) -> DataFrame:
    base = {"kafka.bootstrap.servers": broker.bootstrap, "startingOffsets": "earliest"}
    found = spark.readStream.format("korvet").options(**{**base, **given}).load()
    return found.selectExpr("cast(cast(value as string) as int) as number")


def run(found: DataFrame, place: Path) -> list[dict[str, Any]]:
    """All there is now, added to Parquet files; what Spark says about each micro-batch."""
    writer = found.writeStream.format("parquet").option("path", str(place / "out"))
    query = writer.option("checkpointLocation", str(place / "checkpoint")).trigger(availableNow=True).start()
    assert query.awaitTermination(250)
    return [json.loads(progress.json) for progress in query.recentProgress]


def numbers(spark: SparkSession, place: Path) -> list[int]:
    return sorted(row.number for row in spark.read.parquet(str(place / "out")).collect())


def test_limited_and_continued(
    spark: SparkSession, broker: BrokerProcess, topic: str, put: Put, tmp_path: Path
) -> None:
    put(range(90), 0)
    put(range(90, 100), 1)
    given = {"subscribe": topic, "maxOffsetsPerTrigger": "50", "kafka.group.id": f"g-{topic}"}
    progress = run(load(spark, broker, **given), tmp_path)
    assert [each["numInputRows"] for each in progress if each["numInputRows"]] == [50, 50]
    assert progress[0]["sources"][0]["latestOffset"] == {topic: {"0": 90, "1": 10}}
    assert numbers(spark, tmp_path) == list(range(100))
    assert lag(broker, topic) == 0
    assert sum(each["numInputRows"] for each in run(load(spark, broker, **given), tmp_path)) == 0
    put(range(100, 120), 1)
    assert lag(broker, topic) == 20
    assert sum(each["numInputRows"] for each in run(load(spark, broker, **given), tmp_path)) == 20
    assert numbers(spark, tmp_path) == list(range(120))
    assert lag(broker, topic) == 0


class Listener(StreamingQueryListener):
    """What `source_metrics` says of each progress that a listener hears of."""

    def __init__(self) -> None:
        self.metrics: list[list[dict[str, str]]] = []
        self.ended = threading.Event()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        self.metrics.append(source_metrics(event.progress))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        self.ended.set()


def test_progress_tells_offsets_lag_and_rates(
    spark: SparkSession, broker: BrokerProcess, topic: str, put: Put, tmp_path: Path
) -> None:
    put(range(60), 0)
    put(range(60, 100), 1)
    heard = Listener()
    spark.streams.addListener(heard)
    progress = run(load(spark, broker, subscribe=topic, maxOffsetsPerTrigger="50"), tmp_path)[:2]
    assert heard.ended.wait(250)
    spark.streams.removeListener(heard)
    (first,), (last,) = map(source_metrics, progress)
    assert heard.metrics[:2] == [[first], [last]], "Spark's JSON and its Python objects say the same"
    row, end = (each["sources"][0] for each in progress)
    ends = row["endOffset"][topic]
    behind = [60 - ends["0"], 40 - ends["1"]]
    assert sum(behind) == 50
    assert first == {
        "minOffsetsBehindLatest": str(min(behind)),
        "maxOffsetsBehindLatest": str(max(behind)),
        "avgOffsetsBehindLatest": "25.0",
    }
    assert last["maxOffsetsBehindLatest"] == "0"
    assert end["startOffset"][topic] == ends
    assert end["endOffset"][topic] == end["latestOffset"][topic] == {"0": 60, "1": 40}
    assert row["processedRowsPerSecond"] > 0
    assert row.get("metrics", {}) == {}, "Spark takes metrics of sources in Python now: give it ours"


def lag(broker: BrokerProcess, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": f"g-{topic}"})
    try:
        places = consumer.committed([TopicPartition(topic, 0), TopicPartition(topic, 1)], 30)
        return sum(consumer.get_watermark_offsets(place, 30)[1] - place.offset for place in places)
    finally:
        consumer.close()


@pytest.mark.parametrize("starting", ["earliest", "time"])
def test_a_first_batch_that_did_not_finish_is_the_same_again(
    spark: SparkSession, broker: BrokerProcess, topic: str, put: Put, tmp_path: Path, starting: str
) -> None:
    put(range(50), 0)
    found = load(
        spark,
        broker,
        subscribe=topic,
        **({"startingTimestamp": str(topics.BEGINNING + 10)} if starting == "time" else {}),
        startingOffsetsByTimestampStrategy="latest",
    )
    run(found, tmp_path)
    expected = list(range(10 if starting == "time" else 0, 50))
    assert numbers(spark, tmp_path) == expected
    # As a driver leaves it that dies after it wrote down what the batch is: nothing is committed, nothing is there.
    shutil.rmtree(tmp_path / "out")
    shutil.rmtree(tmp_path / "checkpoint" / "commits")
    assert [each.name for each in (tmp_path / "checkpoint" / "offsets").iterdir() if each.suffix != ".crc"] == ["0"]
    topics.delete_before(broker.bootstrap, topic, 0, 5)
    put(range(50, 60), 0)
    if starting == "earliest":
        with pytest.raises(
            StreamingQueryException, match=r"begins at offset 5, and was to be read from 0 on: 5 offsets"
        ):
            run(found, tmp_path)
        return
    run(found, tmp_path)
    assert numbers(spark, tmp_path) == [*expected, *range(50, 60)]


def test_from_the_end_and_partitions_that_come_later(
    spark: SparkSession, broker: BrokerProcess, topic: str, put: Put, tmp_path: Path
) -> None:
    put(range(10), 0)
    found = load(spark, broker, subscribe=topic, startingOffsets="latest")

    def start() -> StreamingQuery:
        writer = found.writeStream.format("parquet").option("path", str(tmp_path / "out"))
        return writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()

    query = start()
    query.processAllAvailable()  # it has found the end
    put(range(10, 20), 0)
    query.processAllAvailable()
    assert numbers(spark, tmp_path) == list(range(10, 20))
    client = AdminClient({"bootstrap.servers": broker.bootstrap})  # it has to outlive its answers
    client.create_partitions([NewPartitions(topic, 3)])[topic].result(30)
    put(range(20, 30), 2)
    query.processAllAvailable()
    query.stop()
    assert numbers(spark, tmp_path) == list(range(10, 30))
    put(range(30, 40), 1)
    query = start()
    query.processAllAvailable()
    query.stop()
    assert numbers(spark, tmp_path) == list(range(10, 40))


def test_mistakes(spark: SparkSession, broker: BrokerProcess, topic: str, put: Put, tmp_path: Path) -> None:
    with pytest.raises(PySparkException, match="option 'endingOffsets' is not for streams"):
        run(load(spark, broker, subscribe=topic, endingOffsets="latest"), tmp_path / "ending")
    with pytest.raises(PySparkException, match="topic 'nope': There is no such topic or partition here"):
        run(load(spark, broker, subscribe="nope"), tmp_path / "nope")
