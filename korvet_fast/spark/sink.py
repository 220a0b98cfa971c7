"""The sink: rows that Spark hands over as Arrow record batches become Kafka's record batches, natively, and are sent.

Delivery is at least once. A task's batches are numbered (an idempotent producer), so that a request sent again stores
nothing twice; but a task that Spark runs again is a new producer, and its rows are stored again.
"""

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from pyarrow import RecordBatch
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from korvet_fast._native import Rows
from korvet_fast.client.connection import ClientError
from korvet_fast.errors import CodecError, SettingError
from korvet_fast.spark.cluster import cluster
from korvet_fast.spark.options import Options
from korvet_fast.spark.producer import Delivery, Producer
from korvet_fast.spark.session import BYTES_PER_BATCH, UNBOUNDED

# What a record is made of; the option 'topic' stands in for the column.
COLUMNS = {
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "topic": ("string",),
    "partition": ("int",),
    "headers": ("array<struct<key:string,value:binary>>",),
}


@dataclass
class Stored(WriterCommitMessage):
    """What one task stored. `bytes`: of record batches, as they were sent."""

    records: int
    bytes: int


class Sink:
    """What a task runs; made on the driver, and sent to executors pickled.

    Rows of a partition of the data frame keep their order in each partition of a topic. `SettingError` for a data frame
    without what a record is made of; columns that are no part of a record are left out.
    """

    def __init__(self, options: Options, schema: StructType) -> None:
        check_columns(schema, options.topic)
        self.options = options

    def write(self, iterator: Iterator[RecordBatch]) -> Stored:
        """Store everything Spark has for this task. Raises `ClientError`, and `CodecError` for a row."""
        options = self.options
        context = TaskContext.get()
        if context is not None:
            warn_of_slow_settings(context)
        keyless = context.partitionId() if context is not None else 0  # tasks begin at different partitions
        with Producer(cluster(options.bootstrap, options.patience), delivery(options)) as producer:
            for batch in iterator:
                rows = Rows(batch, options.topic)
                producer.learn(rows.topics())
                batches = make_batches(rows, producer, keyless, options)
                keyless += len(batches)
                producer.send(batches)
            producer.flush()
            return Stored(producer.records, producer.bytes)


class BatchSink(Sink, DataSourceArrowWriter):
    """`df.write.format("korvet")`."""


class StreamSink(Sink, DataSourceStreamArrowWriter):
    """`df.writeStream.format("korvet")`, in every output mode: what a trigger gives is appended."""


def make_batches(
    rows: Rows, producer: Producer, keyless: int, options: Options
) -> list[tuple[str, int, int, bytearray]]:
    """One page of rows as (topic, partition, records, batch)."""
    now = time.time_ns() // 1_000_000
    try:
        return rows.batches(
            producer.sequences,
            keyless,
            options.compression,
            options.batch_bytes,
            options.request_bytes,
            producer.id,
            producer.epoch,
            now,
        )
    except CodecError as error:
        if error.code == "OVERSIZE":
            raise ClientError(f"{error.message} by the option kafka.max.request.size") from None
        raise


def delivery(options: Options) -> Delivery:
    """How hard these options say to try."""
    return Delivery(options.acks, options.idempotent, options.request_bytes, options.patience, options.delivery_timeout)


def check_columns(schema: StructType, topic: str | None) -> None:
    """Raises `SettingError` where a column of the records is missing, or of a type that no record has."""
    types = {field.name: field.dataType.simpleString() for field in schema.fields}
    if "value" not in types:
        raise SettingError(f"a record needs a column 'value', and the columns are {', '.join(types)}: name one so")
    if topic is None and "topic" not in types:
        raise SettingError("no topic is named: give the option 'topic', or a column 'topic'")
    for name, legal in COLUMNS.items():
        if name in types and types[name] not in legal and not (name == "topic" and topic):
            wanted = " or ".join(legal)
            raise SettingError(f"column {name!r} is of type {types[name]}, but has to be {wanted}: cast it")


def warn_of_slow_settings(context: TaskContext) -> None:
    """Once in a worker process: Spark's default looks at a batch's size before each row, which halves the speed."""
    if context.getLocalProperty(BYTES_PER_BATCH) != str(UNBOUNDED):
        warnings.warn(
            f"writing is about half as fast as it could be: {BYTES_PER_BATCH} is not {UNBOUNDED}; "
            "korvet_fast.spark.configure(spark) sets it",
            stacklevel=2,
        )
