"""The text protocol beside a bare loop that answers line by line and stores nothing, in turns.

    python -m benchmarks.text [--rounds 5] [--lines 200000] [--reads 3000]

One connection. PRODUCE: lines of 100 bytes, acks=1, all sent without waiting. CONSUME: 500 messages of 100 bytes at a
time, each asked for when the one before has arrived; and again with 16 under way. The client is this process: it counts
line ends, and no more. One by one, half of the time goes into waking the client and carrying the bytes, for both alike.
"""

import argparse
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.peers.process import Peer, free_ports

LOOP = Path(__file__).parent / "peers" / "text_loop.py"
TARGETS = {"produce": 2.0, "consume": 4.0, "consume 16": 4.0}
ASK = b"V1|1|CONSUME|t 0 0\n"
LINE = b"V1|1|PRODUCE|t key:"
SIZE = 100  # bytes of a line, and of a message that is read
WARM = 2_000  # lines before anything is measured


class TextPeer(Peer):
    """A peer that is ready when it answers PING."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, free_ports(1)[0])

    def is_ready(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as probe:
                probe.sendall(b"V1|1|PING|\n")
                return probe.recv(100) == b"V1|1|OK|pong\n"
        except OSError:
            return False


class Loop(TextPeer):
    """The bare loop."""

    name = "bare loop"

    def command(self) -> list[str]:
        return [sys.executable, str(LOOP), str(self.port)]


class Broker(TextPeer):
    """Korvet Fast of this tree, over files."""

    name = "embedded"

    def command(self) -> list[str]:
        listeners = ["--listen", f"text://{self.address}", "--listen", "kafka://127.0.0.1:0"]
        store = f"file:{self.directory / 'data'}"
        return [
            sys.executable,
            "-m",
            "korvet_fast",
            "serve",
            "--store",
            store,
            *listeners,
            "--set",
            "durability=written",
        ]


def produce(port: int, lines: int) -> float:
    """Lines a second."""
    block = (LINE + b"x" * (SIZE - 1 - len(LINE)) + b"\n") * 1000
    with socket.create_connection(("127.0.0.1", port)) as client:

        def send() -> None:
            for _ in range(lines // 1000):
                client.sendall(block)

        started, seen = time.perf_counter(), 0
        sender = threading.Thread(target=send)
        sender.start()
        room = bytearray(1 << 20)
        while seen < lines:
            size = client.recv_into(room)
            if not size:
                raise ConnectionError("the peer closed the connection")
            seen += room.count(b"\n", 0, size)
        sender.join()
        return lines / (time.perf_counter() - started)


def consume(port: int, reads: int, under_way: int) -> float:
    """Answers a second, with so many requests under way."""
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        room = bytearray(1 << 20)
        started, asked, seen = time.perf_counter(), under_way, 0
        client.sendall(ASK * under_way)
        while seen < reads:
            size = client.recv_into(room)
            if not size:
                raise ConnectionError("the peer closed the connection")
            answers = room.count(b"\n", 0, size)
            seen += answers
            more = min(answers, reads - asked)
            client.sendall(ASK * more)
            asked += more
        return reads / (time.perf_counter() - started)


def check(port: int, answer: bytes = b"") -> None:
    """Whether a CONSUME gives what it should: 500 messages."""
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(ASK)
        while not answer.endswith(b"\n"):
            answer += client.recv(1 << 20)
    if not answer.startswith(b"V1|1|OK|messages=0:x") or answer.count(b":") != 500:
        raise AssertionError(f"500 messages were asked for, and this came: {answer[:200]!r}")


def main() -> None:
    """Measure in turns, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.text", description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lines", type=int, default=200_000)
    parser.add_argument("--reads", type=int, default=3_000)
    given = parser.parse_args()
    loads: dict[str, Callable[[int], float]] = {
        "produce": lambda port: produce(port, given.lines),
        "consume": lambda port: consume(port, given.reads, 1),
        "consume 16": lambda port: consume(port, given.reads, 16),
    }
    with (
        tempfile.TemporaryDirectory() as directory,
        Broker(Path(directory) / "ours") as ours,
        Loop(Path(directory) / "loop") as loop,
    ):
        for peer in (ours, loop):
            produce(peer.port, WARM)
            check(peer.port)
        print(f"{'':10} {'embedded':>12} {'bare loop':>12}   ratio (each round)")
        for name, load in loads.items():
            pairs = [(load(ours.port), load(loop.port)) for _ in range(given.rounds)]
            ratios = sorted(first / second for first, second in pairs)
            first, second = (statistics.median(one) for one in zip(*pairs, strict=True))
            told = " ".join(f"{ratio:.2f}" for ratio in ratios)
            print(f"{name:10} {first:10,.0f}/s {second:10,.0f}/s   {statistics.median(ratios):.2f} x ({told}), "
                  f"wanted: {TARGETS[name]:g} x")  # fmt: skip


if __name__ == "__main__":
    main()
