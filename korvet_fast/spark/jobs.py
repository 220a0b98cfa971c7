"""What `korvet-fast ingest` and `korvet-fast export` have Spark do: files to records, and records to files."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's guides call it so)
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import ArrayType, BinaryType, MapType, StringType, StructType

from korvet_fast.errors import SettingError
from korvet_fast.spark.session import BYTES_PER_BATCH, ROWS_PER_BATCH, configure

SUFFIXES = {".parquet": "parquet", ".csv": "csv", ".tsv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}
COMPRESSED = (".gz", ".bz2", ".zst", ".lz4", ".snappy")

# Every field is there, and a time has all its digits, so that `from_json` gives the row again.
WHOLE_ROW = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


def open_session(name: str, master: str, settings: Mapping[str, str]) -> SparkSession:
    """A session with the data source; `settings` are Spark's and count more than those set here. Times are in UTC."""
    defaults = {
        "spark.log.level": "FATAL",  # errors are raised, and told in a sentence
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
    }
    if master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else the first python3 of the path
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        defaults["spark.ui.enabled"] = "false"
    builder = SparkSession.builder.appName(name).master(master)
    for key, value in {**defaults, **settings}.items():
        builder = builder.config(key, value)
    spark = configure(builder.getOrCreate())
    for key in {BYTES_PER_BATCH, ROWS_PER_BATCH} & settings.keys():
        spark.conf.set(key, settings[key])
    return spark


def guess_format(files: Sequence[str]) -> str | None:
    """parquet, csv or json, by the names' ends; None if they do not tell."""
    found = set()
    for file in files:
        path = PurePosixPath(file)
        found.add(SUFFIXES.get(PurePosixPath(path.stem).suffix if path.suffix in COMPRESSED else path.suffix))
    return found.pop() if len(found) == 1 else None


def read_files(
    spark: SparkSession, files: Sequence[str], form: str, schema: str | None, options: Mapping[str, str]
) -> DataFrame:
    """The rows of files: CSV with a header, JSON one object a line. `schema` as DDL; else it is found in the files."""
    reader = spark.read.format(form)
    if form == "csv":
        reader = reader.option("header", "true").option("escape", '"')  # a quote in quotes is doubled, as in RFC 4180
        if schema is None:
            reader = reader.option("inferSchema", "true")
    if schema is not None:
        reader = reader.schema(schema)
    return reader.options(**options).load(list(files))


def make_records(frame: DataFrame, key: str | None, value: str) -> DataFrame:
    """Columns `key` and `value` out of rows. `value`: a column, or `json` for the whole row, nulls included.

    Raises `SettingError` for a column that there is not.
    """
    whole = F.to_json(F.struct("*"), WHOLE_ROW)
    columns = [(whole if value == "json" else _text(frame, "--value", value)).alias("value")]
    if key is not None:
        columns.insert(0, _text(frame, "--key", key).alias("key"))
    return frame.select(*columns)


def count_records(frame: DataFrame, observation: Observation) -> DataFrame:
    """The same frame; when it was written the observation has `rows` and `bytes` (of keys and values)."""
    sizes = [F.coalesce(F.octet_length(name), F.lit(0)) for name in ("key", "value") if name in frame.columns]
    total = F.coalesce(F.sum(sum(sizes[1:], sizes[0]).cast("long")), F.lit(0))
    return frame.observe(observation, F.count(F.lit(1)).alias("rows"), total.alias("bytes"))


def write_records(records: DataFrame, bootstrap: str, topic: str, options: Mapping[str, str]) -> None:
    """Append to a topic."""
    writer = records.write.format("korvet").mode("append").options(**options)
    writer.option("kafka.bootstrap.servers", bootstrap).option("topic", topic).save()


def write_files(spark: SparkSession, options: Mapping[str, str], directory: str, observation: Observation) -> None:
    """The records of a topic, between two offsets, as Parquet in a directory that there is not yet (`SettingError`)."""
    if _exists(spark, directory):
        raise SettingError(f"{directory} exists already: name another directory, or remove it")
    records = spark.read.format("korvet").options(**options).load()
    count_records(records, observation).write.mode("errorifexists").parquet(directory)


class Follower:
    """A stream of a topic into Parquet: `directory/batch=N`, one for each trigger.

    A trigger that was broken off is run again with the same offsets and replaces its directory, so that in the end each
    record is there once, for every reader of Parquet. `rows` and `bytes` (of keys and values) count this run's.
    """

    def __init__(self, directory: str, checkpoint: str) -> None:
        self.rows = 0
        self.bytes = 0
        self._directory = directory
        self._checkpoint = checkpoint

    def start(self, spark: SparkSession, options: Mapping[str, str], every: float | None) -> StreamingQuery:
        """`every`: seconds between triggers; None: up to what is there now, and then it ends.

        Raises `SettingError` for a directory that has batches and no checkpoint: they would be overwritten.
        """
        if _exists(spark, f"{self._directory}/batch=0") and not _exists(spark, f"{self._checkpoint}/metadata"):
            raise SettingError(
                f"{self._directory} has batches of a stream whose checkpoint is not at {self._checkpoint}: give "
                "that with --checkpoint, or write to another directory"
            )
        stream = spark.readStream.format("korvet").options(**options).load()
        writer = stream.writeStream.foreachBatch(self._write).option("checkpointLocation", self._checkpoint)
        paced = (
            writer.trigger(availableNow=True) if every is None else writer.trigger(processingTime=f"{every} seconds")
        )
        return paced.start()

    def _write(self, frame: DataFrame, batch: int) -> None:
        counted = Observation()
        count_records(frame, counted).write.mode("overwrite").parquet(f"{self._directory}/batch={batch}")
        self.rows += counted.get["rows"]
        self.bytes += counted.get["bytes"]


def _text(frame: DataFrame, option: str, name: str) -> Column:
    """A column as text, if it is not binary. Its name is taken as it is, dots and all."""
    if name not in frame.columns:
        raise SettingError(f"{option} {name!r}: there is no such column, only {', '.join(frame.columns)}")
    column = frame["`" + name.replace("`", "``") + "`"]
    form = frame.schema[name].dataType
    if isinstance(form, BinaryType | StringType):
        return column
    return F.to_json(column, WHOLE_ROW) if isinstance(form, ArrayType | MapType | StructType) else column.cast("string")


def _exists(spark: SparkSession, path: str) -> bool:
    """Whether there is such a file or directory, wherever Spark can look."""
    context = spark.sparkContext
    assert context._jvm is not None, "the session is open"
    place = context._jvm.org.apache.hadoop.fs.Path(path)
    return bool(place.getFileSystem(context._jsc.hadoopConfiguration()).exists(place))
