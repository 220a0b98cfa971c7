"""A batch read: from offsets to offsets, both known before the first task starts."""

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from korvet_fast.client.connection import ClientError
from korvet_fast.errors import SettingError
from korvet_fast.spark import plan, row
from korvet_fast.spark.cluster import Cluster, Place, cluster
from korvet_fast.spark.offsets import EARLIEST, LATEST, Bound, Offsets, ask, resolve
from korvet_fast.spark.options import Options
from korvet_fast.spark.plan import Range
from korvet_fast.spark.subscription import count, find_partitions

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger(__name__)


class Reader(DataSourceReader):
    """What is there between two offsets of each partition. Made in the driver, pickled to the tasks."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.columns = row.columns(options.columns, options.include_headers)

    def partitions(self) -> list[InputPartition]:
        """One for each task. Raises `SettingError` and `ClientError`."""
        options = self.options
        brokers = cluster(options.bootstrap, options.patience)
        places = find_partitions(brokers, options)
        start, end = options.start(EARLIEST), options.end()
        starts = resolve(brokers, start, places, options.question, strict=options.strategy == "error")
        ends = resolve(brokers, end, places, options.question, strict=False)
        ranges = [Range(*place, starts[place], ends[place]) for place in places]
        return divide(check(brokers, [_order(each, start, end) for each in ranges], options), options)

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        """The records of one task, as record batches with the columns asked for."""
        from korvet_fast.spark.pages import read

        # Where there is nothing to read, Spark still has one task, about None.
        return read(partition.value, self.columns, self.options) if partition.value is not None else iter(())


def _order(each: Range, start: Bound, end: Bound) -> Range:
    """Nothing, if the end is before the start, as times can have it and a first offset that rose meanwhile.

    Raises `SettingError` if somebody wrote it so.
    """
    named = not start.timed and start.each.get(each.place, EARLIEST) >= 0
    if each.start <= each.end or (named and end.everywhere == LATEST):
        return each
    if named and not end.timed:
        raise SettingError(
            f"option {start.option!r} has {each.start} for {each}, and {end.option!r} has {each.end}, before it: "
            f"give an end that is not"
        )
    return each._replace(end=each.start)


def divide(ranges: Sequence[Range], options: Options) -> list[InputPartition]:
    """A task for each part of the ranges."""
    return [InputPartition(part) for part in plan.split(ranges, options.min_partitions, options.max_records)]


def check(brokers: Cluster, wanted: Sequence[Range], options: Options) -> list[Range]:
    """What is left of the ranges; raises `ClientError` where something is lost, unless `failOnDataLoss` is false."""
    filled = [each for each in wanted if each.start != each.end]
    earliest, latest = bounds(brokers, [each.place for each in filled], options)
    left, losses = plan.clip([_skip_nothing(brokers, each, earliest, options) for each in filled], earliest, latest)
    report(losses, options)
    return left


def bounds(brokers: Cluster, places: Sequence[Place], options: Options) -> tuple[Offsets, Offsets]:
    """The first offset of each partition, and the one behind the last; those that are gone are left out."""
    counts = count(brokers, sorted({topic for topic, _ in places}))
    there = [place for place in places if place[1] < counts.get(place[0], 0)]
    earliest = ask(brokers, dict.fromkeys(there, EARLIEST), options.question)
    return earliest, ask(brokers, dict.fromkeys(there, LATEST), options.question)


def _skip_nothing(brokers: Cluster, each: Range, earliest: Offsets, options: Options) -> Range:
    """Begin where the log begins, if the broker says that nothing ever was below.

    Offsets that follow the clock do so: an empty log ends at 0, and its first record is long behind that.
    """
    from korvet_fast.spark.pages import readable

    first = earliest.get(each.place, each.start)
    if each.start < first and readable(brokers, each, options):
        return each._replace(start=min(first, each.end))
    return each


def report(losses: Sequence[str], options: Options) -> None:
    """Raise `ClientError` about the first loss, or warn of all of them if `failOnDataLoss` is false."""
    if losses and options.fail_on_data_loss:
        raise ClientError(losses[0])
    for loss in losses:
        logger.warning("data loss: %s", loss)
