"""What a second loop would bring: two connections to one broker, beside one connection to each of two.

`python -m benchmarks.second_core`. Two brokers share nothing but the machine, or one Redis; so this is the most that
several processes could bring. Two brokers on two threads of one process share the interpreter's lock as well: the most
that a loop for every other connection could bring. Everybody's processors are the same.
"""

import argparse
import json
import statistics
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import generator, machine
from benchmarks.peers import redis
from benchmarks.peers.korvet import Korvet
from benchmarks.peers.process import Peer, PeerError, answers, free_ports
from benchmarks.system import empty

RESULTS = Path(__file__).with_name("results")
LOADS = {
    "produce 16 KB of 1024 B": ("produce", "--batch-bytes", "16384", "--record-bytes", "1024"),
    "produce 64 KB of 1024 B": ("produce", "--batch-bytes", "65536", "--record-bytes", "1024"),
    "fetch 1 MB, batches of 64 KB": ("fetch", "--batch-bytes", "65536", "--record-bytes", "1024"),
}
STORES = ("embedded", "redis")
LAYOUT = ("--config", "storage.layout=batches", "--config", "durability=written")
TOPICS = ("one", "two")
TWO_LOOPS = Path(__file__).with_name("peers") / "two_loops.py"


class TwoLoops(Peer):
    """Two brokers over files in one process, the second one at `other`."""

    name = "two loops of one process"

    def __init__(self, directory: Path) -> None:
        first, second = free_ports(2)
        super().__init__(directory, first)
        self.other = Other(self, second)

    def command(self) -> list[str]:
        return [sys.executable, str(TWO_LOOPS), str(self.port), str(self.other.port)]

    def is_ready(self) -> bool:
        return super().is_ready() and answers(self.other.port)


class Other(Peer):
    """The second broker in the process of `first`."""

    def __init__(self, first: TwoLoops, port: int) -> None:
        super().__init__(first.directory, port)
        self._first = first

    @property
    def pids(self) -> list[int]:
        return self._first.pids


def start(running: ExitStack, store: str, directory: Path) -> list[Korvet]:
    """Two brokers; over Redis each has a namespace, so that they are no cluster and lead all of their topics."""
    if store == "embedded":
        return [running.enter_context(Korvet(directory / name)) for name in TOPICS]
    server = running.enter_context(redis.Redis(directory / "redis", program=redis.find_program()))
    brokers = [Korvet(directory / name, redis=server, namespace=name) for name in TOPICS]
    return [running.enter_context(broker) for broker in brokers]


def measure(peers: list[Peer], load: tuple[str, ...], seconds: float) -> float:
    """MB/s of two generators together, each at a broker of `peers` in a topic of its own."""
    mode, *shape = load
    for peer, topic in zip(peers, TOPICS, strict=True):
        generator.load(peer, "create", topic, *LAYOUT)
        if mode == "fetch":
            generator.load(peer, "produce", topic, *shape, "--seconds", "1")
    with ThreadPoolExecutor(2) as both:
        timed = ("--seconds", str(seconds))
        asked = [
            both.submit(generator.load, peer, mode, topic, *shape, *timed)
            for peer, topic in zip(peers, TOPICS, strict=True)
        ]
        found = sum(each.result()["mb_per_s"] for each in asked)
    for peer, topic in zip(peers, TOPICS, strict=True):
        generator.load(peer, "delete", topic)
    return found


def compare(store: str, rounds: int, seconds: float) -> list[dict[str, Any]]:
    """For each load the MB/s of every round, of one broker and of two, in turns."""
    rows: list[dict[str, Any]] = []
    with ExitStack() as running:
        directory = running.enter_context(empty())
        first, second = start(running, store, directory)
        sides: dict[str, list[Peer]] = {"one": [first, first], "two": [first, second]}
        if store == "embedded":
            loops = running.enter_context(TwoLoops(directory / "loops"))
            sides["two loops"] = [loops, loops.other]
        for title, load in LOADS.items():
            values: dict[str, list[float]] = {name: [] for name in sides}
            for number in range(rounds):
                for name in list(sides)[:: 1 if number % 2 == 0 else -1]:
                    values[name].append(measure(sides[name], load, seconds))
            ratios = {name: round(_ratio(values["one"], values[name]), 3) for name in sides if name != "one"}
            rows.append({"store": store, "load": title, "values": values, "ratios": ratios})
    return rows


def _ratio(ones: list[float], others: list[float]) -> float:
    return statistics.median(other / one for one, other in zip(ones, others, strict=True))


def show(rows: list[dict[str, Any]]) -> None:
    table = Table(title="Two connections: two brokers beside one", title_justify="left")
    for name in ("store", "load", "two processes / one", "two loops of a process / one"):
        table.add_column(name)
    for row in rows:
        ratios = [f"{row['ratios'][name]:.2f}" if name in row["ratios"] else "" for name in ("two", "two loops")]
        table.add_row(row["store"], row["load"], *ratios)
    Console(width=100).print(table)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.second_core", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="how often each is measured (5)")
    parser.add_argument("--seconds", type=float, default=1.0, help="length of one measurement (1)")
    options = parser.parse_args()
    try:
        generator.build()
        described = machine.describe(False, redis.find_program())
        rows = [row for store in STORES for row in compare(store, options.rounds, options.seconds)]
    except PeerError as error:
        print(error, file=sys.stderr)
        return 1
    show(rows)
    now = datetime.now(UTC)
    result = {"measured": f"{now:%Y-%m-%d %H:%M} UTC", "machine": described, **vars(options), "rows": rows}
    path = RESULTS / f"second-core-{now:%Y-%m-%d-%H-%M}.json"
    path.write_text(json.dumps(result, indent=1) + "\n")
    print(f"written to benchmarks/results/{path.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
