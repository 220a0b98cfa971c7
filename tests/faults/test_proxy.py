"""The proxy's slices are what the other side reads: seen by the one that reads them."""

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from faults.proxy import Fault, start_proxy
from kafka_server import run

SENT = bytes(range(250)) * 12


@contextmanager
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def read_sizes(connection: socket.socket, count: int) -> list[int]:
    """How many bytes each read took, of a reader that takes whatever is there, and is slow now and then."""
    sizes, seen = [], b""
    while len(seen) < count:
        data = connection.recv(1 << 16)
        assert data, "it ended early"
        sizes.append(len(data))
        seen += data
        if len(sizes) % 500 == 0:
            time.sleep(0.02)
    assert seen == SENT[:count]
    return sizes


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_finding_6_1_each_slice_is_read_by_itself_both_ways(size: int) -> None:
    async def scenario() -> None:
        with listening() as server:
            async with start_proxy(server.getsockname()[1], lambda _: Fault(slice=size)) as proxy:
                client = await asyncio.to_thread(socket.create_connection, ("127.0.0.1", proxy.port))
                broker, _ = await asyncio.to_thread(server.accept)
                with client, broker:
                    for sender, reader in ((client, broker), (broker, client)):
                        sender.sendall(SENT)  # at once
                        sizes = await asyncio.to_thread(read_sizes, reader, len(SENT))
                        assert max(sizes) <= size
                        assert len(sizes) == -(-len(SENT) // size)

    run(scenario)


def test_what_is_not_sliced_goes_through_at_once() -> None:
    async def scenario() -> None:
        with listening() as server:
            async with start_proxy(server.getsockname()[1], lambda _: Fault()) as proxy:
                client = await asyncio.to_thread(socket.create_connection, ("127.0.0.1", proxy.port))
                broker, _ = await asyncio.to_thread(server.accept)
                with client, broker:
                    client.sendall(SENT)
                    async with asyncio.timeout(120):  # nobody takes any of it meanwhile
                        while len(await asyncio.to_thread(broker.recv, 1 << 16, socket.MSG_PEEK)) < len(SENT):
                            await asyncio.sleep(0.01)

    run(scenario)


def test_a_reader_that_ends_in_the_middle_of_the_slices() -> None:
    async def scenario() -> None:
        with listening() as server:
            async with start_proxy(server.getsockname()[1], lambda _: Fault(slice=1)) as proxy:
                client = await asyncio.to_thread(socket.create_connection, ("127.0.0.1", proxy.port))
                broker, _ = await asyncio.to_thread(server.accept)
                with client:
                    client.sendall(SENT)
                    with broker:
                        assert await asyncio.to_thread(broker.recv, 1 << 16) == SENT[:1]
                    with suppress(ConnectionResetError):
                        assert await asyncio.to_thread(client.recv, 1) == b""

    run(scenario)
