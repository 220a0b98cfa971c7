"""Korvet Fast as installed beside this Python: what `pip install` gave, not the source tree."""

import sys
from pathlib import Path

from benchmarks.peers.process import Peer, PeerError, free_ports


class Korvet(Peer):
    """`with Korvet(directory, "name=value") as korvet:` serves on a free port, its store in `directory`."""

    name = "Korvet Fast"

    def __init__(self, directory: Path, *settings: str) -> None:
        super().__init__(directory, free_ports(1)[0])
        self.settings = settings

    def command(self) -> list[str]:
        program = Path(sys.executable).with_name("korvet-fast")
        if not program.exists():
            raise PeerError("korvet-fast is not installed beside this Python: run `make build` first")
        listen = ["--listen", f"kafka://{self.address}"]
        settings = [word for setting in self.settings for word in ("--set", setting)]
        return [str(program), "serve", "--store", f"file:{self.directory / 'data'}", *listen, *settings]
