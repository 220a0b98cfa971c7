"""The topics, records and producers that attacks find at the broker, made before anything is measured."""

import os
import time
from collections.abc import Iterator
from typing import Any

from abuse.wire import Line, encode
from batches import NOW, make_batch
from kafka_server import CREATE_TOPICS, PRODUCE

MANY, MANY_PARTITIONS = "many", 20_000
LONG_NAMES = 500  # topics with names as long as they may be
THOUSAND = "thousand"
STEADY = "steady"  # of the well-behaved clients
PACKED = "packed"  # one gzip batch of 600 KB with 20,000 records
SMALL = "small"  # one gzip batch of 2,000 records
SIXTY = "sixty"  # one batch of 62 KB
BULK = "bulk"  # 60 MB in one partition
SPREAD, SPREAD_PARTITIONS = "spread", 50  # a MB in each
INVENTED, INVENTED_PARTITIONS = "invented", 100  # its producers were given their ids by nobody
SETTINGS = ("max.partitions=60000", "message.max.bytes=1100000")

_THROTTLED = 89
_GZIP = 1


def prepare(port: int, layouts: tuple[str, ...], producers: int) -> None:
    """Create and fill the topics; as many producers are remembered as asked for."""
    with Line(port) as line:
        create(line, {MANY: MANY_PARTITIONS})
        create(line, {THOUSAND: 1000, INVENTED: INVENTED_PARTITIONS})
        create(line, {f"{number:03}".ljust(249, "x"): 1 for number in range(LONG_NAMES)})
        for layout in layouts:
            ones = {f"{name}.{layout}": 1 for name in (STEADY, PACKED, SMALL, SIXTY, BULK)}
            create(line, ones | {f"{SPREAD}.{layout}": SPREAD_PARTITIONS}, layout)
            fill(line, layout)
        for number in range(producers // 10):
            _produce(line, INVENTED, list(invented(range(10), 1_000_000 + number * 10)))


def prepare_little(port: int, layouts: tuple[str, ...]) -> None:
    """Make the topics for the well-behaved clients, and for attacks on the connections to Redis."""
    with Line(port) as line:
        create(line, {THOUSAND: 1000})
        for layout in layouts:
            create(line, {f"{STEADY}.{layout}": 1}, layout)


def create(line: Line, topics: dict[str, int], layout: str = "store") -> None:
    """Create topics of so many partitions, as slowly as the broker wishes."""
    configs = [{"name": "storage.layout", "value": layout}, {"name": "retention.ms", "value": "-1"}]
    left = dict(topics)
    until = time.monotonic() + 60
    while left:
        rows = [
            {"name": name, "num_partitions": many, "replication_factor": 1, "configs": configs}
            for name, many in left.items()
        ]
        answer = line.ask(CREATE_TOPICS, 7, topics=rows, timeout_ms=60_000)
        refused = {row["name"]: row for row in answer["topics"] if row["error_code"]}
        others = [row for row in refused.values() if row["error_code"] != _THROTTLED]
        assert not others, others[:3]
        assert not refused or time.monotonic() < until, "the broker does not let the topics be created"
        left = {name: left[name] for name in refused}
        if left:
            time.sleep(max(answer["throttle_time_ms"] / 1000, 0.1))


def fill(line: Line, layout: str) -> None:
    """Put the records into the topics of one layout."""
    for name, many in ((PACKED, 20_000), (SMALL, 2_000)):
        values = [os.urandom(25).hex().encode() for _ in range(many)]
        packed = make_batch(values, times=range(NOW, NOW + many), compression=_GZIP)
        _produce(line, f"{name}.{layout}", [(0, packed)])
    _produce(line, f"{SIXTY}.{layout}", [(0, make_batch([bytes(62_000)]))])
    large = make_batch([bytes(1_000_000)])
    for _ in range(60):
        _produce(line, f"{BULK}.{layout}", [(0, large)])
    for index in range(SPREAD_PARTITIONS):
        _produce(line, f"{SPREAD}.{layout}", [(index, large)])


def invented(partitions: range, first: int) -> Iterator[tuple[int, bytearray]]:
    """The first batch of another producer for each of these partitions; `first`: the lowest of their ids."""
    for index in partitions:
        yield index, make_batch([b"x"], producer=(first + index, 0, 0))


def _produce(line: Line, topic: str, rows: list[tuple[int, Any]]) -> None:
    partitions = [{"index": index, "records": records} for index, records in rows]
    topics = [{"name": topic, "partition_data": partitions}]
    line.send(encode(PRODUCE, 9, acks=1, timeout_ms=10_000, topic_data=topics))
    line.receive()
