"""`format("korvet")`: what Spark asks of a data source, passed on to the pieces that do it.

Spark pickles this class by its name and imports it in its worker processes, so that nothing native is imported here:
where the native module is missing, the import works, and the first use says so.
"""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from korvet_fast.errors import SettingError
from korvet_fast.spark import row

if TYPE_CHECKING:
    from korvet_fast.spark.reader import Reader
    from korvet_fast.spark.sink import BatchSink, StreamSink
    from korvet_fast.spark.stream import StreamReader

NAME = "korvet"


class KorvetDataSource(DataSource):
    """Kafka topics. Options: `korvet_fast.spark.options`; rows: `korvet_fast.spark.row`."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        from korvet_fast.spark.options import parse_columns

        return row.schema(parse_columns(self.options))

    def reader(self, schema: StructType) -> "Reader":
        from korvet_fast.spark.options import Use, parse
        from korvet_fast.spark.reader import Reader

        reader = Reader(parse(self.options, Use.READ))
        row.check_schema(schema, reader.columns)
        return reader

    def streamReader(self, schema: StructType) -> "StreamReader":  # noqa: N802
        from korvet_fast.spark.options import Use, parse
        from korvet_fast.spark.stream import StreamReader

        reader = StreamReader(parse(self.options, Use.STREAM))
        row.check_schema(schema, reader.columns)
        return reader

    def writer(self, schema: StructType, overwrite: bool) -> "BatchSink":
        from korvet_fast.spark.options import Use, parse
        from korvet_fast.spark.sink import BatchSink

        if overwrite:
            raise SettingError('a topic can only be appended to: write .mode("append")')
        return BatchSink(parse(self.options, Use.WRITE), schema)

    # Spark gives both by name. `overwrite` is true in output mode complete, where each result is appended as a whole.
    def streamWriter(self, schema: StructType, overwrite: bool) -> "StreamSink":  # noqa: N802
        from korvet_fast.spark.options import Use, parse
        from korvet_fast.spark.sink import StreamSink

        return StreamSink(parse(self.options, Use.WRITE), schema)
