"""What Spark's interface for sources in Python cannot do. A test that fails here says that a new Spark can."""

from collections.abc import Iterable, Iterator

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, EqualTo, Filter, InputPartition
from pyspark.sql.types import StructType

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


class PushingReader(DataSourceReader):
    """Three rows, 0 to 2; with a filter on the number only the row that it asks for."""

    def __init__(self) -> None:
        self.numbers = [0, 1, 2]

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        self.numbers = [each.value for each in filters if isinstance(each, EqualTo)] or self.numbers
        return filters  # Spark filters again

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(number) for number in self.numbers]

    def read(self, partition: InputPartition) -> Iterator[tuple[int, int]]:
        yield partition.value, 7


class PushingSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "pushing"

    def schema(self) -> str:
        return "number INT, other INT"

    def reader(self, schema: StructType) -> PushingReader:
        return PushingReader()


@pytest.fixture
def pushing(spark: SparkSession) -> Iterator[SparkSession]:
    spark.dataSource.register(PushingSource)
    spark.conf.set(PUSHDOWN, "true")
    yield spark
    spark.conf.unset(PUSHDOWN)


def test_a_pushed_filter_stays_for_later_queries(pushing: SparkSession) -> None:
    """The reason why the source `korvet` takes no filters: rows would be missing, silently."""
    frame = pushing.read.format("pushing").load()
    assert frame.count() == 3
    assert [row.number for row in frame.where("number = 1").collect()] == [1]
    assert [row.number for row in frame.collect()] == [1], "Spark keeps filters apart now: push them down"


def test_chosen_columns_are_not_told_to_the_source(pushing: SparkSession) -> None:
    """The reason for the option `columns`."""
    plan = pushing.read.format("pushing").load().select("other")._jdf.queryExecution().executedPlan().toString()
    assert "number" in plan, "Spark tells what it needs now: build no more than that"
