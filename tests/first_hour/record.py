"""From a fresh clone to a record of one's own: the commands of README.md, and how long each takes.

Exit status 1 if a command fails, or if all of them together take longer than a new user should have to wait.
"""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATIENCE = 180.0  # seconds for all of it, on two processors

PROGRAM = """
import subprocess, sys
from korvet_fast.client import Producer

with Producer(sys.argv[1]) as producer:
    print("stored at offset", producer.send("orders", b"3 gadgets", key=b"order-1").result().offset, flush=True)
consume = ["../korvet-fast/.venv/bin/korvet-fast", "consume", "orders", "--until-end", "--bootstrap", sys.argv[1]]
subprocess.run(consume, check=True)
"""


def timed(what: str, work: Callable[[], object]) -> float:
    """Do it, and print how many seconds it took."""
    print(f"$ {what}", flush=True)
    begun = time.monotonic()
    work()
    seconds = time.monotonic() - begun
    print(f"  {seconds:.1f} s", flush=True)
    return seconds


def serve(checkout: Path, address: str) -> "subprocess.Popen[str]":
    """A broker that is ready."""
    command = [".venv/bin/korvet-fast", "serve", "--listen", f"kafka://{address}"]
    broker = subprocess.Popen(command, cwd=checkout, stderr=subprocess.PIPE, text=True)
    assert broker.stderr is not None
    for line in broker.stderr:
        if "ready kafka://" in line:
            return broker
    raise SystemExit(f"the broker ended with {broker.wait()}")


def main() -> None:
    with socket.socket() as probe, tempfile.TemporaryDirectory(prefix="first-record-") as directory:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
        probe.close()
        checkout = Path(directory) / "korvet-fast"
        subprocess.run(["git", "clone", "--quiet", ROOT, checkout], check=True)
        own = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "CARGO", "KORVET"))}
        spent = timed("make install", lambda: subprocess.run(["make", "install"], cwd=checkout, env=own, check=True))
        brokers: list[subprocess.Popen[str]] = []
        try:
            spent += timed(".venv/bin/korvet-fast serve &", lambda: brokers.append(serve(checkout, address)))
            own_place = Path(directory) / "mine"  # Python imports what lies beside a program first
            own_place.mkdir()
            (own_place / "mine.py").write_text(PROGRAM)
            mine = ["../korvet-fast/.venv/bin/python", "mine.py", address]
            spent += timed(" ".join(mine), lambda: subprocess.run(mine, cwd=own_place, check=True))
        finally:
            for broker in brokers:
                broker.terminate()
                broker.wait(60)
    print(f"{spent:.0f} s from a clone to a record that is stored and read, {PATIENCE:.0f} s are allowed")
    sys.exit(spent > PATIENCE)


if __name__ == "__main__":
    main()
