"""A bare relay to Redis (relay_loop.py), as a peer."""

import sys
from pathlib import Path

from benchmarks.peers.bare import ROOT
from benchmarks.peers.process import Peer, free_ports
from benchmarks.peers.redis import Redis


class Relay(Peer):
    """`with Relay(directory, redis, "a") as relay:` answers on a free port. `way`: of those in relay_loop.py."""

    def __init__(self, directory: Path, redis: Redis, way: str) -> None:
        super().__init__(directory, free_ports(1)[0])
        self.name = f"relay {way}"
        self.environment = {"PYTHONPATH": str(ROOT)}
        self.redis = redis
        self.way = way

    @property
    def pids(self) -> list[int]:
        return [self.pid, self.redis.pid]

    def command(self) -> list[str]:
        return [sys.executable, "-m", "benchmarks.peers.relay_loop", self.way, str(self.port), str(self.redis.port)]
