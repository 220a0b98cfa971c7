"""One client attacks a broker while another one asks: the longest wait of the second one, and the broker's memory.

Machines have other work too: of a wait no more counts than the processor time that the broker had meanwhile, and not
that for which the client itself had no processor. Each attack is tried up to three times; the best of them counts.
"""

import asyncio
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from broker_process import BrokerProcess
from kafka_messages import CATALOG
from kafka_server import RawClient, frame
from raw_connection import connect

BOUND = 0.1  # seconds that the second client may wait
ATTEMPTS = 3
PARTITIONS = 20_000  # of the topic `wide`


class SecondClient(threading.Thread):
    """Asks for the versions every few milliseconds, and remembers the longest wait for an answer."""

    def __init__(self, broker: BrokerProcess) -> None:
        super().__init__(daemon=True)
        self._broker = broker
        self._socket = socket.create_connection(("127.0.0.1", broker.port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._over = threading.Event()
        self.longest = 0.0
        self.asking = threading.Event()

    def run(self) -> None:
        ask = frame(CATALOG[18].request.encode({"api_key": 18, "api_version": 0, "correlation_id": 1}, 0))
        while not self._over.wait(0.003):
            began, busy = read_clock(), read_busy(self._broker)
            self._socket.sendall(ask)
            read_answer(self._socket)
            self.longest = max(self.longest, min(read_clock() - began, read_busy(self._broker) - busy))
            self.asking.set()

    def finish(self) -> float:
        self._over.set()
        self.join()
        self._socket.close()
        return self.longest


def read_clock() -> float:
    """Seconds: without those in which the machine had no processor for this thread, or for the one that attacks."""
    threads = (threading.get_native_id(), threading.main_thread().native_id)
    kept = (Path(f"/proc/self/task/{thread}/schedstat").read_text().split()[1] for thread in threads)
    return time.monotonic() - sum(map(int, kept)) / 1e9


def read_busy(broker: BrokerProcess) -> float:
    """Seconds that the broker's threads were running, all together."""
    threads = Path(f"/proc/{broker.pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


def read_answer(source: socket.socket) -> bytes:
    def read(size: int) -> bytearray:
        data = bytearray(size)
        rest = memoryview(data)
        while rest:
            got = source.recv_into(rest)
            assert got, "the broker closed the connection"
            rest = rest[got:]
        return data

    return bytes(read(int.from_bytes(read(4), "big")))


def attack(broker: BrokerProcess, key: int, version: int, **values: Any) -> tuple[dict[str, Any], float]:
    """The answer to one request, and the longest wait of another client while it was at work."""
    header = {"api_key": key, "api_version": version, "correlation_id": 7, "client_id": "attacker"}
    request = frame(CATALOG[key].request.encode(header | values, version))
    waits = []
    for _ in range(ATTEMPTS):
        second = SecondClient(broker)
        second.start()
        second.asking.wait()
        with socket.create_connection(("127.0.0.1", broker.port)) as first:
            first.sendall(request)
            answer = read_answer(first)
        waits.append(second.finish())
        print(f"{CATALOG[key].name}: {len(request)} B asked, {len(answer)} B answered, longest wait {waits[-1]:.3f} s")
        if waits[-1] < BOUND:
            break
    return CATALOG[key].response.decode(answer, version, 1_000_000), min(waits)


def set_up(port: int, work: Callable[[RawClient], Any]) -> Any:
    async def run() -> Any:
        async with connect(port) as client:
            return await work(client)

    return asyncio.run(run())


def peak_memory(broker: BrokerProcess) -> int:
    """Bytes of memory that the broker had at most."""
    with Path(f"/proc/{broker.pid}/status").open() as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))


def forget_peak(broker: BrokerProcess) -> int:
    """Begin anew with `peak_memory`; what it has now."""
    Path(f"/proc/{broker.pid}/clear_refs").write_text("5")
    return peak_memory(broker)
