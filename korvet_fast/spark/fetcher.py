"""A range of one partition as Arrow record batches. While Spark takes one answer, the next one is fetched.

Memory of a task: two answers as the broker sent them, the one that is read and the next one, each of
`kafka.fetch.max.bytes` (8 MiB) or one batch of the topic if that is larger; one batch decompressed; and one Arrow batch
of `MAX_ROWS` rows or `MAX_BYTES`, whichever is reached first, plus the rest of the topic's batch that reached it. The
length of the range does not matter.
"""

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import pyarrow as pa

from korvet_fast._native import batch_headers, slice_batches, to_arrow
from korvet_fast.client.protocol.errors import BrokerError, ClientError, is_retriable
from korvet_fast.client.protocol.requests import fetch_request, read_fetch
from korvet_fast.errors import CodecError, Errors
from korvet_fast.spark.closed_pipe import exit_when_spark_closes, keep_sigpipe_away
from korvet_fast.spark.cluster import RETRY_BACKOFF, BlockingCluster, cluster
from korvet_fast.spark.offsets import LARGEST, list_offsets
from korvet_fast.spark.options import Options
from korvet_fast.spark.plan import ADVICE, Range
from korvet_fast.spark.short_errors import short_errors
from korvet_fast.types import EARLIEST, LATEST
from korvet_fast.wire.kafka.shapes.fetch import FETCH

MAX_ROWS = 32_768
MAX_BYTES = 16 << 20  # bytes of Arrow buffers
DECOMPRESSED_MAX = 1 << 30  # bytes of one batch
OUT_OF_RANGE = Errors.OFFSET_OUT_OF_RANGE
UNKNOWN = Errors.UNKNOWN_TOPIC_OR_PARTITION

logger = logging.getLogger(__name__)


class FetchedBatches(NamedTuple):
    """Whole batches from offset `start` on, as a broker sent them; the next ones begin at `next`."""

    start: int
    next: int
    data: memoryview
    aborted: list[tuple[int, int]]  # producer id, first offset


def read(part: Range, columns: Sequence[str], options: Options) -> Iterator[pa.RecordBatch]:
    """The records of a range, in order. The end is an offset: a range with gaps has fewer records than offsets.

    Raises `ClientError` naming topic, partition and offset: when nothing came for `kafkaConsumer.pollTimeoutMs`, when a
    batch is damaged, and when records were removed meanwhile, unless `failOnDataLoss` is false.
    """
    patience = min(options.patience, options.poll_timeout)
    fetcher = Fetcher(cluster(options.bootstrap, patience, options.security), part, options)
    exit_when_spark_closes()
    with short_errors(), ThreadPoolExecutor(1, "fetch", keep_sigpipe_away) as ahead:
        try:
            coming = ahead.submit(fetcher.fetch, part.start)
            while (fetched := coming.result()) is not None:
                if fetched.next < part.end:
                    coming = ahead.submit(fetcher.fetch, fetched.next)
                yield from _unpack(fetched, part, columns)
                if fetched.next >= part.end:
                    break
        finally:
            fetcher.stopped.set()


def _unpack(fetched: FetchedBatches, part: Range, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    start, whole = fetched.start, not fetched.data
    while not whole:
        try:
            arrow = to_arrow(
                fetched.data,
                part.topic,
                part.partition,
                columns,
                start,
                part.end,
                MAX_ROWS,
                MAX_BYTES,
                DECOMPRESSED_MAX,
                fetched.aborted,
            )
        except CodecError as error:
            raise ClientError(f"{part} cannot be read from offset {start} on, the data is damaged: {error}") from None
        start, whole = arrow.next, arrow.whole
        if len(arrow):
            yield pa.record_batch(arrow)


class Fetcher:
    """Fetches from the leader of a partition, one answer at a time; for one thread.

    `stopped`: set once nobody waits for batches any more.
    """

    def __init__(self, brokers: BlockingCluster, part: Range, options: Options) -> None:
        self.stopped = threading.Event()
        self._brokers = brokers
        self._part = part
        self._options = options
        self._empty_answers = 0  # in a row, of a broker that has all offsets of the range

    def fetch(self, position: int) -> FetchedBatches | None:
        """The batches at an offset below the range's end; None if there is nothing more up to that end."""
        deadline = time.monotonic() + self._options.poll_timeout
        self._empty_answers = 0
        while True:
            last = self.stopped.is_set() or time.monotonic() > deadline
            why = "the broker answers without records"
            try:
                fetched = self._try(position)
                if fetched is None or fetched.next > position:
                    return fetched
            except ClientError as error:
                name, why = error.error if isinstance(error, BrokerError) else Errors.NONE, str(error)
                if name == OUT_OF_RANGE:
                    position = self._step_over(position)
                    if position >= self._part.end:
                        return None
                    continue
                if name == UNKNOWN and last and not self._options.fail_on_data_loss:
                    logger.warning("data loss: %s is gone, and was read up to offset %d", self._part, position)
                    return None
                if not is_retriable(error, unknown_topics=True):
                    raise self._failure(position, why) from None
                self._brokers.forget()
                self.stopped.wait(RETRY_BACKOFF)
            if last:
                limit = f"{self._options.poll_timeout:g} s (option 'kafkaConsumer.pollTimeoutMs')"
                raise self._failure(position, f"nothing came within {limit}; {why}")

    def _failure(self, position: int, why: str) -> ClientError:
        return ClientError(f"{self._part} cannot be read from offset {position} on: {why}")

    def _try(self, position: int) -> FetchedBatches | None:
        answer, row = _fetch(self._brokers, self._part, position, self._options)
        data = row["records"] or memoryview(b"")
        _, end, after = slice_batches(data, position, LARGEST, len(data))
        if not end:  # a gap up to the range's end, if the broker has all offsets of the range and says so twice
            committed = self._options.offset_query.committed
            known = row["last_stable_offset" if committed else "high_watermark"]
            self._empty_answers += known >= self._part.end and not answer["throttle_time_ms"]
            return FetchedBatches(position, position, data, []) if self._empty_answers < 2 else None
        aborted = [(each["producer_id"], each["first_offset"]) for each in row["aborted_transactions"] or ()]
        return FetchedBatches(position, after, data, aborted)

    def _step_over(self, position: int) -> int:
        """Where reading goes on after records were removed. Raises `ClientError` unless `failOnDataLoss` is false."""
        part = self._part
        found = {
            which: list_offsets(self._brokers, {part.topic_partition: which}, self._options.offset_query)[
                part.topic_partition
            ]
            for which in (EARLIEST, LATEST)
        }
        first, last = found[EARLIEST], found[LATEST]
        if position < first:
            step = min(first, part.end)
            why = f"it begins at offset {first} by now, so that {step - position} offsets are lost"
        else:
            step, why = part.end, f"it ends at offset {last} by now"
        if self._options.fail_on_data_loss:
            raise self._failure(position, f"{why}; {ADVICE}")
        logger.warning("data loss: %s was to be read from offset %d on, but %s", part, position, why)
        return step


def can_read(brokers: BlockingCluster, part: Range, options: Options) -> bool:
    """Whether the broker lets the range's first offset be read: nothing was removed from there on."""
    return _peek(brokers, part, options) is not None


def skip_gap(brokers: BlockingCluster, part: Range, options: Options) -> int:
    """The first offset of the range at which a record may be: that of its first batch, or the range's end."""
    row = _peek(brokers, part, options)
    if row is None:
        return part.start  # removed in this moment: planning the tasks reports it
    batches = batch_headers(row["records"] or b"", False)
    return min(max(batches[0].base_offset, part.start), part.end) if batches else part.end


def _peek(brokers: BlockingCluster, part: Range, options: Options) -> dict[str, Any] | None:
    """The answer about the range's first offset, with one batch at most; None if the offset is out of range."""
    try:
        return _fetch(brokers, part, part.start, options, peek=True)[1]
    except BrokerError as error:
        if error.error != OUT_OF_RANGE:
            raise
        return None


def _fetch(
    brokers: BlockingCluster, part: Range, position: int, options: Options, peek: bool = False
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The answer to one Fetch, and its row. `peek`: one batch at most, without waiting. Raises `ClientError`."""
    request = fetch_request(
        part.topic,
        {part.partition: position},
        max_bytes=1 if peek else options.fetch_max_bytes,
        partition_max_bytes=1 if peek else options.partition_bytes,
        max_wait=0.0 if peek else options.fetch_wait,
        committed=options.offset_query.committed,
    )
    answer = brokers.leader(part.topic, part.partition).request(FETCH, request)
    (row,) = read_fetch(part.topic, answer)
    return answer, row
