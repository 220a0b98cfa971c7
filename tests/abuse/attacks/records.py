"""Records that are costly to check, to search and to read."""

from functools import cache

from abuse.attack import Target, attack
from abuse.prepared import MANY, PACKED, SIXTY, SMALL
from abuse.wire import encode
from batches import NOW
from kafka_server import FETCH, LIST_OFFSETS, PRODUCE
from korvet_reference.header import new_batch
from korvet_reference.records import Record, write_record

_ZSTD = 4
_HEADERS = 524_000  # of two bytes each: 1 MiB of nothing


@cache
def _headers_only() -> bytes:
    """A zstd batch of about 185 bytes that unpacks to 1 MiB: one record, whose headers are all empty."""
    record = Record(0, 0, None, b"", [(b"", b"")] * _HEADERS)
    return bytes(new_batch(write_record(record), _ZSTD, [NOW], 0, 0))


@attack("2.4", "Produce of 2,000 small zstd batches that unpack to 1 MiB with 524,000 headers each (370 KB)")
def produce_batches_of_headers(target: Target, worker: int) -> None:
    rows = [{"index": index, "records": _headers_only()} for index in range(2000)]
    request = encode(PRODUCE, 9, acks=1, timeout_ms=1000, topic_data=[{"name": MANY, "partition_data": rows}])
    with target.line() as line:
        while target.left() > 0:
            line.send(request)
            line.receive()


@attack("2.5a", "ListOffsets by time, one row 2,000 times (34 KB)")
def search_one_row_2000_times(target: Target, worker: int) -> None:
    _search(target, target.topic(SMALL, worker), NOW + 1999, 2000)


@attack("2.5b", "ListOffsets by time, 400 rows over one gzip batch of 600 KB (5 KB)")
def search_a_large_batch_400_times(target: Target, worker: int) -> None:
    _search(target, target.topic(PACKED, worker), NOW + 19_999, 400)


def _search(target: Target, topic: str, time: int, many: int) -> None:
    row = {"partition_index": 0, "timestamp": time}
    topics = [{"name": topic, "partitions": [row] * many}]
    request = encode(LIST_OFFSETS, 7, replica_id=-1, topics=topics)
    with target.line() as line:
        while target.left() > 0:
            line.send(request)
            line.receive()


@attack("2.6", "Fetch of one row 10,000 times with partition_max_bytes 0 and max_bytes 1 (280 KB)")
def fetch_one_row_10000_times(target: Target, worker: int) -> None:
    row = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 0}
    topics = [{"topic": target.topic(SIXTY, worker), "partitions": [row] * 10_000}]
    with target.line() as line:
        while target.left() > 0:
            line.send(encode(FETCH, 12, max_wait_ms=0, min_bytes=0, max_bytes=1, topics=topics))
            line.receive()
