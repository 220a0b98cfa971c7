"""A client that asks small things all the time, and must not notice what another one does to the broker.

How long it had to wait is told by the clock, less the time in which the machine did other things; and by how long the
broker's loop was at work meanwhile.
"""

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from broker_process import BrokerProcess
from kafka_server import API_VERSIONS, RawClient

MIB = 1 << 20
WAIT = 2.0  # seconds that a small request of somebody else may take
WORK = 0.25  # and seconds that the broker's loop may work for others meanwhile


async def connect(broker: BrokerProcess, address: str = "127.0.0.1") -> RawClient:
    """A connection from this address."""
    opened = asyncio.open_connection("127.0.0.1", broker.port, limit=4 * MIB, local_addr=(address, 0))
    return RawClient(*await opened)


def open_socket(broker: BrokerProcess, receive: int = 0) -> socket.socket:
    """A connection; `receive`: bytes that the kernel keeps for it at most."""
    raw = socket.socket()
    if receive:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
    raw.settimeout(60)
    raw.connect(("127.0.0.1", broker.port))
    return raw


class Witness:
    """A client that asks small things all the time. `worst`: the longest it waited for an answer, in seconds.

    `most`: of one wait, how many seconds the broker's loop was at work.
    """

    def __init__(self, client: RawClient, broker: BrokerProcess) -> None:
        self._client = client
        self._broker = broker
        self.worst = self.most = 0.0
        self.asked = 0

    async def ask(self) -> None:
        while True:
            began = read_times(self._broker)
            await self._client.ask(API_VERSIONS, 3, client_software_name="x", client_software_version="1")
            ended = read_times(self._broker)
            self.worst = max(self.worst, ended.wall - began.wall)
            self.most = max(self.most, ended.work - began.work)
            self.asked += 1
            await asyncio.sleep(0.002)


class Times(NamedTuple):
    """Seconds. `wall`: without those in which the machine had no processor for the broker's loop, or for the test's.

    `work`: in which the broker's loop was at work.
    """

    wall: float
    work: float


def read_times(broker: BrokerProcess) -> Times:
    """As of now; what counts is how much they grow."""
    loops = f"/proc/{broker.pid}/task/{broker.pid}/schedstat", f"/proc/self/task/{threading.get_native_id()}/schedstat"
    (work, kept), (_, kept_here) = (map(int, Path(loop).read_text().split()[:2]) for loop in loops)
    return Times(time.monotonic() - (kept + kept_here) / 1e9, work / 1e9)


@asynccontextmanager
async def witnessed(broker: BrokerProcess) -> AsyncIterator[Witness]:
    """Around an attack: a client is served all the while, and promptly."""
    client = await connect(broker)
    witness = Witness(client, broker)
    task = asyncio.create_task(witness.ask())
    try:
        yield witness
        await asyncio.sleep(0.1)
        if task.done():
            task.result()  # it was hung up on
        assert witness.asked > 10
        assert witness.worst < WAIT, f"a wait of {witness.worst:.3f} s"
        assert witness.most < WORK, f"{witness.most:.3f} s of work in one wait"
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        client.writer.close()


async def beside(work: Callable[..., object], *arguments: object) -> None:
    """In a thread."""
    await asyncio.get_running_loop().run_in_executor(None, work, *arguments)
