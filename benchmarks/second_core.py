"""What a second loop would bring: two connections to one broker, beside one connection to each of two.

`python -m benchmarks.second_core`. Two brokers share nothing but the machine, or one Redis; so this is the most that
several processes on one port, or a loop for every other connection, could bring. Everybody's processors are the same.
"""

import argparse
import json
import statistics
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import generator, machine
from benchmarks.peers import redis
from benchmarks.peers.korvet import Korvet
from benchmarks.peers.process import Peer, PeerError
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


def compare(store: str, rounds: int, seconds: float) -> list[dict[str, object]]:
    """For each load the MB/s of every round, of one broker and of two, in turns."""
    rows: list[dict[str, object]] = []
    with ExitStack() as running:
        first, second = start(running, store, running.enter_context(empty()))
        sides = {"one": [first, first], "two": [first, second]}
        for title, load in LOADS.items():
            values: dict[str, list[float]] = {name: [] for name in sides}
            for number in range(rounds):
                for name in list(sides)[:: 1 if number % 2 == 0 else -1]:
                    values[name].append(measure([*sides[name]], load, seconds))
            ratio = statistics.median(two / one for one, two in zip(values["one"], values["two"], strict=True))
            rows.append({"store": store, "load": title, "values": values, "ratio": round(ratio, 3)})
    return rows


def show(rows: list[dict[str, object]]) -> None:
    table = Table(title="Two connections: two brokers beside one", title_justify="left")
    for name in ("store", "load", "two / one"):
        table.add_column(name)
    for row in rows:
        table.add_row(str(row["store"]), str(row["load"]), f"{row['ratio']:.2f}")
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
