"""A broker or store process on this machine: started, waited for, watched and stopped, by its process id."""

import os
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Self

READY_WITHIN = 180.0
STOPPED_WITHIN = 120.0


class PeerError(Exception):
    """A peer cannot be built, started or stopped; the text says what is missing or what it printed."""


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [listener.getsockname()[1] for listener in sockets]
    for listener in sockets:
        listener.close()
    return ports


class Peer:
    """One program as a child process, its output in `directory`/log.

    `ready_seconds`: from its start until `is_ready`. `environment`: variables it has beside ours.
    """

    name = ""
    environment: Mapping[str, str] = MappingProxyType({})

    def __init__(self, directory: Path, port: int) -> None:
        self.directory = directory
        self.port = port
        self.ready_seconds = 0.0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "not started"
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it was started and not stopped since."""
        return self._process is not None

    @property
    def pids(self) -> list[int]:
        """The processes whose work counts as this peer's."""
        return [self.pid]

    def command(self) -> list[str]:
        """The command line to execute."""
        raise PeerError(f"{type(self).__name__} has no command")

    def prepare(self) -> None:
        """Everything before the start that does not count as starting: by default nothing but the directory."""
        self.directory.mkdir(parents=True, exist_ok=True)

    def is_ready(self) -> bool:
        """Whether the peer does its work: by default, whether it answers a Metadata request with a broker."""
        return answers(self.port)

    def start(self) -> Self:
        """Start, and return when it is ready. Raises PeerError with the log's end."""
        self.prepare()
        started = time.monotonic()
        with (self.directory / "log").open("ab") as log:
            environment = {**os.environ, **self.environment}
            self._process = subprocess.Popen(
                self.command(), stdout=log, stderr=log, cwd=self.directory, env=environment
            )
        while not self.is_ready():
            if self._process.poll() is not None or time.monotonic() > started + READY_WITHIN:
                self.stop()
                raise PeerError(f"{self.name} did not become ready:\n{self.log_end()}")
            time.sleep(0.005)
        self.ready_seconds = time.monotonic() - started
        return self

    def stop(self) -> None:
        """SIGTERM, then SIGKILL if it takes too long."""
        if self._process is None:
            return
        process, self._process = self._process, None
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOPPED_WITHIN)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def kill(self) -> None:
        """SIGKILL: it ends as if the machine had."""
        assert self._process is not None, "not started"
        process, self._process = self._process, None
        process.kill()
        process.wait()

    def log_end(self) -> str:
        """The last lines it printed."""
        return "\n".join((self.directory / "log").read_text(errors="replace").splitlines()[-30:])

    def resident_mb(self) -> float:
        """Resident memory now, in MB of 10^6 bytes."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def answers(port: int) -> bool:
    """Whether a Metadata v1 request for no topics is answered with a broker and a controller."""
    request = struct.pack(">hhihi", 3, 1, 7, -1, 0)
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            answer = connection.makefile("rb")
            (length,) = struct.unpack(">i", answer.read(4))
            correlation, brokers = struct.unpack(">ii", answer.read(length)[:8])
    except (OSError, struct.error):  # not listening yet, or closed while it starts
        return False
    return bool(correlation == 7 and brokers > 0)
