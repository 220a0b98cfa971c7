"""Korvet Fast beside Apache Kafka, a bare loop and bare relays to Redis, in turns: `python -m benchmarks.system`.

All live through the whole run and are measured one after the other, round by round, the order swapped each round; so
whatever else the machine does hits all alike, and the JVM is warm.
"""

import argparse
import contextlib
import shutil
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks import generator, machine, profile, report
from benchmarks.contestants import Contestant, Field, alone
from benchmarks.peers import redis
from benchmarks.peers.process import PeerError
from benchmarks.rows import OVER_REDIS, PEERS, Figures, Load
from benchmarks.table import LOADS, MANY_PARTITIONS, START, WARM_UP

# On the same disk as the project, so that an fsync is a real one even where /tmp is memory.
DATA = Path(__file__).parent.parent / ".cache" / "bench"
IDLE_AFTER = 3.0  # seconds until a started broker has settled
Measured = dict[str, list[Figures]]


@contextlib.contextmanager
def empty() -> Iterator[Path]:
    """A directory where nothing is, removed afterwards."""
    shutil.rmtree(DATA, ignore_errors=True)
    try:
        yield DATA
    finally:
        shutil.rmtree(DATA, ignore_errors=True)


def take_turns(load: Load, contestants: dict[str, Contestant], rounds: int, seconds: float) -> Measured:
    """Kafka, ours, …; …, ours, Kafka; …"""
    measured: Measured = {name: [] for name in contestants}
    for number in range(rounds):
        for name in list(contestants)[:: 1 if number % 2 == 0 else -1]:
            measured[name].append(contestants[name].measure(load, seconds))
    return measured


def compare(load: Load, contestants: dict[str, Contestant], rounds: int, seconds: float) -> list[report.Row]:
    """The load's rows. Who misses a target is run once more, to see where its loop spends the time.

    So is the relay, or the bare loop, that it is compared with.
    """
    load = pace(load, contestants, seconds)
    measured = take_turns(load, contestants, rounds, seconds)
    rows = list(report.lines(load, measured))
    for name in dict.fromkeys(name for row in rows for name in report.missed(row)):
        shares: profile.Shares = {}
        contestants[name].measure(load, seconds, partial(profile.watch, contestants[name].peer.pid, shares))
        rows[0].setdefault("profile", {})[name] = shares
        rows[0].setdefault("request_us", {})[name] = report.time_of_request(name, measured[name])
    return rows


def pace(load: Load, contestants: dict[str, Contestant], seconds: float) -> Load:
    """A load that is a share of what Kafka takes at most, at that rate; any other as it is. Raises PeerError."""
    if not load.share:
        return load
    if "kafka" not in contestants:
        raise PeerError(f"{load.title!r} needs Kafka among the peers")
    return load.paced(load.share * contestants["kafka"].measure(load, 2 * seconds)["requests_per_s"])


def start(name: str) -> Figures:
    """Time to ready, and memory when nothing has happened yet."""
    with empty() as directory, alone(name, directory) as broker:
        time.sleep(IDLE_AFTER)
        return {"ready_seconds": broker.peer.ready_seconds, "idle_mb": broker.peer.resident_mb()}


def many_partitions(name: str, seconds: float) -> Figures:
    """10,000 partitions in a broker that holds nothing else; every partition has been written to before it counts."""
    with empty() as directory, alone(name, directory) as broker:
        peer, arguments = broker.peer, MANY_PARTITIONS.arguments
        figures = {"create_seconds": broker.create(MANY_PARTITIONS)["seconds"]}
        generator.load(peer, "produce", "t", *arguments, "--in-flight", "50", "--seconds", "5")
        figures |= generator.load(peer, "produce", "t", *arguments, "--seconds", str(seconds))
        asked = generator.load(peer, "metadata", "t", *arguments, "--seconds", str(seconds))
        peer.stop()
        peer.start()
        time.sleep(IDLE_AFTER)
        again = {"restart_seconds": peer.ready_seconds, "idle_mb": peer.resident_mb()}
        return {**figures, "metadata_us": asked["p50_us"], **again}


def results(options: argparse.Namespace) -> Iterator[tuple[Load, list[report.Row]]]:
    """Each load that is meant, with its rows."""
    peers, rounds, seconds, only = options.peers, options.rounds, options.seconds, options.only
    if START.meant_by(only) and (names := [name for name in peers if name in START.peers]):
        yield START, list(report.lines(START, {name: [start(name) for _ in range(rounds)] for name in names}))
    with contextlib.ExitStack() as running:
        field = Field(running, peers, running.enter_context(empty()), options.redis_server)
        warm = set()
        for load in LOADS:
            contestants = field.of(load) if load.meant_by(only) else {}
            for contestant in contestants.values():
                if contestant not in warm:
                    warm.add(contestant)
                    contestant.measure(WARM_UP, 3 * seconds)  # the JVM compiles what is hot
            if contestants:
                yield load, compare(load, contestants, rounds, seconds)
    if MANY_PARTITIONS.meant_by(only) and (names := [name for name in peers if name in MANY_PARTITIONS.peers]):
        found = {name: [many_partitions(name, seconds)] for name in names}
        yield MANY_PARTITIONS, list(report.lines(MANY_PARTITIONS, found))


def read_options() -> argparse.Namespace:
    """The command line; exits with a sentence when it cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.system", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="how often each is measured (5)")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of one measurement (3)")
    parser.add_argument("--only", default="", metavar="WORDS", help="only loads whose title holds this, or this peer")
    parser.add_argument("--peers", default=",".join(PEERS), help=f"who takes part ({','.join(PEERS)})")
    parser.add_argument("--redis-server", default="", metavar="PROGRAM", help="another Redis than the one found")
    options = parser.parse_args()
    options.peers = options.peers.split(",")
    if unknown := set(options.peers) - set(PEERS):
        parser.error(f"there is no peer {', '.join(unknown)}: {', '.join(PEERS)}")
    return options


def main() -> int:
    options = read_options()
    rows: list[report.Row] = []
    began = time.monotonic()
    failure = None
    try:
        if set(OVER_REDIS) & set(options.peers):
            options.redis_server = options.redis_server or redis.find_program()
        generator.build()
        described = machine.describe("kafka" in options.peers, options.redis_server)
        for load, found in results(options):
            rows += found
            print(f"{time.monotonic() - began:5.0f} s  {load.title}", file=sys.stderr)
    except PeerError as error:
        failure = error
    if rows:
        result = report.result(described, options.rounds, options.seconds, rows)
        print(report.table(result))
    if failure is not None:
        print(failure, file=sys.stderr)
        return 1
    if options.peers == list(PEERS) and not options.only:
        print(f"\nwritten to benchmarks/results/{report.save(result).name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
