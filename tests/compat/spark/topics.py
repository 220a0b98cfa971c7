"""Topics with everything in them that a reader can meet, and what is to be read from them."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlparse

import pyarrow as pa
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyarrow import parquet

COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
BEGINNING = 1_700_000_000_000  # ms
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MIXED, SPARSE, HEADED, EMPTY, TRIMMED = range(5)  # partitions

Headers = list[tuple[str, bytes | None]]


class Row(NamedTuple):
    """A record as Spark shows it; `timestamp` in ms."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers | None


def create(bootstrap: str, topic: str, partitions: int, **configs: str) -> None:
    """Make a topic; a setting's dots are written as underscores."""
    config = {name.replace("_", "."): value for name, value in configs.items()}
    client = AdminClient({"bootstrap.servers": bootstrap, "log_level": 5})  # it has to outlive its answers
    client.create_topics([NewTopic(topic, partitions, 1, config=config)])[topic].result(120)


def delete_before(bootstrap: str, topic: str, partition: int, offset: int) -> None:
    """DeleteRecords: the partition begins at this offset afterwards."""
    client = AdminClient({"bootstrap.servers": bootstrap, "log_level": 5})
    for deleted in client.delete_records([TopicPartition(topic, partition, offset)]).values():
        deleted.result(120)


def span(bootstrap: str, topic: str, partitions: int) -> int:
    """How many offsets there are from the beginning to the end, gaps and all, in all partitions together."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "span"})
    try:
        places = [TopicPartition(topic, number) for number in range(partitions)]
        bounds = [consumer.get_watermark_offsets(place, 30) for place in places]
    finally:
        consumer.close()
    return sum(end - start for start, end in bounds)


def fill(bootstrap: str, topic: str) -> list[Row]:
    """Make `topic` of five partitions: batches of every compression among others without, null keys and values,
    headers, nothing at all, and one whose first records were deleted in the middle of a batch. The rows, in order.
    """
    create(bootstrap, topic, 5)
    rows: list[Row] = []
    for round_ in range(2):
        for compression in COMPRESSIONS:
            rows += send(bootstrap, topic, compression, _burst(f"{compression}{round_}"))
    trimmed = [row for row in rows if row.partition == TRIMMED]
    first = trimmed[len(trimmed) // 3].offset
    delete_before(bootstrap, topic, TRIMMED, first)
    kept = [row for row in rows if row.partition != TRIMMED or row.offset >= first]
    assert 0 < len(kept) < len(rows)
    return sorted(kept, key=lambda row: (row.partition, row.offset))


def _burst(mark: str) -> Iterator[tuple[int, bytes | None, bytes | None, Headers | None]]:
    """Partition, key, value and headers of what makes one batch in each partition."""
    for number in range(40):
        value = f"{mark} {number} ".encode() * (number % 7)
        yield MIXED, f"{mark}-{number}".encode(), value, None
        yield SPARSE, None if number % 3 else b"k", None if number % 2 else value, None
        headers: Headers = [("a", b"1"), ("a", None), ("größe", value)][: number % 4]
        yield HEADED, b"", b"\x00\xff" + value, headers or None
        yield TRIMMED, None, value, None


def send(
    bootstrap: str,
    topic: str,
    compression: str,
    records: Iterator[tuple[int, bytes | None, bytes | None, Headers | None]],
) -> list[Row]:
    """One batch for each partition, and what came of it."""
    settings = {"linger.ms": 1000, "compression.type": compression}
    producer = Producer({"bootstrap.servers": bootstrap, **settings})
    rows: list[Row] = []
    for number, (partition, key, value, headers) in enumerate(records):
        time = BEGINNING + number

        def delivered(error: Any, message: Any, time: int = time, headers: Headers | None = headers) -> None:
            assert error is None, error
            place = (message.topic(), message.partition(), message.offset())
            rows.append(Row(*place, time, message.key(), message.value(), headers))

        producer.produce(
            topic,
            value,
            key,
            partition,
            timestamp=time,
            headers=headers,  # type: ignore[arg-type]
            on_delivery=delivered,
        )
    assert producer.flush(60) == 0
    return rows


def load(place: Path) -> pa.Table:
    """The Parquet rows that Spark wrote there, by partition and offset; of a stream, the committed rows."""
    log = place / "_spark_metadata"
    table = parquet.read_table(_committed(log) if log.exists() else place)
    order = [(name, "ascending") for name in ("topic", "partition", "offset") if name in table.column_names]
    return table.sort_by(order).combine_chunks() if order else table


def _committed(log: Path) -> list[str]:
    """The files that a stream's log names; others were left behind by drivers that died."""
    batches = [file.read_text().splitlines()[1:] for file in log.iterdir() if not file.name.startswith(".")]
    return sorted({unquote(urlparse(json.loads(line)["path"]).path) for lines in batches for line in lines})


def rows_of(table: pa.Table) -> list[Row]:
    """The rows of such a table."""
    found = []
    for each in table.to_pylist():
        time = (each["timestamp"] - EPOCH) // timedelta(milliseconds=1)
        headers = each.get("headers")
        pairs = None if headers is None else [(pair["key"], pair["value"]) for pair in headers]
        place = (each["topic"], each["partition"], each["offset"])
        # An empty key is no null: what the client gives back as it was sent is compared as it is.
        found.append(Row(*place, time, each["key"], each["value"], pairs))
    return found
