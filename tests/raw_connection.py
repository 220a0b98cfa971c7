"""Raw frames to a broker process, and what a topic holds, told from them."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from batches import read_rows, read_values
from kafka_server import METADATA, RawClient


@asynccontextmanager
async def connect(port: int) -> AsyncIterator[RawClient]:
    """A raw client of the broker on this port of the machine."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield RawClient(reader, writer)
    finally:
        writer.close()


async def read_log(client: RawClient, topic: str, index: int = 0) -> list[bytes]:
    """The values of all records that consumers may read of one partition, in order."""
    values: list[bytes] = []
    offset = 0
    while True:
        row = await client.fetch(topic, offset, index=index)
        assert row["error_code"] == 0, row
        if offset == row["high_watermark"]:
            return values
        page = read_values(row["records"])
        assert page, f"nothing can be read at {offset}, below {row['high_watermark']}"
        values += page
        offset += len(page)


async def read_places(client: RawClient, topic: str, index: int = 0, start: int = 0) -> list[tuple[int, bytes]]:
    """Offset and value of all records that consumers may read of one partition; offsets may have gaps."""
    found: list[tuple[int, bytes]] = []
    while True:
        row = await client.fetch(topic, start, index=index)
        assert row["error_code"] == 0, row
        page = [each for each in read_rows(row["records"]) if each[0] >= start]
        if not page:
            return found  # the end, or nothing but a gap before it
        found += page
        start = page[-1][0] + 1


async def find_leaders(client: RawClient, topic: str) -> list[int]:
    """The port of each partition's leader, -1 where there is none."""
    answer = await client.ask(METADATA, 9, topics=[{"name": topic}])
    ports = {row["node_id"]: row["port"] for row in answer["brokers"]}
    rows = sorted(answer["topics"][0]["partitions"], key=lambda row: row["partition_index"])
    return [ports.get(row["leader_id"], -1) for row in rows]


async def start_producer(client: RawClient) -> tuple[int, int]:
    """A new idempotent producer's id and epoch."""
    known: dict[str, Any] = await client.ask(22, 4, transaction_timeout_ms=1000)
    return known["producer_id"], known["producer_epoch"]


def reset(writer: asyncio.StreamWriter) -> None:
    """Close at once with RST: what was not sent yet is lost, and the other side sees an error."""
    raw = writer.get_extra_info("socket")
    if raw is None or raw.fileno() < 0:
        return  # closed already
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
