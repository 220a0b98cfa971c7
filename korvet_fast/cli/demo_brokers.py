"""Three brokers over files of their own, as processes that keep each other's copies: what `demo-cluster` shows."""

import asyncio
import contextlib
import secrets
import signal
import socket
import sys
from collections import deque
from pathlib import Path
from types import TracebackType
from typing import Self

from korvet_fast.client.protocol.errors import ClientError
from korvet_fast.endpoint import Address

BROKERS = (1, 2, 3)
# A broker that is gone is out of sync after a second and a half: nobody watches a demonstration for ten.
QUICK = ("replica.lag.timeout=1500", "broker.heartbeat.interval.ms=300", "broker.session.timeout.ms=1500")
HOST = "127.0.0.1"
LINES = 20  # of a broker's log that are told if it fails


class DemoBrokers:
    """`async with` starts the brokers and ends them. `addresses`: of their listeners for Kafka's clients, by id."""

    def __init__(self, place: Path) -> None:
        ports = _find_ports(2 * len(BROKERS))
        self.addresses = {broker: Address(HOST, ports.pop()) for broker in BROKERS}
        self._peers = {broker: Address(HOST, ports.pop()) for broker in BROKERS}
        self._place = place
        self._secret = place / "secret"
        self._secret.write_text(secrets.token_hex())
        self._processes: dict[int, asyncio.subprocess.Process] = {}
        self._logs: dict[int, deque[str]] = {}
        self._reading: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        starting = [asyncio.create_task(self.start(broker)) for broker in BROKERS]
        try:
            await asyncio.gather(*starting)  # one alone waits for another
        except BaseException:
            for task in starting:
                task.cancel()
            await asyncio.wait(starting)
            await self._end(signal.SIGKILL)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._end(signal.SIGTERM if error is None else signal.SIGKILL)

    async def start(self, broker: int) -> None:
        """Start a broker; returns when it is ready. Raises `ClientError` if it ends instead."""
        command = ["-m", "korvet_fast", "serve", "--store", f"file:{self._place / f'broker-{broker}'}"]
        command += ["--listen", f"kafka://{self.addresses[broker]}", "--listen", f"replica://{self._peers[broker]}"]
        peers = ",".join(f"{other}@{address}" for other, address in self._peers.items())
        for setting in (f"node.id={broker}", f"replication.peers={peers}", f"replication.secret.file={self._secret}"):
            command += ["--set", setting]
        for setting in QUICK:
            command += ["--set", setting]
        process = await asyncio.create_subprocess_exec(
            sys.executable, *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        self._processes[broker] = process
        log = self._logs[broker] = deque(maxlen=LINES)
        assert process.stdout is not None
        while line := await process.stdout.readline():
            log.append(line.decode(errors="replace"))
            if b"ready kafka://" in line:
                task = asyncio.create_task(_read_on(process.stdout, log))
                self._reading.add(task)
                return
        raise ClientError(f"broker {broker} has ended before it was ready:\n{''.join(log)}")

    async def kill(self, broker: int) -> None:
        """kill -9: the broker flushes nothing, and says nothing."""
        process = self._processes.pop(broker)
        process.kill()
        await process.wait()

    async def _end(self, with_signal: signal.Signals) -> None:
        for process in self._processes.values():
            with contextlib.suppress(ProcessLookupError):  # it has ended already
                process.send_signal(with_signal)
        for process in self._processes.values():
            await process.wait()
        if self._reading:
            await asyncio.wait(self._reading)


async def _read_on(output: asyncio.StreamReader, log: deque[str]) -> None:
    while line := await output.readline():
        log.append(line.decode(errors="replace"))


def _find_ports(count: int) -> list[int]:
    """Ports that nobody listens on."""
    with contextlib.ExitStack() as stack:
        found = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in found:
            one.bind((HOST, 0))
        return [one.getsockname()[1] for one in found]
