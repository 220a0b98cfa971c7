"""The Spark jobs of `korvet-fast ingest` and `korvet-fast export`: files to records, and records to files."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import PurePosixPath

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's guides call it so)
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import ArrayType, BinaryType, MapType, StringType, StructType

from korvet_fast.errors import SettingError
from korvet_fast.spark.options import Use, parse
from korvet_fast.spark.reader import BatchReader
from korvet_fast.spark.session import configure
from korvet_fast.spark.settings import BYTES_PER_BATCH, ROWS_PER_BATCH

SUFFIXES = {".parquet": "parquet", ".csv": "csv", ".tsv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}
COMPRESSED = (".gz", ".bz2", ".zst", ".lz4", ".snappy")
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

# With nulls and with all digits of a time, `from_json` returns the row as it was.
WHOLE_ROW = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


def session_settings(name: str, master: str, settings: Mapping[str, str], *, short: bool) -> dict[str, str]:
    """The settings of a command's session. `settings`: Spark's names; they override the ones set here.

    `short`: there is little to do, so the start counts: half of it is Java's second compiler and its threads for
    garbage, which only long jobs pay back.
    """
    defaults = {
        "spark.app.name": name,
        "spark.master": master,
        "spark.log.level": "FATAL",  # errors are raised, and the command prints them as a sentence
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
    }
    if master.startswith("local"):
        defaults["spark.ui.enabled"] = "false"
        if short:
            defaults["spark.driver.extraJavaOptions"] = QUICK_START
        defaults["spark.executor.heartbeatInterval"] = "1s"  # as often do the rows of a bar move
    return {**defaults, **settings}


def open_session(conf: Mapping[str, str], chosen: Collection[str]) -> SparkSession:
    """A session with the data source and `session_settings`. `chosen`: those that `configure` may not change."""
    builder = SparkSession.builder
    for key, value in conf.items():
        builder = builder.config(key, value)
    spark = configure(builder.getOrCreate())
    for key in {BYTES_PER_BATCH, ROWS_PER_BATCH} & set(chosen):
        spark.conf.set(key, conf[key])
    return spark


def guess_format(files: Sequence[str]) -> str | None:
    """parquet, csv or json, by the suffixes of the names; None if suffixes differ or are unknown."""
    found = set()
    for file in files:
        path = PurePosixPath(file)
        found.add(SUFFIXES.get(PurePosixPath(path.stem).suffix if path.suffix in COMPRESSED else path.suffix))
    return found.pop() if len(found) == 1 else None


def read_files(
    spark: SparkSession, files: Sequence[str], form: str, schema: str | None, options: Mapping[str, str]
) -> DataFrame:
    """The rows of files: CSV with a header, JSON with one object per line. `schema`: DDL; None: Spark infers it."""
    reader = spark.read.format(form)
    if form == "csv":
        reader = reader.option("header", "true").option("escape", '"')  # RFC 4180: a quote in quotes is doubled
        if schema is None:
            reader = reader.option("inferSchema", "true")
    if schema is not None:
        reader = reader.schema(schema)
    return reader.options(**options).load(list(files))


def make_records(frame: DataFrame, key: str | None, value: str, *, ordered: bool = False) -> DataFrame:
    """Columns `key` and `value` out of rows. `value`: a column, or `json` for the whole row, nulls included.

    `ordered`: the rows are of files, and records of one key are written in the order of their rows there; files in
    the order of their paths. Raises `SettingError` for a column that does not exist.
    """
    whole = F.to_json(F.struct("*"), WHOLE_ROW)
    columns = [(whole if value == "json" else _text(frame, "--value", value)).alias("value")]
    if key is not None:
        columns.insert(0, _text(frame, "--key", key).alias("key"))
        if ordered and not _is_one_split(frame):
            return _order_by_key(frame, columns)
    return frame.select(*columns)


def _order_by_key(frame: DataFrame, columns: Sequence[Column]) -> DataFrame:
    """Bring all rows of a key into one task, sorted by file and row: one task is one producer, which keeps the order.

    The price is a shuffle of all keys and values, and a sort. A row without a key goes to any task.
    """
    file = frame.metadataColumn("_metadata")
    row = F.monotonically_increasing_id().alias("row")  # of one split: counts its rows up
    place = (file["file_path"].alias("file"), file["file_block_start"].alias("block"), row)
    placed = frame.select(*columns, *place)
    task = F.when(F.col("key").isNotNull(), F.xxhash64("key")).otherwise(F.col("row"))
    return placed.repartition(task).sortWithinPartitions("file", "block", "row").select("key", "value")


def _is_one_split(frame: DataFrame) -> bool:
    """Whether one task reads all rows, in their order. It may read several small files, but in another order."""
    return len(frame.inputFiles()) == 1 and frame.rdd.getNumPartitions() == 1


def count_records(frame: DataFrame, observation: Observation) -> DataFrame:
    """The same frame; once it is written, the observation has `rows` and `bytes` (of keys and values)."""
    sizes = [F.coalesce(F.octet_length(name), F.lit(0)) for name in ("key", "value") if name in frame.columns]
    total = F.coalesce(F.sum(sum(sizes[1:], sizes[0]).cast("long")), F.lit(0))
    return frame.observe(observation, F.count(F.lit(1)).alias("rows"), total.alias("bytes"))


def write_records(records: DataFrame, bootstrap: str, topic: str, options: Mapping[str, str]) -> None:
    """Append records to a topic. Rows of one task of Spark keep their order in each partition."""
    writer = records.write.format("korvet").mode("append").options(**options)
    writer.option("kafka.bootstrap.servers", bootstrap).option("topic", topic).save()


def count_offsets(options: Mapping[str, str]) -> int:
    """The offsets of a batch read, without Spark. Raises `SettingError` and `ClientError` for what it cannot read."""
    return sum(part.value.size for part in BatchReader(parse(options, Use.READ)).partitions())


def write_files(spark: SparkSession, options: Mapping[str, str], directory: str, observation: Observation) -> None:
    """Write the records of a topic as Parquet. Raises `SettingError` if the directory exists."""
    if _exists(spark, directory):
        raise SettingError(f"{directory} exists already: name another directory, or remove it")
    records = spark.read.format("korvet").options(**options).load()
    count_records(records, observation).write.mode("errorifexists").parquet(directory)


class StreamExport:
    """A stream of a topic into Parquet: one directory `directory/batch=N` for each trigger.

    Spark runs an interrupted trigger again with the same offsets, and the new run replaces the directory: every reader
    of Parquet finds each record once. `rows` and `bytes` (of keys and values) count what this process wrote.
    """

    def __init__(self, directory: str, checkpoint: str) -> None:
        self.rows = 0
        self.bytes = 0
        self._directory = directory
        self._checkpoint = checkpoint

    def start(self, spark: SparkSession, options: Mapping[str, str], every: float | None) -> StreamingQuery:
        """Start the query. `every`: seconds between triggers; None: it ends with the records that are there now.

        Raises `SettingError` if the directory has batches and there is no checkpoint: the query would overwrite them.
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
    """A column as text, unless it is binary. Dots in its name have no meaning."""
    if name not in frame.columns:
        raise SettingError(f"{option} {name!r}: there is no such column, only {', '.join(frame.columns)}")
    column = frame["`" + name.replace("`", "``") + "`"]
    form = frame.schema[name].dataType
    if isinstance(form, BinaryType | StringType):
        return column
    return F.to_json(column, WHOLE_ROW) if isinstance(form, ArrayType | MapType | StructType) else column.cast("string")


def _exists(spark: SparkSession, path: str) -> bool:
    """Whether a file or directory exists, on any file system that Spark can read."""
    context = spark.sparkContext
    assert context._jvm is not None, "the session is open"
    place = context._jvm.org.apache.hadoop.fs.Path(path)
    return bool(place.getFileSystem(context._jsc.hadoopConfiguration()).exists(place))
