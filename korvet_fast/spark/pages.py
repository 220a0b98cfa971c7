"""A range of one partition as Arrow record batches: while Spark takes one page, the next one is fetched.

Memory, for each task: two pages as they come from the broker, the one that is read and the one that is fetched ahead of
it, each of `kafka.fetch.max.bytes` (8 MiB) or one batch of the topic if that is larger; one batch decompressed; and an
Arrow batch of `MAX_ROWS` rows or `MAX_BYTES`, whichever comes first, and what the batch of the topic that went beyond
holds. The length of the range does not matter.
"""

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import pyarrow as pa

from korvet_fast._native import headers, span, to_arrow
from korvet_fast.client.connection import ClientError
from korvet_fast.client.reader import CONSUMER
from korvet_fast.client.refusal import Refused, check
from korvet_fast.errors import CodecError
from korvet_fast.spark.cluster import PAUSE, Cluster, cluster, passes
from korvet_fast.spark.offsets import EARLIEST, LARGEST, LATEST, ask
from korvet_fast.spark.options import Options
from korvet_fast.spark.plan import ADVICE, Range
from korvet_fast.wire.kafka.shapes.fetch import FETCH

MAX_ROWS = 32_768
MAX_BYTES = 16 << 20  # of Arrow
DECOMPRESSED_MAX = 1 << 30  # bytes of one batch
GONE = "UNKNOWN_TOPIC_OR_PARTITION"

logger = logging.getLogger(__name__)


class Page(NamedTuple):
    """Whole batches from offset `start` on, as a broker gave them; reading goes on at `next`."""

    start: int
    next: int
    data: memoryview
    aborted: list[tuple[int, int]]


def read(part: Range, columns: Sequence[str], options: Options) -> Iterator[pa.RecordBatch]:
    """The records of a range, in order. Offsets may have gaps: the end is where the end is, however many there were.

    Raises `ClientError` naming topic, partition and offset when nothing came for `kafkaConsumer.pollTimeoutMs`, when a
    batch is damaged, and where records were removed meanwhile, unless `failOnDataLoss` is false.
    """
    fetcher = Fetcher(cluster(options.bootstrap, min(options.patience, options.poll_timeout)), part, options)
    with ThreadPoolExecutor(1, "fetch") as ahead:
        try:
            coming = ahead.submit(fetcher.fetch, part.start)
            while (page := coming.result()) is not None:
                if page.next < part.end:
                    coming = ahead.submit(fetcher.fetch, page.next)
                yield from _unpack(page, part, columns)
                if page.next >= part.end:
                    return
        finally:
            fetcher.stopped.set()


def _unpack(page: Page, part: Range, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    start, whole = page.start, not page.data
    while not whole:
        try:
            arrow = to_arrow(
                page.data,
                part.topic,
                part.partition,
                columns,
                start,
                part.end,
                MAX_ROWS,
                MAX_BYTES,
                DECOMPRESSED_MAX,
                page.aborted,
            )
        except CodecError as error:
            raise ClientError(f"{part} cannot be read from offset {start} on, the data is damaged: {error}") from None
        start, whole = arrow.next, arrow.whole
        if len(arrow):
            yield pa.record_batch(arrow)


class Fetcher:
    """Asks the leader of a partition for one page at a time; for one thread.

    `stopped`: nobody waits for the page any more.
    """

    def __init__(self, brokers: Cluster, part: Range, options: Options) -> None:
        self.stopped = threading.Event()
        self._brokers = brokers
        self._part = part
        self._options = options
        self._silence = 0  # answers without a record in a row

    def fetch(self, position: int) -> Page | None:
        """The page at an offset below the range's end; None if there is nothing more up to that end."""
        deadline = time.monotonic() + self._options.poll_timeout
        self._silence = 0
        while True:
            last = self.stopped.is_set() or time.monotonic() > deadline
            why = "the broker answers without records"
            try:
                page = self._try(position)
                if page is None or page.next > position:
                    return page
            except ClientError as error:
                name, why = error.name if isinstance(error, Refused) else "", str(error)
                if name == "OFFSET_OUT_OF_RANGE":
                    position = self._step_over(position)
                    if position >= self._part.end:
                        return None
                    continue
                if name == GONE and last and not self._options.fail_on_data_loss:
                    logger.warning("data loss: %s is gone, and was read up to offset %d", self._part, position)
                    return None
                if not passes(error, unknown_topics=True):
                    raise self._failure(position, why) from None
                self._brokers.forget()
                self.stopped.wait(PAUSE)
            if last:
                limit = f"{self._options.poll_timeout:g} s (option 'kafkaConsumer.pollTimeoutMs')"
                raise self._failure(position, f"nothing came within {limit}; {why}")

    def _failure(self, position: int, why: str) -> ClientError:
        return ClientError(f"{self._part} cannot be read from offset {position} on: {why}")

    def _try(self, position: int) -> Page | None:
        answer = ask_for(self._brokers, self._part, position, self._options)
        row = answer["responses"][0]["partitions"][0]
        data = row["records"] or memoryview(b"")
        _, end, after = span(data, position, LARGEST, len(data))
        if not end:  # a gap up to the end, if the broker says so twice and has all records there
            committed = self._options.question.committed
            known = row["last_stable_offset" if committed else "high_watermark"]
            self._silence += known >= self._part.end and not answer["throttle_time_ms"]
            return Page(position, position, data, []) if self._silence < 2 else None
        aborted = [(each["producer_id"], each["first_offset"]) for each in row["aborted_transactions"] or ()]
        return Page(position, after, data, aborted)

    def _step_over(self, position: int) -> int:
        """Where reading goes on after what was removed. Raises `ClientError` unless `failOnDataLoss` is false."""
        part = self._part
        found = {
            which: ask(self._brokers, {part.place: which}, self._options.question)[part.place]
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


def readable(brokers: Cluster, part: Range, options: Options) -> bool:
    """Whether the broker lets the range's first offset be read: nothing was removed from there on."""
    try:
        ask_for(brokers, part, part.start, options, least=True)
    except Refused as error:
        if error.name != "OFFSET_OUT_OF_RANGE":
            raise
        return False
    return True


def skip_gap(brokers: Cluster, part: Range, options: Options) -> int:
    """The first offset of the range at which a record may be: that of its first batch, or the range's end."""
    try:
        row = ask_for(brokers, part, part.start, options, least=True)["responses"][0]["partitions"][0]
    except Refused as error:
        if error.name != "OFFSET_OUT_OF_RANGE":
            raise
        return part.start  # removed in this moment: planning the tasks will say so
    batches = headers(row["records"] or b"", False)
    return min(max(batches[0].base_offset, part.start), part.end) if batches else part.end


def ask_for(brokers: Cluster, part: Range, position: int, options: Options, least: bool = False) -> dict[str, Any]:
    """The answer to one Fetch from an offset on. Raises `ClientError`, as `Refused` for its error code.

    `least`: as little as there is to be had, at once.
    """
    asked = {
        "partition": part.partition,
        "fetch_offset": position,
        "partition_max_bytes": 1 if least else options.partition_bytes,
    }
    answer = brokers.leader(part.topic, part.partition).request(
        FETCH,
        {
            "replica_id": CONSUMER,
            "max_wait_ms": 0 if least else int(options.fetch_wait * 1000),
            "min_bytes": 1,
            "max_bytes": 1 if least else options.page_bytes,
            "isolation_level": int(options.question.committed),
            "topics": [{"topic": part.topic, "partitions": [asked]}],
        },
    )
    check(str(part), answer["error_code"])
    check(str(part), answer["responses"][0]["partitions"][0]["error_code"])
    return answer
