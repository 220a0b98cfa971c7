"""Three rows shown by a new session of Spark, where they are said to come from: `start.py` times this whole program.

Run with `bare` (a list in this program), `source` (a data source in Python that does nothing else), or a broker's
address, where the topic `three` has them. It also prints how many seconds of the processors it took.
"""

import sys
from collections.abc import Iterator

import psutil
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

ROWS = {"key": ["a", "b", "c"], "value": ["1", "2", "3"]}
SCHEMA = "key STRING, value STRING"


class ThreeRows(DataSource, DataSourceReader):
    """The least that a data source in Python can be."""

    @classmethod
    def name(cls) -> str:
        return "three"

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: object) -> DataSourceReader:
        return self

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict(ROWS)


def load(spark: SparkSession, where: str) -> DataFrame:
    if where == "bare":
        return spark.createDataFrame(list(zip(*ROWS.values(), strict=True)), SCHEMA)
    if where == "source":
        spark.dataSource.register(ThreeRows)
        return spark.read.format("three").load()
    from korvet_fast.spark import configure

    topic = {"kafka.bootstrap.servers": where, "subscribe": "three"}
    rows = configure(spark).read.format("korvet").options(**topic).load()
    return rows.selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)")


def processor_seconds() -> float:
    """Of this program, its JVM and its Python workers, which live until the session stops."""
    own = psutil.Process()
    times = [process.cpu_times() for process in (own, *own.children(recursive=True))]
    return sum(each.user + each.system + each.children_user + each.children_system for each in times)


def main() -> None:
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    load(spark, sys.argv[1]).show()
    print(processor_seconds())
    spark.stop()


if __name__ == "__main__":
    main()
