"""Reads the records of one topic from given offsets on, and those that come later."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from korvet_fast._native import batch_headers, to_columns
from korvet_fast.client.cluster import Cluster
from korvet_fast.client.connection import Connection
from korvet_fast.client.protocol.errors import BrokerError, ClientError
from korvet_fast.client.protocol.requests import fetch_request, list_offsets_request, read_fetch, read_offsets
from korvet_fast.errors import Errors
from korvet_fast.wire.kafka.shapes.fetch import FETCH
from korvet_fast.wire.kafka.shapes.offsets import LIST_OFFSETS

MAX_WAIT = 0.5  # seconds a broker waits for new records before it answers with none
MAX_BYTES = 16 << 20  # bytes of one answer
PARTITION_MAX_BYTES = 1 << 20
DECOMPRESSED_MAX = 1 << 30  # bytes that the batches of one answer may decompress to
_MOVING = 10.0  # seconds within which brokers agree on a leader
_BACKOFF = 0.1  # seconds; Kafka's retry.backoff.ms


class Record(NamedTuple):
    """One record. `timestamp` in ms; `headers` in order, names may repeat."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


async def find_offset(cluster: Cluster, topic: str, partition: int, timestamp: int) -> int:
    """ListOffsets for one partition: `EARLIEST`, `LATEST` or a time in ms (-1 if no record is as late).

    A leader that has moved is looked for again. Raises `ClientError`.
    """
    moving_until = asyncio.get_running_loop().time() + _MOVING
    while True:
        leader = await cluster.leader(topic, partition)
        answer = await leader.request(LIST_OFFSETS, list_offsets_request({(topic, partition): timestamp}))
        try:
            return read_offsets(answer)[topic, partition]
        except BrokerError as error:
            moved = error.error is Errors.NOT_LEADER_OR_FOLLOWER
            if not moved or asyncio.get_running_loop().time() > moving_until:
                raise
        await asyncio.sleep(_BACKOFF)
        await cluster.metadata([topic])


class Consumer:
    """Reads partitions of a topic: `fetch` the next records, or `async for records in Consumer(...).poll()`.

    `positions`: by partition, the offset to read next. A partition that is taken out of them is not read any more.
    """

    def __init__(self, cluster: Cluster, topic: str, positions: Mapping[int, int]) -> None:
        self.positions = dict(positions)
        self._cluster = cluster
        self._topic = topic

    async def fetch(self) -> list[tuple[int, Iterator[Record]]]:
        """Records by partition, each partition's in offset order; none if none come soon. Raises `ClientError`."""
        by_leader: dict[Connection, list[int]] = {}
        for partition in self.positions:
            by_leader.setdefault(await self._cluster.leader(self._topic, partition), []).append(partition)
        # One answer of each leader in turn: the order of records does not depend on which broker is faster.
        answers = await asyncio.gather(*(self._fetch(*each) for each in by_leader.items()))
        rows = [row for answer in answers for row in answer if row["records"]]
        return [(row["partition_index"], self._unpack(row["partition_index"], row["records"])) for row in rows]

    async def poll(self) -> AsyncIterator[Iterator[Record]]:
        """The records of one partition at a time, perhaps none. Never ends. Raises `ClientError`."""
        while True:
            for _, records in await self.fetch():
                yield records

    async def _fetch(self, leader: Connection, partitions: list[int]) -> list[dict[str, Any]]:
        request = fetch_request(
            self._topic,
            {partition: self.positions[partition] for partition in partitions},
            max_bytes=MAX_BYTES,
            partition_max_bytes=PARTITION_MAX_BYTES,
            max_wait=MAX_WAIT,
        )
        return read_fetch(self._topic, await leader.request(FETCH, request))

    def _unpack(self, partition: int, data: memoryview) -> Iterator[Record]:
        """The sound batches at the front. Raises `ClientError` where the first one is not (as check.crcs of Java's)."""
        batches = batch_headers(data, True)
        if not batches:
            if damaged := batch_headers(data, False):
                first, last = damaged[0].base_offset, damaged[0].last_offset
                raise ClientError(
                    f"topic {self._topic!r}, partition {partition}: the batch with offset {first} fails its checksum; "
                    f"go on behind it, from offset {last + 1}, and look at the broker's disk"
                )
            return iter(())
        whole = data[: batches[-1].start + batches[-1].size]  # the broker may have cut off the last batch
        first, self.positions[partition] = self.positions[partition], batches[-1].last_offset + 1
        return unpack(partition, to_columns(whole, DECOMPRESSED_MAX), first)


def unpack(partition: int, found: Mapping[str, Any], first: int) -> Iterator[Record]:
    """Columns -> records from offset `first` on: a batch may begin before the offset that the request named."""
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
