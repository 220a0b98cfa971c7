"""Korvet Fast as installed beside this Python: what `pip install` gave, not the source tree."""

import sys
from pathlib import Path

from benchmarks.peers.process import Peer, PeerError, free_ports
from benchmarks.peers.redis import Redis


class Korvet(Peer):
    """`with Korvet(directory, "name=value") as korvet:` serves on a free port, its store in `directory` or `redis`.

    `namespace`: what its keys in Redis begin with. Brokers of one namespace are a cluster.
    """

    name = "Korvet Fast"

    def __init__(self, directory: Path, *settings: str, redis: Redis | None = None, namespace: str = "korvet") -> None:
        super().__init__(directory, free_ports(1)[0])
        self.settings = settings
        self.redis = redis
        self.namespace = namespace

    @property
    def pids(self) -> list[int]:
        return [self.pid, self.redis.pid] if self.redis else [self.pid]

    def command(self) -> list[str]:
        program = Path(sys.executable).with_name("korvet-fast")
        if not program.exists():
            raise PeerError("korvet-fast is not installed beside this Python: run `make wheel-install` first")
        store = f"{self.redis.url}?namespace={self.namespace}" if self.redis else f"file:{self.directory / 'data'}"
        settings = [word for setting in self.settings for word in ("--set", setting)]
        return [str(program), "serve", "--store", store, "--listen", f"kafka://{self.address}", *settings]
