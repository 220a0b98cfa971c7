"""The row of a record, as in Spark's own Kafka source: its columns, with their types in Spark.

Spark compares the Arrow schema of a batch with its own, types and nullability: `_native.to_arrow` makes the same.
"""

from collections.abc import Sequence

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from korvet_fast.errors import SettingError

TYPES = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())])),
}
HEADERS = "headers"


def columns(chosen: Sequence[str] | None, headers: bool) -> tuple[str, ...]:
    """The columns of a read, in order: those chosen, or all. `headers`: whether all includes the headers."""
    if chosen is not None:
        return tuple(chosen)
    return tuple(name for name in TYPES if headers or name != HEADERS)


def schema(names: Sequence[str]) -> StructType:
    """The columns as a schema of Spark."""
    return StructType([StructField(name, TYPES[name]) for name in names])


def check_schema(given: StructType, names: Sequence[str]) -> None:
    """Raises `SettingError` if a job gave the read another schema: the columns of a record are fixed."""
    if [(field.name, field.dataType) for field in given] != [(name, TYPES[name]) for name in names]:
        raise SettingError(
            f"the records of a topic have the columns {', '.join(names)}, each of its own type: leave .schema(...) "
            f"out, and choose among them with the option 'columns'"
        )
