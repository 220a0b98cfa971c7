"""A real ZooKeeper for tests: Debian's package, on a free port over a private directory, killed and paused at will."""

import asyncio
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kazoo.client import KazooClient

from pausable import PausableProcess
from redis_server import free_port
from requirement import missing, require

JAR = Path("/usr/share/java/zookeeper.jar")  # its manifest names the others
READY_WITHIN = 200.0  # seconds: a busy machine may take long
WITHIN = 120.0  # seconds that something may take to be seen there
TICK = 100  # ms: ZooKeeper looks for expired sessions so often
# Quick to start, and small. AdminServer would want another port.
JAVA = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx96M", "-Dzookeeper.admin.enableServer=false")
CONFIG = f"""\
tickTime={TICK}
minSessionTimeout={2 * TICK}
maxSessionTimeout=60000
maxClientCnxns=0
clientPortAddress=127.0.0.1
4lw.commands.whitelist=srvr
"""


class ZooKeeperServer(PausableProcess):
    """One server; port and data stay the same over restarts."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self._java = require("java")
        if not JAR.exists():
            missing("ZooKeeper is not installed on this machine")
        directory.mkdir(parents=True, exist_ok=True)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> "ZooKeeperServer":
        """Start and wait until it answers."""
        assert self.process is None
        config = self.directory / "zoo.cfg"
        config.write_text(f"{CONFIG}clientPort={self.port}\ndataDir={self.directory}\n")
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        with (self.directory / "zookeeper.log").open("ab") as log:
            command = [self._java, *JAVA, "-cp", str(JAR), main, str(config)]
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.directory)
        deadline = time.monotonic() + READY_WITHIN
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                said = (self.directory / "zookeeper.log").read_text()
                raise AssertionError(f"ZooKeeper did not become ready:\n{said[-3000:]}")
            time.sleep(0.02)
        return self

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1.0) as connection:
                connection.sendall(b"srvr")  # `ruok` is answered before sessions are served
                return connection.recv(17) == b"Zookeeper version"
        except OSError:
            return False

    def stop(self, with_signal: int = signal.SIGKILL) -> None:
        """End the process; what was written is there after the next start."""
        if self.process is not None:
            process, self.process = self.process, None
            process.send_signal(with_signal)
            process.wait(60)

    def __enter__(self) -> "ZooKeeperServer":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop(signal.SIGKILL if sys.exc_info()[0] else signal.SIGTERM)


@contextmanager
def connect(server: ZooKeeperServer, chroot: str = "") -> Iterator[KazooClient]:
    """A client of the test's own, that sees the nodes as those of Kafka 0.7 do."""
    client = KazooClient(server.address + chroot, timeout=30.0)
    client.start(timeout=READY_WITHIN)
    try:
        yield client
    finally:
        client.stop()
        client.close()


async def until(what: Callable[[], object]) -> None:
    """Wait until it is so; it is asked in a thread, as ZooKeeper may be away meanwhile."""
    deadline = time.monotonic() + WITHIN
    while not await asyncio.to_thread(what):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)
