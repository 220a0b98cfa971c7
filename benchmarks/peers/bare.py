"""A broker that only answers (bare_loop.py), as a peer."""

import sys
from pathlib import Path

from benchmarks.peers.process import Peer, free_ports

ROOT = Path(__file__).parents[2]  # where the program finds this package


class Bare(Peer):
    """`with Bare(directory) as bare:` answers on a free port."""

    name = "bare uvloop"

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, free_ports(1)[0])
        self.environment = {"PYTHONPATH": str(ROOT)}

    def command(self) -> list[str]:
        return [sys.executable, "-m", "benchmarks.peers.bare_loop", str(self.port)]
