"""Apache Kafka and Korvet Fast on this machine, in turns: `python -m benchmarks.system` (`make bench-peers`).

Both brokers live through the whole run and are measured one after the other, round by round, the order swapped each
round; so whatever else the machine does hits both alike, and the JVM is warm.
"""

import argparse
import contextlib
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks import generator, machine, report
from benchmarks.peers.bare import Bare
from benchmarks.peers.kafka.broker import Kafka
from benchmarks.peers.korvet import Korvet
from benchmarks.peers.process import Peer, PeerError
from benchmarks.rows import LOADS, MANY_PARTITIONS, PARTITIONS, START, Load

# On the same disk as the project, so that an fsync is a real one even where /tmp is memory.
DATA = Path(__file__).parent.parent / ".cache" / "bench"
IDLE_AFTER = 3.0  # seconds until a started broker has settled
Figures = dict[str, float]
Measured = dict[str, list[Figures]]


def fresh(peer: str) -> Peer:
    """A broker, not started yet, on an empty directory."""
    directory = DATA / peer
    shutil.rmtree(directory, ignore_errors=True)
    if peer == "kafka":
        return Kafka(directory)
    return Korvet(directory) if peer == "ours" else Bare(directory)


def create(name: str, peer: Peer, load: Load, partitions: int = 1) -> Figures:
    """Make the topic; ours says what its acks=all survives."""
    configs = ["--config", f"durability={load.durability}"] if name == "ours" else []
    return generator.load(peer, "create", "t", "--partitions", str(partitions), *configs)


def measure(name: str, peer: Peer, load: Load, seconds: float) -> Figures:
    """One run in a topic of its own."""
    create(name, peer, load)
    if load.fill:
        generator.load(peer, "produce", "t", *load.fill)
    figures = generator.load(peer, load.mode, "t", "--seconds", str(seconds), *load.arguments)
    generator.load(peer, "delete", "t")
    return figures


def take_turns(load: Load, peers: dict[str, Peer], rounds: int, seconds: float) -> Measured:
    """Kafka, ours; ours, Kafka; …"""
    names = [name for name in peers if name != "bare" or load.bare]
    measured: Measured = {name: [] for name in names}
    for number in range(rounds):
        for name in names if number % 2 == 0 else reversed(names):
            measured[name].append(measure(name, peers[name], load, seconds))
    return measured


def start(name: str) -> Figures:
    """Time to ready, and memory when nothing has happened yet."""
    with fresh(name) as peer:
        time.sleep(IDLE_AFTER)
        return {"ready_seconds": peer.ready_seconds, "idle_mb": peer.resident_mb()}


def many_partitions(name: str, seconds: float) -> Figures:
    """10,000 partitions in a broker that holds nothing else; every partition has been written to before it counts."""
    with fresh(name) as peer:
        created = create(name, peer, MANY_PARTITIONS, PARTITIONS)["seconds"]
        generator.load(peer, "produce", "t", *MANY_PARTITIONS.arguments, "--in-flight", "50", "--seconds", "5")
        figures = generator.load(peer, "produce", "t", *MANY_PARTITIONS.arguments, "--seconds", str(seconds))
        return {**figures, "create_seconds": created}


def results(names: list[str], rounds: int, seconds: float, only: str) -> Iterator[tuple[Load, Measured]]:
    """Each load with what was measured; `only`: those whose title holds it."""
    if only in START.title:
        yield START, {name: [start(name) for _ in range(rounds)] for name in names}
    loads = [load for load in LOADS if only in load.title]
    if loads:
        with contextlib.ExitStack() as running:
            peers = {name: running.enter_context(fresh(name)) for name in names}
            for name, peer in peers.items():
                measure(name, peer, LOADS[0], 3 * seconds)  # the JVM compiles what is hot
            for load in loads:
                yield load, take_turns(load, peers, rounds, seconds)
    if only in MANY_PARTITIONS.title:
        yield MANY_PARTITIONS, {name: [many_partitions(name, seconds)] for name in names if name != "bare"}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.system", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="how often each broker is measured (5)")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of one measurement (3)")
    parser.add_argument("--only", default="", metavar="WORDS", help="only loads whose title holds this")
    parser.add_argument("--peers", default="kafka,ours,bare", help="which brokers (kafka,ours,bare)")
    options = parser.parse_args()
    names = options.peers.split(",")
    rows: list[report.Row] = []
    try:
        generator.build()
        described = machine.describe()
        for load, measured in results(names, options.rounds, options.seconds, options.only):
            rows += report.lines(load, measured)
            print(f"  {load.title}", file=sys.stderr)
        result = report.result(described, options.rounds, options.seconds, rows)
        print(report.table(result))
        if names == ["kafka", "ours", "bare"] and not options.only:
            print(f"\nwritten to benchmarks/results/{report.save(result).name}")
    except PeerError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(DATA, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
