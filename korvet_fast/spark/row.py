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


def choose(given: StructType, names: Sequence[str]) -> tuple[str, ...]:
    """The columns of a read with this schema, in its order: all of `names`, or fewer if a job gave a schema of fewer.

    Raises `SettingError` for columns that the records do not have, or not so.
    """
    if any(field.name not in names or field.dataType != TYPES[field.name] for field in given):
        legal = ", ".join(f"{name} {TYPES[name].simpleString()}" for name in names)
        raise SettingError(f"the columns of a record are {legal}: name some of these in .schema(...), or leave it out")
    return tuple(field.name for field in given)
