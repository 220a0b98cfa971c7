"""A batch read: between offsets that are known before the first task starts."""

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from korvet_fast.client.protocol.errors import ClientError
from korvet_fast.client.protocol.metadata import TopicPartition
from korvet_fast.errors import SettingError
from korvet_fast.spark import plan, row
from korvet_fast.spark.cluster import BlockingCluster, cluster
from korvet_fast.spark.offsets import OffsetLimit, Offsets, list_offsets, resolve
from korvet_fast.spark.options import Options
from korvet_fast.spark.plan import Range
from korvet_fast.spark.short_errors import short_errors
from korvet_fast.spark.subscription import count, find_partitions
from korvet_fast.types import EARLIEST, LATEST

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger(__name__)


class BatchReader(DataSourceReader):
    """Reads the records between two offsets of each partition. Made in the driver, and pickled to the tasks."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.columns = row.columns(options.columns, options.include_headers)

    @short_errors()
    def partitions(self) -> list[InputPartition]:
        """The range of each task. Raises `SettingError` and `ClientError`."""
        options = self.options
        brokers = cluster(options.bootstrap, options.patience, options.security)
        found = find_partitions(brokers, options)
        start, end = options.start(EARLIEST), options.end()
        starts = resolve(brokers, start, found, options.offset_query, strict=options.strategy == "error")
        ends = resolve(brokers, end, found, options.offset_query, strict=False)
        ranges = [Range(*each, starts[each], ends[each]) for each in found]
        return make_tasks(clip_to_logs(brokers, [_order(each, start, end) for each in ranges], options), options)

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        """The records of one task, as record batches with the columns asked for."""
        from korvet_fast.spark.fetcher import read

        # Spark runs one task, with None, where there is nothing to read.
        return read(partition.value, self.columns, self.options) if partition.value is not None else iter(())


def _order(each: Range, start: OffsetLimit, end: OffsetLimit) -> Range:
    """The range; an empty one if the end is before the start, which times and a rising first offset can cause.

    Raises `SettingError` if the options name two offsets in this order.
    """
    named = not start.timed and start.each.get(each.topic_partition, EARLIEST) >= 0
    if each.start <= each.end or (named and end.everywhere == LATEST):
        return each
    if named and not end.timed:
        raise SettingError(
            f"option {start.option!r} has {each.start} for {each}, and {end.option!r} has {each.end}, before it: "
            f"give an end that is not"
        )
    return each._replace(end=each.start)


def make_tasks(ranges: Sequence[Range], options: Options) -> list[InputPartition]:
    """The tasks that read the ranges, as the options divide them."""
    return [InputPartition(part) for part in plan.split(ranges, options.min_partitions, options.max_records)]


def clip_to_logs(brokers: BlockingCluster, wanted: Sequence[Range], options: Options) -> list[Range]:
    """The parts of the ranges that can be read. Raises `ClientError` for a loss, unless `failOnDataLoss` is false."""
    filled = [each for each in wanted if each.start != each.end]
    earliest, latest = bounds(brokers, [each.topic_partition for each in filled], options)
    left, losses = plan.clip([_skip_nothing(brokers, each, earliest, options) for each in filled], earliest, latest)
    report_losses(losses, options)
    return left


def bounds(brokers: BlockingCluster, partitions: Sequence[TopicPartition], options: Options) -> tuple[Offsets, Offsets]:
    """The first offset of each partition, and the one after its last; partitions that are gone are left out."""
    counts = count(brokers, sorted({topic for topic, _ in partitions}))
    there = [each for each in partitions if each[1] < counts.get(each[0], 0)]
    earliest = list_offsets(brokers, dict.fromkeys(there, EARLIEST), options.offset_query)
    return earliest, list_offsets(brokers, dict.fromkeys(there, LATEST), options.offset_query)


def _skip_nothing(brokers: BlockingCluster, each: Range, earliest: Offsets, options: Options) -> Range:
    """Begin where the log begins, if the broker says that no record was removed below.

    Offsets that follow the clock need it: an empty log ends at 0, and its first record has a far larger offset.
    """
    from korvet_fast.spark.fetcher import can_read

    first = earliest.get(each.topic_partition, each.start)
    if each.start < first and can_read(brokers, each, options):
        return each._replace(start=min(first, each.end))
    return each


def report_losses(losses: Sequence[str], options: Options) -> None:
    """Raise `ClientError` about the first loss, or warn of all of them if `failOnDataLoss` is false."""
    if losses and options.fail_on_data_loss:
        raise ClientError(losses[0])
    for loss in losses:
        logger.warning("data loss: %s", loss)
