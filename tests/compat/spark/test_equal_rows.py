"""The same question to `format("korvet")` and to Spark's own connector gives the same rows, all columns compared."""

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from benchmarks.peers.spark import program
from benchmarks.peers.spark.session import Session
from compat.spark import topics
from compat.spark.scenes import FULL, Scene

# What is asked of the topic FULL.
QUESTIONS = ("everything", "between offsets", "between times")
ROWS = 1000
MADE = (
    "cast(id as string) as key",
    "if(id % 7 = 0, null, concat('value ', id)) as value",
    "if(id % 3 = 0, null, array(named_struct('key', 'n', 'value', cast('h' as binary)))) as headers",
)


def options(scene: Scene, question: str) -> dict[str, str]:
    given = {"kafka.bootstrap.servers": scene.bootstrap, "includeHeaders": "true"}
    if question == "everything":
        return given | {"subscribePattern": FULL[:-1] + ".*"}
    if question == "between times":  # partition 3 has no records at all: its start needs the strategy
        first, last = ({str(number): topics.BEGINNING + after for number in (0, 3)} for after in (20, 30))
        times = {"startingOffsetsByTimestamp": first, "endingOffsetsByTimestamp": last}
        given |= {name: json.dumps({FULL: each}) for name, each in times.items()}
        return given | {"startingOffsetsByTimestampStrategy": "latest", "assign": json.dumps({FULL: [0, 3]})}
    firsts, lasts = {"3": -2, "4": -2}, {"3": -1, "4": -1}
    for partition in ("0", "1", "2"):
        mine = [row.offset for row in scene.rows if row.partition == int(partition)]
        firsts[partition], lasts[partition] = mine[len(mine) // 4], mine[-len(mine) // 4]
    ends = {"startingOffsets": firsts, "endingOffsets": lasts}
    return given | {"subscribe": FULL} | {name: json.dumps({FULL: offsets}) for name, offsets in ends.items()}


def ask_both(
    spark: SparkSession, connector: Session, do: str, place: Path, options: dict[str, str], **more: Any
) -> tuple[pa.Table, pa.Table]:
    """The rows that our source reads, and those that Kafka's connector reads."""
    request = {"source": {"format": "korvet", "options": options}, "sink": _files(place / "ours")}
    program.VERBS[do](spark, request | {"checkpoint": str(place / "our checkpoint")})
    theirs = {"source": {"format": "kafka", "options": options}, "sink": _files(place / "theirs")}
    connector.ask(do, **theirs, checkpoint=str(place / "their checkpoint"))
    return topics.load(place / "ours"), topics.load(place / "theirs")


def _files(place: Path) -> dict[str, str]:
    return {"format": "parquet", "path": str(place)}


@pytest.mark.parametrize("question", QUESTIONS)
def test_batch_reads(spark: SparkSession, connector: Session, scene: Scene, question: str) -> None:
    place = scene.place / question
    ours, theirs = ask_both(spark, connector, "copy", place, options(scene, question))
    assert ours.schema.equals(theirs.schema)
    assert ours.equals(theirs)
    assert 0 < ours.num_rows <= len(scene.rows)
    if question == "everything":
        assert topics.rows_of(ours) == scene.rows


def test_streams(spark: SparkSession, connector: Session, scene: Scene) -> None:
    limit = topics.span(scene.bootstrap, FULL, 5) // 3
    limited = options(scene, "everything") | {"startingOffsets": "earliest", "maxOffsetsPerTrigger": str(limit)}
    ours, theirs = ask_both(spark, connector, "stream", scene.place / "streamed", limited)
    assert ours.schema.equals(theirs.schema)
    assert ours.equals(theirs)
    assert topics.rows_of(ours) == scene.rows


def test_times_of_the_broker(spark: SparkSession, connector: Session, scene: Scene) -> None:
    """LogAppendTime: the column timestampType is 1, but for stream entries, which keep a time and not whose it is."""
    topic = f"append-{uuid4().hex}"
    topics.create(scene.bootstrap, topic, 1, message_timestamp_type="LogAppendTime")
    sent = topics.send(scene.bootstrap, topic, "zstd", ((0, None, b"%d" % number, None) for number in range(10)))
    asked = {"kafka.bootstrap.servers": scene.bootstrap, "subscribe": topic}
    ours, theirs = ask_both(spark, connector, "copy", scene.place / topic, asked)
    assert ours.equals(theirs)
    assert ours["timestampType"].to_pylist() == [0 if scene.broker == "entries" else 1] * len(sent)
    assert all(row.timestamp > topics.BEGINNING + 1000 for row in topics.rows_of(ours))


@pytest.mark.parametrize("scene", ["kafka"], indirect=True, scope="session")
@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
def test_transactions(spark: SparkSession, connector: Session, scene: Scene, level: str) -> None:
    """Where a broker has transactions: what was aborted is left out, and so are the marks of their ends."""
    topic = f"transactions-{uuid4().hex}"
    topics.create(scene.bootstrap, topic, 2)
    producer = Producer({"bootstrap.servers": scene.bootstrap, "transactional.id": topic})
    producer.init_transactions(60)
    for number in range(12):
        producer.begin_transaction()
        for count in range(20):
            producer.produce(topic, f"{number} {count}", partition=number % 2)
        producer.flush(60)
        if number % 3 == 0:
            producer.abort_transaction(60)
        else:
            producer.commit_transaction(60)
    asked = {"kafka.bootstrap.servers": scene.bootstrap, "subscribe": topic, "kafka.isolation.level": level}
    ours, theirs = ask_both(spark, connector, "copy", scene.place / topic, asked)
    assert ours.equals(theirs)
    assert ours.num_rows == 20 * (8 if level == "read_committed" else 12)


def test_writes(spark: SparkSession, connector: Session, scene: Scene) -> None:
    """Both write the same rows to a topic each: keys go to the same partitions, and all of it can be read again."""
    names = {"korvet": f"ours-{uuid4().hex}", "kafka": f"theirs-{uuid4().hex}"}
    for name, topic in names.items():
        topics.create(scene.bootstrap, topic, 4)
        sink = {"format": name, "options": {"kafka.bootstrap.servers": scene.bootstrap, "topic": topic}}
        request = {"source": {"rows": ROWS, "select": MADE}, "sink": sink}
        if name == "korvet":
            program.copy(spark, request)
        else:
            connector.ask("copy", **request)
    both = ",".join(names.values())
    asked = {"kafka.bootstrap.servers": scene.bootstrap, "includeHeaders": "true", "subscribe": both}
    connector.ask("copy", source={"format": "kafka", "options": asked}, sink=_files(scene.place / "written"))
    rows = topics.rows_of(topics.load(scene.place / "written"))
    ours, theirs = (sorted(_told(row) for row in rows if row.topic == topic) for topic in names.values())
    assert len(ours) == ROWS
    assert ours == theirs


def _told(row: topics.Row) -> tuple[Any, ...]:
    return row.partition, row.key, row.value, row.headers
