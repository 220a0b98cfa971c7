"""`serve --workers` as a process of tests, whose workers can be killed one by one."""

import contextlib
import os
import signal
import socket
import time
from pathlib import Path

from broker_process import BrokerProcess
from kafka_server import run
from raw_connection import connect, find_leaders
from redis_server import free_port

WITHIN = 240.0  # seconds: a busy machine may take long


class Workers(BrokerProcess):
    """A parent with `count` workers over one directory; ports stay the same over restarts."""

    def __init__(self, data: Path, count: int, *settings: str) -> None:
        first = _find_free_ports(count - 1)
        super().__init__(
            data, *settings, arguments=("--workers", str(count), "--worker-ports", f"{first}-{first + count - 2}")
        )
        self.count = count
        self._first = first
        self._pids: dict[int, int] = {}

    @property
    def ports(self) -> list[int]:
        """Of the listeners of all workers."""
        return [self.port, *range(self._first, self._first + self.count - 1)]

    @property
    def addresses(self) -> str:
        """What clients are given."""
        return ",".join(f"127.0.0.1:{port}" for port in self.ports)

    def start(self) -> "Workers":
        """Start, and wait until all workers serve."""
        before = self._count_ready()
        super().start()
        deadline = time.monotonic() + WITHIN
        while self._count_ready() < before + self.count:
            assert time.monotonic() < deadline, "".join(self.log)
            time.sleep(0.02)
        self._pids = dict(enumerate(sorted(self.find_children()), 1))
        return self

    def _count_ready(self) -> int:
        return sum("ready kafka://" in line for line in self.log)

    def find_children(self) -> list[int]:
        """The processes that the parent has started, and that it has not yet seen ending."""
        return [int(pid) for pid in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()]

    def pid_of(self, worker: int) -> int:
        """The process of a worker, once the parent has started it again."""
        deadline = time.monotonic() + WITHIN
        while self._pids[worker] not in (children := self.find_children()):
            others = {pid for number, pid in self._pids.items() if number != worker}
            fresh = [pid for pid in children if pid not in others]
            if fresh:
                self._pids[worker] = fresh[0]
            assert time.monotonic() < deadline, "".join(self.log)
            time.sleep(0.01)
        return self._pids[worker]

    def signal_worker(self, worker: int, number: int = signal.SIGKILL) -> None:
        """Send one worker a signal."""
        os.kill(self.pid_of(worker), number)

    def wait_for_line(self, text: str) -> None:
        """Until one of them, or the parent, has said this."""
        deadline = time.monotonic() + WITHIN
        while not any(text in line for line in list(self.log)):
            assert time.monotonic() < deadline, "".join(self.log[-30:])
            time.sleep(0.02)

    def wait_for_leaders(self, topic: str, *workers: int) -> None:
        """Until just these workers lead the topic's partitions, as each of them tells."""
        expected = {self.ports[worker - 1] for worker in workers}
        deadline = time.monotonic() + WITHIN
        for worker in workers:
            while (found := _find_leaders(self.ports[worker - 1], topic)) != expected:
                assert time.monotonic() < deadline, (found, "".join(self.log[-30:]))
                time.sleep(0.02)


def _find_leaders(port: int, topic: str) -> set[int]:
    """The ports of the leaders; -1 among them where nobody leads, and nothing where nobody answers."""
    found: set[int] = set()

    async def ask() -> None:
        async with connect(port) as client:
            found.update(await find_leaders(client, topic))

    try:
        run(ask)
    except OSError:
        return set()
    return found


def _find_free_ports(count: int) -> int:
    """The first of so many ports in a row that nobody listens on."""
    while True:
        first = free_port()
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(first + 1, first + count):
                probe = stack.enter_context(socket.socket())
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("127.0.0.1", port))
            return first
