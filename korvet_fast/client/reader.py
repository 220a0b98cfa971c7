"""Records of one topic, all its partitions, from given offsets on, as they come."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from korvet_fast._native import columns, headers
from korvet_fast.client.cluster import Cluster
from korvet_fast.client.connection import Connection
from korvet_fast.client.refusal import check
from korvet_fast.wire.kafka.shapes.fetch import FETCH
from korvet_fast.wire.kafka.shapes.offsets import LIST_OFFSETS

MAX_WAIT = 0.5  # seconds a broker waits for new records before it answers with none
MAX_BYTES = 16 << 20  # of one answer
PARTITION_MAX_BYTES = 1 << 20
DECOMPRESSED_MAX = 1 << 30  # bytes that the batches of one answer may unfold to
CONSUMER = -1  # replica_id of whoever is no broker


class Record(NamedTuple):
    """One record. `timestamp` in ms; `headers` in order, names may repeat."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


async def find_offset(cluster: Cluster, topic: str, partition: int, timestamp: int) -> int:
    """ListOffsets for one partition: `EARLIEST`, `LATEST` or a time in ms (-1 if nothing is as late)."""
    leader = await cluster.leader(topic, partition)
    question = {"partition_index": partition, "timestamp": timestamp}
    answer = await leader.request(
        LIST_OFFSETS, {"replica_id": CONSUMER, "topics": [{"name": topic, "partitions": [question]}]}
    )
    (found,) = answer["topics"][0]["partitions"]
    check(f"partition {partition} of topic {topic!r}", found["error_code"])
    offset: int = found["offset"]
    return offset


class Reader:
    """`async for records in Reader(...).pages()`: lists of records, partition by partition, in offset order."""

    def __init__(self, cluster: Cluster, topic: str, positions: Mapping[int, int]) -> None:
        self._cluster = cluster
        self._topic = topic
        self._positions = dict(positions)  # partition -> offset to read next

    async def pages(self) -> AsyncIterator[Iterator[Record]]:
        """Never ends; a page may be empty. Raises `ClientError`."""
        while True:
            by_leader: dict[Connection, list[int]] = {}
            for partition in self._positions:
                by_leader.setdefault(await self._cluster.leader(self._topic, partition), []).append(partition)
            # One page in turn, so that the order of records does not hang on which broker is faster.
            for page in await asyncio.gather(*(self._fetch(*each) for each in by_leader.items())):
                for partition, records in page:
                    yield self._unpack(partition, records)

    async def _fetch(self, leader: Connection, partitions: list[int]) -> list[tuple[int, memoryview]]:
        asked = [
            {"partition": each, "fetch_offset": self._positions[each], "partition_max_bytes": PARTITION_MAX_BYTES}
            for each in partitions
        ]
        answer = await leader.request(
            FETCH,
            {
                "replica_id": CONSUMER,
                "max_wait_ms": int(MAX_WAIT * 1000),
                "min_bytes": 1,
                "max_bytes": MAX_BYTES,
                "topics": [{"topic": self._topic, "partitions": asked}],
            },
        )
        check(f"topic {self._topic!r}", answer["error_code"])
        page = []
        for topic in answer["responses"]:
            for found in topic["partitions"]:
                check(f"partition {found['partition_index']} of topic {self._topic!r}", found["error_code"])
                if found["records"]:
                    page.append((found["partition_index"], found["records"]))
        return page

    def _unpack(self, partition: int, data: memoryview) -> Iterator[Record]:
        batches = headers(data, False)
        if not batches:
            return iter(())
        whole = data[: batches[-1].start + batches[-1].size]  # the last batch may have been cut off by the broker
        first, self._positions[partition] = self._positions[partition], batches[-1].last_offset + 1
        return unpack(partition, columns(whole, DECOMPRESSED_MAX), first)


def unpack(partition: int, found: Mapping[str, Any], first: int) -> Iterator[Record]:
    """Columns -> records from offset `first` on (a batch may begin before the offset that was asked for)."""
    view = {name: memoryview(column) for name, column in found.items()}
    spans = (
        pairwise(view["key_offsets"].tolist()),
        pairwise(view["value_offsets"].tolist()),
        pairwise(view["header_offsets"].tolist()),
    )
    names = list(pairwise(view["header_key_offsets"].tolist()))
    contents = list(pairwise(view["header_value_offsets"].tolist()))
    flags = (view["key_valid"], view["value_valid"])
    rows = zip(view["offset"].tolist(), view["timestamp"].tolist(), *spans, *flags, strict=True)
    for offset, timestamp, key, value, around, key_valid, value_valid in rows:
        if offset < first:
            continue
        yield Record(
            partition,
            offset,
            timestamp,
            bytes(view["key"][slice(*key)]) if key_valid else None,
            bytes(view["value"][slice(*value)]) if value_valid else None,
            [
                (
                    str(view["header_key"][slice(*names[index])], "utf-8", "replace"),
                    bytes(view["header_value"][slice(*contents[index])]) if view["header_value_valid"][index] else None,
                )
                for index in range(*around)
            ],
        )
