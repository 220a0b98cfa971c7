"""The load generator of benchmarks/load: built when needed, run once per measurement."""

import json
import shutil
import subprocess
from pathlib import Path

from benchmarks.peers.process import Peer, PeerError

FOLDER = Path(__file__).with_name("load")
PROGRAM = FOLDER / "target" / "release" / "korvet-load"


def build() -> None:
    """Compile it; quick when nothing changed. Raises PeerError without a Rust toolchain."""
    cargo = shutil.which("cargo")
    if cargo is None:
        raise PeerError("a Rust toolchain is needed to build the load generator: there is no `cargo` on the path")
    done = subprocess.run([cargo, "build", "--release", "--locked"], cwd=FOLDER, capture_output=True, text=True)
    if done.returncode != 0:
        raise PeerError(f"the load generator does not compile:\n{done.stderr[-3000:]}")


def load(peer: Peer, mode: str, topic: str, *arguments: str) -> dict[str, float]:
    """Run one mode against a broker or Redis: its figures. Raises PeerError when an answer was wrong."""
    command = [str(PROGRAM), mode, "--broker", peer.address, "--topic", topic, *arguments]
    if mode not in ("create", "delete"):
        command += [word for pid in peer.pids for word in ("--pid", str(pid))]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise PeerError(f"{peer.name}: {' '.join(command[1:])}: {done.stderr.strip()}")
    figures: dict[str, float] = json.loads(done.stdout)
    return figures
