"""The program of a Spark session (benchmarks/peers/spark), its source and sink made to stop, or die, at some point.

Whoever comes first to the point that the file `KORVET_INTERRUPT` names renames the file, so that the test sees it, and
goes no further. The format is called `interrupted`.
"""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from pyarrow import RecordBatch
from pyspark.sql import SparkSession
from pyspark.sql.datasource import InputPartition, WriterCommitMessage
from pyspark.sql.types import StructType

from benchmarks.peers.spark import program
from korvet_fast.spark.reader import BatchReader
from korvet_fast.spark.sink import BatchSink, StreamSink
from korvet_fast.spark.source import KorvetDataSource
from korvet_fast.spark.stream import StreamReader

Kind = TypeVar("Kind")


def reach(point: str) -> None:
    """Where the order is to stop here, wait until somebody kills this process; where it is to die, die."""
    order = Path(os.environ["KORVET_INTERRUPT"])
    try:
        told, _, where = order.read_text().partition(" ")
        if where != point:
            return
        order.rename(order.with_suffix(".met"))
    except FileNotFoundError:
        return  # no order, or another task has met it
    if told == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    threading.Event().wait()


def watch(batches: Iterator[RecordBatch], point: str) -> Iterator[RecordBatch]:
    """The same batches, with the point behind the first one."""
    for number, batch in enumerate(batches):
        yield batch
        if number == 0:
            reach(point)


class WatchedReader(BatchReader):
    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        return watch(super().read(partition), "read")


class WatchedStreamReader(StreamReader):
    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        return watch(super().read(partition), "read")


class WatchedSink(BatchSink):
    def write(self, iterator: Iterator[RecordBatch]) -> WriterCommitMessage:
        return super().write(watch(iterator, "write"))


class WatchedStreamSink(StreamSink):
    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        reach("commit")
        super().commit(messages, batchId)


class Interrupted(KorvetDataSource):
    """The product's source, its parts replaced by those that are watched."""

    @classmethod
    def name(cls) -> str:
        return "interrupted"

    def reader(self, schema: StructType) -> BatchReader:
        return _become(super().reader(schema), WatchedReader)

    def streamReader(self, schema: StructType) -> StreamReader:
        return _become(super().streamReader(schema), WatchedStreamReader)

    def writer(self, schema: StructType, overwrite: bool) -> BatchSink:
        return _become(super().writer(schema, overwrite), WatchedSink)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamSink:
        return _become(super().streamWriter(schema, overwrite), WatchedStreamSink)


def _become(made: Kind, kind: type[Kind]) -> Kind:
    made.__class__ = kind
    return made


def prepare(spark: SparkSession) -> None:
    spark.dataSource.register(Interrupted)


if __name__ == "__main__":
    program.main(prepare)
