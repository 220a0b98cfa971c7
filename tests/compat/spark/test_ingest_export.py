"""Files to a topic and back: what `ingest` and `export` have Spark do, and the commands themselves."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from pyarrow import parquet
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from broker_process import BrokerProcess
from compat.spark import topics
from compat.spark.records import read
from korvet_fast.cli.spark_job import explain
from korvet_fast.errors import SettingError
from korvet_fast.spark import jobs

WITHIN = 400.0  # seconds for a Spark to start and do a little
EVERYTHING = """SELECT * FROM VALUES
    (1, 1.25BD, TIMESTAMP '2024-02-29 01:02:03.456789', DATE '2024-02-29', true, 'ä "', X'00FF', ARRAY(1, NULL),
     NAMED_STRUCT('in', 1.5D), MAP('a', 1)),
    (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (-7, 0.5BD, TIMESTAMP '1969-12-31 23:59:59.999999', DATE '0001-01-01', false, '', X'', ARRAY(), NULL, MAP())
    AS t(id, cost, at, day, good, name, raw, many, nested, named)"""


def ingest(rows: DataFrame, broker: BrokerProcess, topic: str, key: str | None, value: str) -> None:
    topics.create(broker.bootstrap, topic, 1)
    jobs.write_records(jobs.make_records(rows, key, value), broker.bootstrap, topic, {})


def values(broker: BrokerProcess, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    return [(key, value) for rows in read(broker.bootstrap, topic).values() for key, value, _ in rows]


def options(broker: BrokerProcess, topic: str) -> dict[str, str]:
    start = {"subscribe": topic, "startingOffsets": "earliest"}
    return {"kafka.bootstrap.servers": broker.bootstrap, **start}


def test_a_whole_row_comes_back_as_it_was(spark: SparkSession, broker: BrokerProcess) -> None:
    rows = spark.sql(EVERYTHING).coalesce(1)
    ingest(rows, broker, "whole", "id", "json")
    records = spark.read.format("korvet").options(**options(broker, "whole")).load()
    json_options = {"timestampFormat": jobs.WHOLE_ROW["timestampFormat"]}
    back = records.orderBy("offset").select(F.from_json(F.expr("CAST(value AS STRING)"), rows.schema, json_options))
    assert [tuple(row[0]) for row in back.collect()] == [tuple(row) for row in rows.collect()]
    assert [key for key, _ in values(broker, "whole")] == [b"1", None, b"-7"]
    assert all(set(json.loads(value or b"")) == set(rows.columns) for _, value in values(broker, "whole"))


def test_a_column_is_taken_as_it_is(spark: SparkSession, broker: BrokerProcess) -> None:
    rows = spark.sql(EVERYTHING).withColumnRenamed("raw", "the.raw").coalesce(1)
    ingest(rows, broker, "raw", "name", "the.raw")
    assert values(broker, "raw") == [('ä "'.encode(), b"\x00\xff"), (None, None), (b"", b"")]
    ingest(rows, broker, "many", "cost", "many")
    assert values(broker, "many") == [(b"1.25", b"[1,null]"), (None, None), (b"0.50", b"[]")]
    with pytest.raises(SettingError, match=r"--key 'idd': there is no such column, only id, cost"):
        jobs.make_records(rows, "idd", "json")


def test_files(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id,name\n1,"say ""hi"""\n2,NA\n')
    (tmp_path / "a.json").write_text('{"id": 1, "name": "x"}\n{"id": 2}\n')
    spark.sql("SELECT 1 AS id, 'p' AS name").write.parquet(str(tmp_path / "a.parquet"))

    def rows(form: str, schema: str | None = None, **given: str) -> list[tuple[object, ...]]:
        return [
            tuple(row) for row in jobs.read_files(spark, [str(tmp_path / f"a.{form}")], form, schema, given).collect()
        ]

    assert rows("csv", nullValue="NA") == [(1, 'say "hi"'), (2, None)]
    assert rows("csv", "id STRING, name STRING") == [("1", 'say "hi"'), ("2", "NA")]
    assert rows("json") == [(1, "x"), (2, None)]
    assert rows("parquet") == [(1, "p")]


def test_export_all_at_once(spark: SparkSession, broker: BrokerProcess, tmp_path: Path) -> None:
    ingest(spark.range(1000), broker, "once", "id", "json")
    counted = Observation()
    place = str(tmp_path / "out")
    jobs.write_files(spark, options(broker, "once"), place, counted)
    table = parquet.read_table(place)
    assert sorted(table["offset"].to_pylist()) == list(range(1000))
    size = sum(len(text) for name in ("key", "value") for text in table[name].to_pylist())
    assert counted.get == {"rows": 1000, "bytes": size}
    with pytest.raises(SettingError, match="out exists already: name another directory"):
        jobs.write_files(spark, options(broker, "once"), place, Observation())


def test_a_batch_that_was_broken_off_is_there_once(spark: SparkSession, broker: BrokerProcess, tmp_path: Path) -> None:
    place, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    ingest(spark.range(1000), broker, "again", None, "json")

    def follow() -> int:
        follower = jobs.StreamExport(str(place), str(checkpoint))
        given = {**options(broker, "again"), "maxOffsetsPerTrigger": "300"}
        assert follower.start(spark, given, None).awaitTermination(250)
        return follower.rows

    assert follow() == 1000
    for note in ("3", ".3.crc"):  # as if it had died between the files and the note that they are there
        (checkpoint / "commits" / note).unlink()
    jobs.write_records(jobs.make_records(spark.range(50), None, "json"), broker.bootstrap, "again", {})
    assert follow() == 100 + 50
    assert sorted(parquet.read_table(place)["offset"].to_pylist()) == list(range(1050))
    assert sorted(row[0] for row in spark.read.parquet(str(place)).select("offset").collect()) == list(range(1050))
    with pytest.raises(SettingError, match="has batches of a stream whose checkpoint is not at"):
        jobs.StreamExport(str(place), str(tmp_path / "another")).start(spark, options(broker, "again"), None)
    topics.create(broker.bootstrap, "another", 1)
    with pytest.raises(StreamingQueryException) as failure:
        query = jobs.StreamExport(str(place), str(checkpoint)).start(spark, options(broker, "another"), None)
        query.awaitTermination(250)
    assert explain(failure.value).startswith("partition 0 of topic 'again' is gone")


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "korvet_fast", *arguments]


def run(directory: Path, *arguments: str) -> str:
    done = subprocess.run(command(*arguments), cwd=directory, capture_output=True, text=True, timeout=WITHIN)
    assert done.returncode == 0, done.stderr
    return done.stderr


def await_that(true: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WITHIN
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def is_java(process: psutil.Process) -> bool:
    try:
        return "java" in process.name()
    except psutil.NoSuchProcess:  # Spark's shell scripts start programs that end at once
        return False


def is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.timeout(1200)  # three times Spark is started
def test_the_commands(broker: BrokerProcess, tmp_path: Path) -> None:
    """Ingest; follow and be killed; there is more; follow again and be asked to end."""
    topic = tmp_path.name  # another one where the test is run again
    topics.create(broker.bootstrap, topic, 3)
    lines = [f"{'ABC'[number % 3]},{number}\n" for number in range(2000)]
    (tmp_path / "a.csv").write_text("carrier,delay\n" + "".join(lines))
    where = ("--bootstrap", broker.bootstrap, "--master", "local[2]", "--conf", "spark.driver.memory=512m")
    said = run(tmp_path, "ingest", "a.csv", "--topic", topic, "--key", "carrier", *where)
    assert f"2,000 rows (0.1 MB) to topic {topic} in " in said
    follow = command("export", topic, "--to", "parquet", "out", "--follow", "--every", "0.2", "--most", "700", *where)
    place = tmp_path / "out"

    with subprocess.Popen(follow, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as first:
        await_that((place / "_checkpoint" / "offsets" / "1").exists, "no second batch")
        java = psutil.Process(first.pid).children(recursive=True)
        first.kill()
    psutil.wait_procs(java, WITHIN)
    more = ((number % 3, None, b'{"delay":%d}' % number, None) for number in range(2000, 3000))
    topics.send(broker.bootstrap, topic, "none", more)

    def rows() -> list[int]:
        done = {int(note.name) for note in (place / "_checkpoint" / "commits").glob("[0-9]*")}
        found = [parquet.read_table(place / f"batch={number}", columns=["value"]) for number in done]
        return sorted(json.loads(value)["delay"] for table in found for value in table["value"].to_pylist())

    with subprocess.Popen(follow, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as second:
        await_that(lambda: len(rows()) >= 3000, "not everything was written")
        second.send_signal(signal.SIGTERM)
        _, told = second.communicate(timeout=WITHIN)
    assert second.returncode == 0, told
    assert " rows (" in told and "to out in " in told
    assert rows() == list(range(3000))
    assert parquet.read_table(place).num_rows == 3000  # nor is there anything else
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "out"]  # Spark left nothing else here


@pytest.mark.timeout(900)  # Spark is started twice
def test_a_mistake_leaves_nothing_behind(broker: BrokerProcess, tmp_path: Path) -> None:
    """One line of ours at once, one line about the mistake; no topic, and no JVM after Ctrl-C while it starts."""
    (tmp_path / "a.csv").write_text("carrier,delay\nA,1\n")
    where = ("--bootstrap", broker.bootstrap, "--master", "local[2]", "--conf", "spark.driver.memory=512m")
    wrong = command("ingest", "a.csv", "--topic", "left-behind", "--key", "nocol", *where)
    done = subprocess.run(wrong, cwd=tmp_path, capture_output=True, text=True, timeout=WITHIN)
    assert done.returncode == 1
    first, last = done.stderr.splitlines()
    assert first == "Spark starts (local[2]), which takes some seconds"
    assert last == "Error: --key 'nocol': there is no such column, only carrier, delay."
    listed = subprocess.run(command("topic", "list", *where[:2]), capture_output=True, text=True, timeout=WITHIN)
    assert "left-behind" not in listed.stdout
    right = command("ingest", "a.csv", "--topic", "left-behind", *where)
    with subprocess.Popen(right, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as broken_off:
        own = psutil.Process(broken_off.pid)
        await_that(lambda: any(map(is_java, own.children(recursive=True))), "no JVM")
        family = own.children(recursive=True)
        broken_off.send_signal(signal.SIGINT)
        _, told = broken_off.communicate(timeout=WITHIN)
    assert broken_off.returncode == 1, told
    assert told.splitlines() == [first, "Aborted!"]
    assert not list(filter(is_alive, family))
