"""A streaming read. The checkpoint of a query has all that the query must remember; no broker keeps any of it.

Spark keeps the end of each micro-batch, and plans an unfinished batch again from it. Spark does not keep where the
first batch began: it asks again after a crash, and `latest` would be another offset by then. So the end of a batch also
has, under `BEGINNING` (no legal topic name), the first offset of each partition that no earlier batch read: all
partitions in the first batch of a query, new ones in later batches.
"""

import logging
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from korvet_fast.client.protocol.errors import ClientError
from korvet_fast.client.protocol.metadata import TopicPartition
from korvet_fast.client.protocol.requests import check_offset_commit, offset_commit_request
from korvet_fast.errors import SettingError
from korvet_fast.spark import plan, row
from korvet_fast.spark.cluster import BlockingCluster, cluster
from korvet_fast.spark.offsets import Offsets, list_offsets, read, resolve, write
from korvet_fast.spark.options import Options
from korvet_fast.spark.plan import ADVICE, Range
from korvet_fast.spark.reader import clip_to_logs, make_tasks, report_losses
from korvet_fast.spark.short_errors import short_errors
from korvet_fast.spark.subscription import find_partitions
from korvet_fast.types import EARLIEST, LATEST
from korvet_fast.wire.kafka.shapes.commits import OFFSET_COMMIT

if TYPE_CHECKING:
    import pyarrow as pa

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        ReadMinRows,
        SupportsTriggerAvailableNow,
    )

    LIMITS = True
except ImportError:  # PySpark 4.1: a micro-batch takes all there is
    LIMITS = False

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """An empty base class: this Spark reads in one micro-batch what is there."""


BEGINNING = "(beginning)"
CLOCK = 1 << 44  # offsets from here on follow the clock: a topic with 10^6 records/s gets here in half a year

logger = logging.getLogger(__name__)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Made in the driver, in a process that lives as long as the query. Each task runs `read` on a copy."""

    def __init__(self, options: Options) -> None:
        limits = {"maxOffsetsPerTrigger": options.max_offsets, "minOffsetsPerTrigger": options.min_offsets}
        for name, given in limits.items():
            if given is not None and not LIMITS:
                raise SettingError(f"option {name!r} needs PySpark 4.2 or newer: this one knows no limits of a stream")
        self.options = options
        self.columns = row.columns(options.columns, options.include_headers)
        self._target: Offsets | None = None  # where a query with Trigger.AvailableNow ends
        self._latest: Offsets = {}
        self._last: dict[str, Any] | None = None  # the last end, for a Spark that passes no start
        self._released: float | None = None  # when the last batch was released
        self._advanced: Offsets = {}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Empty: the end of the first batch says where it began."""
        return {}

    def getDefaultReadLimit(self) -> "ReadLimit":  # noqa: N802
        """The limit that Spark passes to `latestOffset`."""
        if self.options.max_offsets is not None:
            return ReadMaxRows(self.options.max_offsets)
        if self.options.min_offsets is not None:
            return ReadMinRows(self.options.min_offsets)
        return ReadAllAvailable()

    @short_errors()
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Remember the ends of now: the query reads up to them."""
        self._target = self._find_ends({}, some=True)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """The ends of the partitions at the last trigger: Spark shows them beside the position of the query."""
        return write(self._latest) or None

    @short_errors()
    def latestOffset(  # noqa: N802
        self, start: dict[str, Any] | None = None, limit: "ReadLimit | None" = None
    ) -> dict[str, Any]:
        """Where the micro-batch from `start` ends; `start` itself if there is nothing to read.

        PySpark 4.1 passes neither argument: then a batch goes on from the last end, and takes all that is there.
        """
        start = (self._last or {}) if start is None else start
        known = read_end(start)
        if known and self.options.group is not None:
            self._advance(self.options.group, known)
        self._latest = self._find_ends(known, some=bool(start))
        fresh = self._begin([each for each in self._latest if each not in known], first=not start)
        # A partition that is gone is not in the end; one whose end went back goes on from its present end.
        begins = {each: min(known.get(each, end), end) for each, end in self._latest.items()} | fresh
        ends = {each: max(self._aim(each, end), begins[each]) for each, end in self._latest.items()}
        if LIMITS and not isinstance(limit, ReadAllAvailable):
            ends = self._limit(begins, ends, wait=bool(start))
        if not start or ends != known:
            start = ({BEGINNING: write(fresh)} if fresh or not start else {}) | write(ends)
        self._last = start
        return start

    @short_errors()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The tasks of a micro-batch. Raises `ClientError` for a loss of records, if `failOnDataLoss` is true."""
        begins = read(end.get(BEGINNING, {})) | read_end(start)
        brokers = self._brokers()
        ranges = [Range(*each, begins[each], stop) for each, stop in read_end(end).items()]
        return make_tasks(clip_to_logs(brokers, ranges, self.options), self.options)

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        """The records of one task, as record batches with the columns asked for."""
        from korvet_fast.spark.fetcher import read

        return read(partition.value, self.columns, self.options)

    def _brokers(self) -> BlockingCluster:
        return cluster(self.options.bootstrap, self.options.patience, self.options.security)

    def _find_ends(self, known: Offsets, *, some: bool) -> Offsets:
        """The end of each partition now. `known`: ends of earlier batches; an end before them is a loss.

        `some`: partitions that are gone are left out.
        """
        options, brokers = self.options, self._brokers()
        found = find_partitions(brokers, options, some=some)
        ends = list_offsets(brokers, dict.fromkeys(found, LATEST), options.offset_query)
        for _ in range(options.offset_retries):  # a broker that took over just now may not know the end yet
            if all(ends[each] >= known.get(each, 0) for each in found):
                break
            time.sleep(options.offset_pause)
            ends |= list_offsets(brokers, dict.fromkeys(found, LATEST), options.offset_query)
        losses = []
        for (topic, partition), offset in known.items():
            end = ends.get((topic, partition))
            if end is None or end < offset:
                now = "is gone" if end is None else f"ends at offset {end}"
                losses.append(
                    f"partition {partition} of topic {topic!r} {now}, and was read up to offset {offset}: it was "
                    f"deleted, made anew or lost records; {ADVICE}"
                )
        report_losses(losses, options)
        return ends

    def _begin(self, partitions: list[TopicPartition], first: bool) -> Offsets:
        """Where a query begins to read partitions: `first`: where the options say; later: at their first record."""
        brokers, options = self._brokers(), self.options
        if not first:
            return list_offsets(brokers, dict.fromkeys(partitions, EARLIEST), options.offset_query)
        return resolve(
            brokers, options.start(LATEST), partitions, options.offset_query, strict=options.strategy == "error"
        )

    def _aim(self, partition: TopicPartition, end: int) -> int:
        return end if self._target is None else min(end, self._target.get(partition, 0))

    def _limit(self, begins: Offsets, ends: Offsets, wait: bool) -> Offsets:
        """The ends that `maxOffsetsPerTrigger` allows; the begins while the batch waits for `minOffsetsPerTrigger`."""
        options, now = self.options, time.monotonic()
        if options.min_offsets is not None and self._target is None and wait and self._released is not None:
            backlog = sum(ends[each] - begins[each] for each in ends)
            if backlog < options.min_offsets and now - self._released < options.max_delay:
                return begins
        self._released = now
        if options.max_offsets is None:
            return ends
        brokers = self._brokers()
        firsts = list_offsets(brokers, dict.fromkeys(ends, EARLIEST), options.offset_query)
        begins = {each: max(begins[each], firsts[each]) for each in ends}
        if sum(ends[each] - begins[each] for each in ends) > options.max_offsets:
            begins = {each: self._skip_gap(brokers, each, begin, ends[each]) for each, begin in begins.items()}
        return plan.limit(begins, ends, options.max_offsets)

    def _skip_gap(self, brokers: BlockingCluster, partition: TopicPartition, begin: int, end: int) -> int:
        """The first offset with a record. Offsets that follow the clock have gaps, which a limit must not count."""
        from korvet_fast.spark.fetcher import skip_gap

        return skip_gap(brokers, Range(*partition, begin, end), self.options) if CLOCK <= begin < end else begin

    def _advance(self, group: str, done: Offsets) -> None:
        """Commit the position of the query, so that people can watch the group's lag. The query never reads it.

        So a failure is only a warning, and the next trigger tries again.
        """
        if done == self._advanced:
            return
        brokers = self._brokers()
        try:
            answer = brokers.coordinator(group).request(OFFSET_COMMIT, offset_commit_request(group, done))
            check_offset_commit(group, answer)
        except ClientError as error:
            brokers.forget()
            logger.warning("the offsets of option 'kafka.group.id' are not up to date: %s", error)
        else:
            self._advanced = done


def read_end(written: Mapping[str, Any]) -> Offsets:
    """Where a micro-batch ends, out of the offsets that its end has for Spark."""
    return read({topic: rows for topic, rows in written.items() if topic != BEGINNING})
