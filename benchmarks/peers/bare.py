"""A broker that only answers (bare_loop.py), as a peer."""

import sys
from pathlib import Path

from benchmarks.peers.process import Peer, free_ports

PROGRAM = Path(__file__).with_name("bare_loop.py")


class Bare(Peer):
    """`with Bare(directory) as bare:` answers on a free port."""

    name = "bare uvloop"

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, free_ports(1)[0])

    def command(self) -> list[str]:
        return [sys.executable, str(PROGRAM), str(self.port)]
