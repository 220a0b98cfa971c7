"""`format("korvet")`: the data source that Spark calls to make readers and writers.

Spark pickles this class by name, and its worker processes import it. So this module imports nothing native: where the
native module is missing, the import works, and the first use raises the error.
"""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from korvet_fast.errors import SettingError
from korvet_fast.spark import row
from korvet_fast.spark.short_errors import short_errors

if TYPE_CHECKING:
    from korvet_fast.spark.reader import BatchReader
    from korvet_fast.spark.sink import BatchSink, StreamSink
    from korvet_fast.spark.stream import StreamReader

NAME = "korvet"


class KorvetDataSource(DataSource):
    """Kafka topics. Options: `korvet_fast.spark.options`; rows: `korvet_fast.spark.row`."""

    @classmethod
    def name(cls) -> str:
        return NAME

    @short_errors()
    def schema(self) -> StructType:
        from korvet_fast.spark.options import parse_columns

        return row.schema(parse_columns(self.options))

    @short_errors()
    def reader(self, schema: StructType) -> "BatchReader":
        from korvet_fast.spark.options import Use, parse
        from korvet_fast.spark.reader import BatchReader

        reader = BatchReader(parse(self.options, Use.READ))
        reader.columns = row.choose(schema, reader.columns)
        return reader

    @short_errors()
    def streamReader(self, schema: StructType) -> "StreamReader":  # noqa: N802
        from korvet_fast.spark.options import Use, parse
        from korvet_fast.spark.stream import StreamReader

        reader = StreamReader(parse(self.options, Use.STREAM))
        reader.columns = row.choose(schema, reader.columns)
        return reader

    @short_errors()
    def writer(self, schema: StructType, overwrite: bool) -> "BatchSink":
        from korvet_fast.spark.options import Use, parse
        from korvet_fast.spark.sink import BatchSink

        if overwrite:
            raise SettingError('a topic can only be appended to: write .mode("append")')
        return BatchSink(parse(self.options, Use.WRITE), schema)

    # Spark passes both by name. `overwrite` is true in output mode complete: each whole result is appended.
    @short_errors()
    def streamWriter(self, schema: StructType, overwrite: bool) -> "StreamSink":  # noqa: N802
        from korvet_fast.spark.options import Use, parse
        from korvet_fast.spark.sink import StreamSink

        return StreamSink(parse(self.options, Use.WRITE), schema)
