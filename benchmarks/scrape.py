"""What a scrape of 20,000 partitions costs another client: the longest that it waits for an answer.

    python -m benchmarks.scrape [--rounds 5] [--seconds 5]

This program produces 200 B at a time, while another one scrapes /metrics without a pause, and without that. The first
row is by the clock, which counts whatever else the machine does, this client's own pauses included. Of the second row
no wait is longer than the broker's threads were at work in it. Behind the medians stands the longest wait of each
round.
"""

import argparse
import http.client
import multiprocessing
import sys
import tempfile
import time
from multiprocessing.synchronize import Event
from pathlib import Path

from benchmarks.legacy import spent
from benchmarks.peers.process import Peer, PeerError, free_ports
from benchmarks.replication import Row, tell
from benchmarks.requests.cases import batch, encode, produce_to, topic
from benchmarks.tls import Client, check
from korvet_fast.wire.kafka.shapes.produce import PRODUCE
from korvet_fast.wire.kafka.shapes.topics import CREATE_TOPICS

PARTITIONS = 20_000
PATIENCE = 60.0  # seconds for a scrape


class Broker(Peer):
    """Korvet Fast of this tree, over files, with a listener for operators at `http`."""

    name = "Korvet Fast"

    def __init__(self, directory: Path) -> None:
        port, self.http = free_ports(2)
        super().__init__(directory, port)

    def command(self) -> list[str]:
        listeners = ["--listen", f"kafka://{self.address}", "--listen", f"http://127.0.0.1:{self.http}"]
        most = PARTITIONS + 1
        settings = ("durability=written", f"max.partitions={most}", f"metrics.max.partitions={most}")
        given = [word for setting in settings for word in ("--set", setting)]
        store = f"file:{self.directory / 'data'}"
        return [sys.executable, "-m", "korvet_fast", "serve", "--store", store, *listeners, *given]


def find_longest(ours: Broker, seconds: float) -> tuple[float, float]:
    """The longest wait for the answer to a produce, in ms: by the clock, and of the broker's work."""
    frame = encode(PRODUCE, produce_to("t", [batch(200)]) | {"acks": 1})
    client, answer = Client(ours.port), b""
    waited = worked = 0.0
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        busy, began = spent(ours), time.perf_counter()
        client.send(frame)
        answer = client.receive()
        took = time.perf_counter() - began
        waited, worked = max(waited, took), max(worked, min(took, spent(ours) - busy))
    client.close()
    check(PRODUCE, answer)
    return waited * 1000, worked * 1000


def scrape(port: int, begun: Event) -> None:
    """Scrape until the process is ended. `begun` is set after the first time."""
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        connection.request("GET", "/metrics")
        if connection.getresponse().read().count(b"kafka_log_log_size{") < PARTITIONS:
            raise PeerError("there are rows missing")
        connection.close()
        begun.set()


def measure(ours: Broker, rounds: int, seconds: float) -> list[Row]:
    """Beside scrapes, and without."""
    spawn = multiprocessing.get_context("spawn")
    above, below = [], []
    for _ in range(rounds):
        below.append(find_longest(ours, seconds))
        begun = spawn.Event()
        beside = spawn.Process(target=scrape, args=(ours.http, begun), daemon=True)
        beside.start()
        if not begun.wait(2 * PATIENCE):
            raise PeerError("/metrics cannot be scraped")
        above.append(find_longest(ours, seconds))
        beside.terminate()
        beside.join()
    names = (f"longest wait beside scrapes of {PARTITIONS:,} / without", "  of it the broker's work")
    return [
        Row(name, [one[column] for one in above], [one[column] for one in below], "ms", "below 10 ms")
        for column, name in enumerate(names)
    ]


def tell_rounds(row: Row) -> str:
    """The wait of each round beside scrapes: none may be above the limit."""
    return f"{row.name.strip()}, round by round: {', '.join(f'{one:.1f}' for one in row.above)} {row.unit}"


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="korvet-scrape-") as name, Broker(Path(name)) as ours:
        client = Client(ours.port)
        client.ask(CREATE_TOPICS, {"timeout_ms": 60_000, "topics": [topic("t", 1), topic("wide", PARTITIONS)]})
        client.close()
        rows = measure(ours, asked.rounds, asked.seconds)
    tell(rows)
    for row in rows:
        print(tell_rounds(row))


if __name__ == "__main__":
    main()
