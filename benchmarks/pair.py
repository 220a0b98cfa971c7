"""This tree beside an earlier commit, in turns: `python -m benchmarks.pair --base COMMIT`. What has a change brought?

The brokers of both live through the run, each over files or a Redis of its own, and are measured one right after the
other, the order swapped each round. The loads are those of the system's table that need nobody else. Beside each figure
stands the processor time of the broker's processes for the same bytes, Redis's included. Every run is kept in results/,
with its command.
"""

import argparse
import statistics
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks import generator, machine, report
from benchmarks.check.sides import choose_base, describe, prepare_base, prepare_tree
from benchmarks.contestants import LAYOUTS, LIKE_KAFKA, Broker, Contestant, OverRedis
from benchmarks.peers import redis
from benchmarks.peers.korvet import Korvet
from benchmarks.peers.process import PeerError
from benchmarks.rows import Load
from benchmarks.system import Measured, empty, take_turns
from benchmarks.table import LOADS

STORES = ("embedded", *LAYOUTS)
SIDES = ("before", "now")
CPU = "broker_cpu_s_per_gb"  # what else runs on the machine changes it far less than it changes the time on the clock


class Side(Korvet):
    """The broker of one side, from the directory `package` that holds it."""

    def __init__(self, directory: Path, package: Path, *settings: str, redis: redis.Redis | None = None) -> None:
        super().__init__(directory, *settings, redis=redis)
        self.environment = {"PYTHONPATH": str(package)}

    def command(self) -> list[str]:
        return [sys.executable, "-m", "korvet_fast", *super().command()[1:]]


class Pair:
    """The brokers of both sides, started when needed and living through the run."""

    def __init__(self, running: ExitStack, directory: Path, packages: dict[str, Path]) -> None:
        self._running = running
        self._directory = directory
        self._packages = packages
        self._started: dict[str, dict[str, Contestant]] = {}

    def of(self, load: Load, store: str) -> dict[str, Contestant]:
        """Both sides over a store, "before" and "now"."""
        name = f"{store}-always" if load.always and store in LAYOUTS else store
        if name not in self._started:
            self._started[name] = {side: self._start(side, name, store) for side in SIDES}
        return self._started[name]

    def _start(self, side: str, name: str, store: str) -> Contestant:
        directory, package = self._directory / side / name, self._packages[side]
        if store not in LAYOUTS:
            return Broker(self._running.enter_context(Side(directory, package, *LIKE_KAFKA)))
        server = redis.Redis(directory / "redis", always=name.endswith("always"))
        self._running.enter_context(server)
        broker = self._running.enter_context(Side(directory / "broker", package, *LIKE_KAFKA, redis=server))
        return OverRedis(broker, server, store)


def choose(store: str, words: str) -> list[Load]:
    """The table's loads, those with `words` in their titles, that measure a broker over this store by itself."""
    peer = "redis" if store in LAYOUTS else store
    return [load for load in LOADS if peer in load.peers and words in load.title and not load.java and not load.share]


def compare(
    load: Load, store: str, sides: dict[str, Contestant], rounds: int, seconds: float
) -> Iterator[dict[str, Any]]:
    """One row per figure: every value of both sides, each round's ratio, and that of processor time a byte."""
    measured = take_turns(load, sides, rounds, seconds)
    cpu = _divide(_values(measured, CPU))
    for figure in load.figures:
        values = _values(measured, figure.field)
        row = {"load": load.title, "store": store, "unit": figure.unit, "values": values}
        yield {**row, "ratios": _divide(values), "cpu_ratios": cpu}


def _values(measured: Measured, field: str) -> dict[str, list[float]]:
    return {side: [round(answer[field], 3) for answer in measured[side]] for side in SIDES}


def _divide(values: dict[str, list[float]]) -> list[float]:
    """Now by before, round by round, where there is something to divide by."""
    pairs = zip(values["before"], values["now"], strict=True)
    return [round(now / before, 3) for before, now in pairs if before]


def show(rows: list[dict[str, Any]], base: str) -> None:
    table = Table(title=f"Now, and as of {escape(base)}", title_justify="left")
    for name in ("load", "store", "unit"):
        table.add_column(name)
    for name in ("before", "now", "now / before", "of all rounds", "CPU, now / before"):
        table.add_column(name, justify="right")
    for row in rows:
        medians = [f"{statistics.median(row['values'][side]):,.4g}" for side in SIDES]
        ratios, cpu = row["ratios"], row["cpu_ratios"]
        spread = [f"{statistics.median(ratios):.2f}", f"{min(ratios):.2f} - {max(ratios):.2f}"] if ratios else ["", ""]
        used = f"{statistics.median(cpu):.2f}" if cpu else ""
        table.add_row(row["load"], row["store"], row["unit"], *medians, *spread, used)
    Console(width=150).print(table)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pair", description=__doc__.splitlines()[0])
    parser.add_argument("--base", help="the commit to compare with, instead of the merge base")
    parser.add_argument("--only", default="", metavar="WORDS", help="only loads whose title holds this")
    parser.add_argument("--stores", default="embedded", help=f"over which stores, of {','.join(STORES)} (embedded)")
    parser.add_argument("--rounds", type=int, default=8, help="how often each is measured (8)")
    parser.add_argument("--seconds", type=float, default=0.5, help="length of one measurement (0.5)")
    options = parser.parse_args()
    if unknown := set(options.stores.split(",")) - set(STORES):
        parser.error(f"there is no store {', '.join(unknown)}: {', '.join(STORES)}")
    chosen = [(load, store) for store in options.stores.split(",") for load in choose(store, options.only)]
    if not chosen:
        parser.error(f"no load's title holds {options.only!r}")
    base = choose_base(options.base)
    packages = {"before": prepare_base(base)[0], "now": prepare_tree()}
    rows: list[dict[str, Any]] = []
    try:
        generator.build()
        over_redis = any(store in LAYOUTS for _, store in chosen)
        described = machine.describe(False, redis.find_program() if over_redis else "")
        with ExitStack() as running:
            pair = Pair(running, running.enter_context(empty()), packages)
            for load, store in chosen:
                rows += compare(load, store, pair.of(load, store), options.rounds, options.seconds)
    except PeerError as error:
        print(error, file=sys.stderr)
        return 1
    show(rows, describe(base))
    result = report.result(described, options.rounds, options.seconds, rows)
    result |= {"command": f"python -m benchmarks.pair {' '.join(sys.argv[1:])}", "base": describe(base)}
    print(f"written to benchmarks/results/{report.save(result, 'pair').name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
