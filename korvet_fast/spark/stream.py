"""A streaming read. All that a query has to remember is in its checkpoint: nothing is kept here, or in a broker.

Spark keeps the end of each micro-batch, and a batch that did not finish is planned again from what was kept. Where the
first one began is not kept, and Spark asks for it again after a crash; `latest` would be another place by then. So the
beginning is written into the end: under `BEGINNING`, which is no legal name of a topic, the offsets at which partitions
begin that the batch is the first to read, whether it is the first of the query or they are new.
"""

import logging
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from korvet_fast.client.connection import ClientError
from korvet_fast.client.refusal import check as check_code
from korvet_fast.errors import SettingError
from korvet_fast.spark import plan, row
from korvet_fast.spark.cluster import Cluster, Place, cluster
from korvet_fast.spark.offsets import EARLIEST, LATEST, Offsets, ask, read, resolve, write
from korvet_fast.spark.options import Options
from korvet_fast.spark.plan import ADVICE, Range
from korvet_fast.spark.reader import check, divide, report
from korvet_fast.spark.subscription import find_partitions
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
        """There is none: Spark reads what is there in one micro-batch."""


BEGINNING = "(beginning)"
CLOCK = 1 << 44  # an offset from here on follows the clock: to count so far, a million a second take half a year

logger = logging.getLogger(__name__)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Made in the driver, in a process that lives as long as the query; `read` runs in the tasks, on a copy."""

    def __init__(self, options: Options) -> None:
        limits = {"maxOffsetsPerTrigger": options.most_offsets, "minOffsetsPerTrigger": options.least_offsets}
        for name, given in limits.items():
            if given is not None and not LIMITS:
                raise SettingError(f"option {name!r} needs PySpark 4.2 or newer: this one knows no limits of a stream")
        self.options = options
        self.columns = row.columns(options.columns, options.include_headers)
        self._target: Offsets | None = None  # where a query with Trigger.AvailableNow ends
        self._latest: Offsets = {}
        self._last: dict[str, Any] | None = None  # what was told to an engine that tells no start
        self._released: float | None = None  # when a batch was last let go
        self._advanced: Offsets = {}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Nothing yet: the end of the first batch tells where it began."""
        return {}

    def getDefaultReadLimit(self) -> "ReadLimit":  # noqa: N802
        """The limit Spark hands back to `latestOffset`."""
        if self.options.most_offsets is not None:
            return ReadMaxRows(self.options.most_offsets)
        if self.options.least_offsets is not None:
            return ReadMinRows(self.options.least_offsets)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """What is there now is what the query will read."""
        self._target = self._find_ends({}, some=True)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """How far the partitions reach, as of the last trigger: Spark shows it beside where the query is."""
        return write(self._latest) or None

    def latestOffset(  # noqa: N802
        self, start: dict[str, Any] | None = None, limit: "ReadLimit | None" = None
    ) -> dict[str, Any]:
        """Where the micro-batch from `start` ends; `start` itself if there is nothing to do.

        PySpark 4.1 gives neither: then a batch goes on from what was told before, and takes all there is.
        """
        start = (self._last or {}) if start is None else start
        known = _ends(start)
        if known and self.options.group is not None:
            self._advance(self.options.group, known)
        self._latest = self._find_ends(known, some=bool(start))
        fresh = self._begin([place for place in self._latest if place not in known], first=not start)
        # Those that are gone are not in the end any more; one that lost its end goes on from the end it has.
        begins = {place: min(known.get(place, end), end) for place, end in self._latest.items()} | fresh
        ends = {place: max(self._aim(place, end), begins[place]) for place, end in self._latest.items()}
        if LIMITS and not isinstance(limit, ReadAllAvailable):
            ends = self._limit(begins, ends, wait=bool(start))
        if not start or ends != known:
            start = ({BEGINNING: write(fresh)} if fresh or not start else {}) | write(ends)
        self._last = start
        return start

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The tasks of a micro-batch. Raises `ClientError` where something is lost, if `failOnDataLoss` is true."""
        begins = read(end.get(BEGINNING, {})) | _ends(start)
        brokers = self._brokers()
        ranges = [Range(*place, begins[place], stop) for place, stop in _ends(end).items()]
        return divide(check(brokers, ranges, self.options), self.options)

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        """The records of one task, as record batches with the columns asked for."""
        from korvet_fast.spark.pages import read as read_pages

        return read_pages(partition.value, self.columns, self.options)

    def _brokers(self) -> Cluster:
        return cluster(self.options.bootstrap, self.options.patience)

    def _find_ends(self, known: Offsets, *, some: bool) -> Offsets:
        """How far each partition reaches now. `known`: offsets it reached before, so it cannot end before them.

        `some`: partitions that are gone are left out.
        """
        options, brokers = self.options, self._brokers()
        places = find_partitions(brokers, options, some=some)
        ends = ask(brokers, dict.fromkeys(places, LATEST), options.question)
        for _ in range(options.offset_retries):  # a broker that just took over may not know the end yet
            if all(ends[place] >= known.get(place, 0) for place in places):
                break
            time.sleep(options.offset_pause)
            ends |= ask(brokers, dict.fromkeys(places, LATEST), options.question)
        losses = []
        for (topic, partition), offset in known.items():
            end = ends.get((topic, partition))
            if end is None or end < offset:
                now = "is gone" if end is None else f"ends at offset {end}"
                losses.append(
                    f"partition {partition} of topic {topic!r} {now}, and was read up to offset {offset}: it was "
                    f"deleted, made anew or lost records; {ADVICE}"
                )
        report(losses, options)
        return ends

    def _begin(self, places: list[Place], first: bool) -> Offsets:
        """Where partitions begin that were not read before: new ones at their first record."""
        brokers, options = self._brokers(), self.options
        if not first:
            return ask(brokers, dict.fromkeys(places, EARLIEST), options.question)
        return resolve(brokers, options.start(LATEST), places, options.question, strict=options.strategy == "error")

    def _aim(self, place: Place, end: int) -> int:
        return end if self._target is None else min(end, self._target.get(place, 0))

    def _limit(self, begins: Offsets, ends: Offsets, wait: bool) -> Offsets:
        """Nearer ends, by `maxOffsetsPerTrigger`; none at all while `minOffsetsPerTrigger` may be waited for."""
        options, now = self.options, time.monotonic()
        if options.least_offsets is not None and self._target is None and wait and self._released is not None:
            backlog = sum(ends[place] - begins[place] for place in ends)
            if backlog < options.least_offsets and now - self._released < options.longest_delay:
                return begins
        self._released = now
        if options.most_offsets is None:
            return ends
        brokers = self._brokers()
        firsts = ask(brokers, dict.fromkeys(ends, EARLIEST), options.question)
        begins = {place: max(begins[place], firsts[place]) for place in ends}
        if sum(ends[place] - begins[place] for place in ends) > options.most_offsets:
            begins = {place: self._skip_gap(brokers, place, begin, ends[place]) for place, begin in begins.items()}
        return plan.limit(begins, ends, options.most_offsets)

    def _skip_gap(self, brokers: Cluster, place: Place, begin: int, end: int) -> int:
        """Offsets that follow the clock count the time in which nothing was written: none of that is for a limit."""
        from korvet_fast.spark.pages import skip_gap

        return skip_gap(brokers, Range(*place, begin, end), self.options) if CLOCK <= begin < end else begin

    def _advance(self, group: str, done: Offsets) -> None:
        """Tell the group how far the query is, for those who watch its lag; nothing is ever read from there.

        So a failure is a warning, and the next trigger tries again.
        """
        if done == self._advanced:
            return
        rows: dict[str, list[dict[str, Any]]] = {}
        for (topic, partition), offset in done.items():
            rows.setdefault(topic, []).append(
                {"partition_index": partition, "committed_offset": offset, "committed_metadata": ""}
            )
        asked = {"group_id": group, "topics": [{"name": topic, "partitions": each} for topic, each in rows.items()]}
        brokers = self._brokers()
        try:
            answer = brokers.coordinator(group).request(OFFSET_COMMIT, asked)
            for topic in answer["topics"]:
                for each in topic["partitions"]:
                    name = f"group {group!r}, partition {each['partition_index']} of topic {topic['name']!r}"
                    check_code(name, each["error_code"])
        except ClientError as error:
            brokers.forget()
            logger.warning("the offsets of option 'kafka.group.id' are not up to date: %s", error)
        else:
            self._advanced = done


def _ends(written: Mapping[str, Any]) -> Offsets:
    return read({topic: rows for topic, rows in written.items() if topic != BEGINNING})
