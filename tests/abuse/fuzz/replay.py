"""Bursts that a run of the fuzzer left, sent once more: `python -m abuse.fuzz.replay DIRECTORY PORT`."""

import sys
import time
from pathlib import Path

from abuse.wire import Line, encode
from kafka_server import API_VERSIONS

SLOW = 0.1  # seconds after which a burst is named


def replay(directory: Path, port: int) -> None:
    """Send every burst on a connection of its own, and ask for ApiVersions on another one."""
    for file in sorted(directory.glob("*.bin")):
        with Line(port) as line, Line(port) as other:
            line.socket.settimeout(0.05)
            start = time.monotonic()
            try:
                line.send(file.read_bytes())
                line.socket.recv(1 << 20)
            except OSError as error:
                print(f"{file.name}: {error}")
            other.send(encode(API_VERSIONS, 0))
            other.receive()
            took = time.monotonic() - start
            if took > SLOW:
                print(f"{file.name}: others waited {took:.3f} s")


if __name__ == "__main__":
    replay(Path(sys.argv[1]), int(sys.argv[2]))
