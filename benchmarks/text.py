"""The text protocol beside a bare loop that answers line by line and stores nothing, in turns.

    python -m benchmarks.text [--rounds 5] [--seconds 1.5] [--only consume]

One connection. PRODUCE: lines of 100 bytes, acks=1, ten thousand under way. CONSUME: 500 messages of 80 bytes at a
time, 16 requests under way, and one by one: the same messages again and again, as consumers do that follow each other,
which the broker keeps as it wrote them; and through a log of 100,000, where it reads and writes all of them anew. The
client is the load generator, which checks every answer and takes less than any of the servers does.

Beside answers a second stands the processor time (user and system) that the server's process takes for one: where other
programs share the machine, that is what to compare. The last column is the same loop with an answer that was formatted
before it began: what reading a line and sending 42 KB take, whoever does it, and what no server gets below.
"""

import argparse
import socket
import statistics
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.generator import build, load
from benchmarks.peers.process import Peer, free_ports

LOOP = Path(__file__).parent / "peers" / "text_loop.py"
VALUE = 80  # bytes; with topic and key a line has 100
WARM = 100_000  # lines before anything is measured
AT_ONCE = 2_000  # of them, which no server has to hold answers back for
BLOCKS = WARM // 500  # more than the broker keeps


@dataclass(frozen=True)
class Row:
    """One load: the generator's mode, how many requests are under way, and the ratio that is wanted."""

    mode: str
    in_flight: int
    wanted: float
    blocks: int = 1  # of 500 messages, which CONSUME asks for in turn


ROWS = {
    "produce": Row("text-produce", 10_000, 2.0),
    "consume": Row("text-consume", 16, 4.0),
    "consume, one by one": Row("text-consume", 1, 4.0),
    "consume, all of a log": Row("text-consume", 16, 4.0, BLOCKS),
}


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
    """The bare loop; `more`: words of its command line."""

    def __init__(self, directory: Path, name: str, *more: str) -> None:
        super().__init__(directory)
        self.name = name
        self._more = more

    def command(self) -> list[str]:
        return [sys.executable, str(LOOP), str(self.port), *self._more]


class Broker(TextPeer):
    """Korvet Fast of this tree, over files."""

    name = "embedded"

    def command(self) -> list[str]:
        listeners = ["--listen", f"text://{self.address}", "--listen", "kafka://127.0.0.1:0"]
        store = f"file:{self.directory / 'data'}"
        serve = [sys.executable, "-m", "korvet_fast", "serve", "--store", store]
        return [*serve, *listeners, "--set", "durability=written"]


@dataclass(frozen=True)
class Measured:
    """Answers a second, and microseconds of processor time for one."""

    rate: float
    micros: float


def measure(peer: Peer, row: Row, seconds: float) -> Measured:
    """One run. Raises `PeerError` where an answer is wrong."""
    timing = ("--seconds", str(seconds), "--warm-up", "0.3")
    sizes = ("--record-bytes", str(VALUE), "--in-flight", str(row.in_flight), "--blocks", str(row.blocks))
    figures = load(peer, row.mode, "t", *timing, *sizes)
    return Measured(figures["requests_per_s"], figures["broker_cpu_us_per_request"])


def write_messages(port: int) -> None:
    """Lines before anything is measured; all are waited for."""
    line = b"V1|1|PRODUCE|t key:" + b"x" * VALUE + b"\n"
    with socket.create_connection(("127.0.0.1", port)) as client:
        for _ in range(WARM // AT_ONCE):
            client.sendall(line * AT_ONCE)
            seen = 0
            while seen < AT_ONCE:
                answers = client.recv(1 << 20)
                if not answers or b"|ERR|" in answers:
                    raise ConnectionError(f"PRODUCE was answered with {answers[:200]!r}")
                seen += answers.count(b"\n")


def tell(name: str, row: Row, found: list[list[Measured]]) -> str:
    """One row of the table: `found` has what each contestant gave in each round."""
    medians = [
        (statistics.median(one.rate for one in side), statistics.median(one.micros for one in side)) for side in found
    ]
    cells = [f"{rate:10,.0f}/s {micros:7.2f} us" for rate, micros in medians]
    ours, loop, _ = found
    rate = statistics.median(one.rate / other.rate for one, other in zip(ours, loop, strict=True))
    works = [other.micros / one.micros for one, other in zip(ours, loop, strict=True)]
    told = ", ".join(f"{ratio:.2f}" for ratio in sorted(works))
    return (
        f"{name:21} {'   '.join(cells)}   {rate:5.2f} x   {statistics.median(works):5.2f} x ({told})   {row.wanted:g} x"
    )


def main() -> None:
    """Measure in turns, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.text", description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--only", default="", help="the rows whose names begin so")
    given = parser.parse_args()
    build()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        place = Path(name)
        peers: list[Peer] = [
            Broker(place / "ours"),
            Loop(place / "loop", "bare loop"),
            Loop(place / "ready", "ready", "ready"),
        ]
        for peer in peers:
            stack.enter_context(peer)
            write_messages(peer.port)
        columns = "   ".join(f"{peer.name:>23}" for peer in peers)
        print(f"{'':21} {columns}   ours beside the loop: answers, processor time (each round), wanted")
        for title, row in ROWS.items():
            if not title.startswith(given.only):
                continue
            found: list[list[Measured]] = [[] for _ in peers]
            for number in range(given.rounds):
                for step in range(len(peers)):
                    side = (number + step) % len(peers)
                    found[side].append(measure(peers[side], row, given.seconds))
            print(tell(title, row, found))


if __name__ == "__main__":
    main()
