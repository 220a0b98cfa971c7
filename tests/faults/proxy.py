"""A TCP proxy between a client and a broker that does what networks do: slice, cut, hold back, lose."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field

from raw_connection import reset
from receive_queue import ReceiveQueue

READ = 1 << 16  # bytes at a time, where nothing is said
NEVER = 1 << 62


@dataclass
class Fault:
    """The faults of one connection. Bytes are counted per direction, from its first one."""

    slice: int | None = None  # bytes that the other side reads at a time, at most; None: as they come
    cut_up: int = NEVER  # after so many bytes to the broker both sides are reset
    cut_down: int = NEVER  # after so many bytes to the client both sides are reset
    answers: asyncio.Event | None = None  # the broker's bytes are held back until this is set
    requests: asyncio.Event | None = None  # the client's bytes are held back until this is set


@dataclass
class Proxy:
    """Listens on `port`. `answered` is set as soon as a broker has said something to anybody."""

    port: int = 0
    accepted: int = 0
    answered: asyncio.Event = field(default_factory=asyncio.Event)


@asynccontextmanager
async def start_proxy(broker: int, fault: Callable[[int], Fault], port: int = 0) -> AsyncIterator[Proxy]:
    """A proxy to the broker on port `broker`; `fault` says, by the connection's number from 0, what it meets."""
    proxy = Proxy()
    passing: set[asyncio.Task[None]] = set()
    idle = asyncio.Event()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number, proxy.accepted = proxy.accepted, proxy.accepted + 1
        try:
            broker_reader, broker_writer = await asyncio.open_connection("127.0.0.1", broker)
        except OSError:
            reset(writer)
            return
        met = fault(number)
        up = asyncio.create_task(_pass(reader, broker_writer, met.slice, met.cut_up, met.requests, None))
        down = asyncio.create_task(_pass(broker_reader, writer, met.slice, met.cut_down, met.answers, proxy.answered))
        passing.update((up, down))
        # Either side's end is the end of both: half-closed connections are another test's.
        await asyncio.wait([up, down], return_when=asyncio.FIRST_COMPLETED)
        up.cancel()
        down.cancel()
        for ended in await asyncio.gather(up, down, return_exceptions=True):
            assert ended is None or isinstance(ended, OSError | asyncio.CancelledError), ended
        passing.difference_update((up, down))
        reset(writer)
        reset(broker_writer)
        idle.set()

    server = await asyncio.start_server(accept, "127.0.0.1", port)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        for task in passing:
            task.cancel()
        while passing:
            idle.clear()
            await idle.wait()


async def _pass(
    source: asyncio.StreamReader,
    target: asyncio.StreamWriter,
    size: int | None,
    most: int,
    may_go: asyncio.Event | None,
    seen: asyncio.Event | None,
) -> None:
    passed = 0
    with closing(ReceiveQueue(target.get_extra_info("socket"))) as queue:
        while passed < most and (data := await source.read(min(size or READ, most - passed))):
            if seen is not None:
                seen.set()
            if may_go is not None:
                await may_go.wait()
            target.write(data)
            await target.drain()
            passed += len(data)
            if size is not None:
                await queue.empty(passed)
    # What was let through shall arrive: the reset comes after it.
    while target.transport.get_write_buffer_size():
        await asyncio.sleep(0)
