"""Raw frames to a broker process, and what a topic holds, told from them."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from batches import read_values
from kafka_server import RawClient


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


async def start_producer(client: RawClient) -> tuple[int, int]:
    """A new idempotent producer's id and epoch."""
    known: dict[str, Any] = await client.ask(22, 4, transaction_timeout_ms=1000)
    return known["producer_id"], known["producer_epoch"]


def reset(writer: asyncio.StreamWriter) -> None:
    """Close at once with RST: what was not sent yet is lost, and the other side sees an error."""
    raw = writer.get_extra_info("socket")
    if raw is None:
        return  # closed already
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
