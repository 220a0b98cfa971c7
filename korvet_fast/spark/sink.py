"""The sink: turns the Arrow record batches that Spark passes into Kafka's record batches, natively, and sends them.

Delivery is at least once. Each task is an idempotent producer: a request that is sent again stores nothing twice. But a
task that Spark runs again is a new producer, and stores its rows again.
"""

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from pyarrow import RecordBatch
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from korvet_fast._native import ArrowRecords
from korvet_fast.client.protocol.errors import ClientError
from korvet_fast.errors import CodecError, SettingError
from korvet_fast.spark.cluster import cluster
from korvet_fast.spark.options import Options
from korvet_fast.spark.producer import Delivery, Producer
from korvet_fast.spark.settings import BYTES_PER_BATCH, UNBOUNDED
from korvet_fast.spark.short_errors import short_errors

# The columns of a record, with their types; the option 'topic' replaces the column.
COLUMNS = {
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "topic": ("string",),
    "partition": ("int",),
    "headers": ("array<struct<key:string,value:binary>>",),
}


@dataclass
class CommitMessage(WriterCommitMessage):
    """The amount that one task stored. `bytes`: of the record batches as they were sent."""

    records: int
    bytes: int


class Sink:
    """Runs in each task; made on the driver, and pickled to the executors.

    Rows of one partition of the data frame keep their order in each partition of a topic. Raises `SettingError` for a
    data frame without the columns of a record; other columns are ignored.
    """

    def __init__(self, options: Options, schema: StructType) -> None:
        check_columns(schema, options.topic)
        self.options = options

    @short_errors()
    def write(self, iterator: Iterator[RecordBatch]) -> CommitMessage:
        """Store all rows of this task. Raises `ClientError`, and `CodecError` for an illegal row."""
        options = self.options
        context = TaskContext.get()
        if context is not None:
            warn_of_slow_settings(context)
        keyless = context.partitionId() if context is not None else 0  # tasks begin at different partitions
        with Producer(cluster(options.bootstrap, options.patience, options.security), delivery(options)) as producer:
            for batch in iterator:
                records = ArrowRecords(batch, options.topic)
                producer.fetch_metadata(records.topics())
                batches = make_batches(records, producer, keyless, options)
                keyless += len(batches)
                producer.send(batches)
            producer.flush()
            return CommitMessage(producer.records, producer.bytes)


class BatchSink(Sink, DataSourceArrowWriter):
    """`df.write.format("korvet")`."""


class StreamSink(Sink, DataSourceStreamArrowWriter):
    """`df.writeStream.format("korvet")`. In every output mode the rows of a trigger are appended."""


def make_batches(
    records: ArrowRecords, producer: Producer, keyless: int, options: Options
) -> list[tuple[str, int, int, bytearray]]:
    """The rows of one Arrow batch as (topic, partition, number of records, record batch)."""
    now = time.time_ns() // 1_000_000
    try:
        return records.batches(
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
    """The delivery that the options ask for."""
    return Delivery(options.acks, options.idempotent, options.request_bytes, options.patience, options.delivery_timeout)


def check_columns(schema: StructType, topic: str | None) -> None:
    """Raises `SettingError` if a column of a record is missing or has a type that no record can have."""
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
    """Warn once in a worker process: by default Spark looks at the batch size before each row, at half the speed."""
    if context.getLocalProperty(BYTES_PER_BATCH) != str(UNBOUNDED):
        warnings.warn(
            f"writing is about half as fast as it could be: {BYTES_PER_BATCH} is not {UNBOUNDED}; "
            "korvet_fast.spark.configure(spark) sets it",
            stacklevel=2,
        )
