"""python -m benchmarks.check [--base COMMIT] [--percent 3] [WORDS]: has anything become slower? In instructions.

Counts every native call and every request of this tree and of an earlier commit, and names what takes more of them
now. Exit status 1 if something does. `--alone` only counts this tree, and prints everything.
"""

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks.check.count import Uncounted, count
from benchmarks.check.sides import choose_base, describe, prepare_base, prepare_tree

PERCENT = 3.0  # more than anything moves by itself: an unchanged call stays within 1 %
FLOOR = 100  # instructions; a handful of them is the luck of a hash table


class Change(NamedTuple):
    """Instructions of one call or request, then and now."""

    name: str
    before: float
    now: float

    @property
    def percent(self) -> float:
        return 100 * (self.now / self.before - 1)

    def is_worse(self, percent: float) -> bool:
        return self.percent > percent and self.now - self.before > FLOOR


def compare(before: dict[str, float], now: dict[str, float]) -> list[Change]:
    """What is in both, the largest increase first."""
    changes = [Change(name, before[name], now[name]) for name in now if name in before]
    return sorted(changes, key=lambda change: -change.percent)


def count_base(commit: str, words: list[str]) -> dict[str, float]:
    """With this tree's benchmarks, so that both sides do the same; with its own if it cannot run these."""
    side, source = prepare_base(commit)
    try:
        return count(side, words)
    except Uncounted as error:
        if not (source / "benchmarks" / "check").exists():
            raise
        print(f"{error}\nso it is counted with its own benchmarks", file=sys.stderr)
        return count(side, words, source)


def show(changes: list[Change], base: str, percent: float) -> None:
    table = Table(title=f"Instructions, compared with {base}", title_justify="left")
    for name in ("native call, records · request", "before", "now", "change"):
        table.add_column(name, justify="left" if name.startswith("native") else "right")
    for change in changes:
        mark = " worse" if change.is_worse(percent) else ""
        table.add_row(change.name, f"{change.before:,.0f}", f"{change.now:,.0f}", f"{change.percent:+.2f} %{mark}")
    Console(width=110).print(table)


def show_alone(now: dict[str, float]) -> None:
    table = Table(title="Instructions", title_justify="left")
    table.add_column("native call, records · request")
    table.add_column("instructions", justify="right")
    for name, instructions in now.items():
        table.add_row(name, f"{instructions:,.0f}")
    Console(width=110).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.check", description=__doc__)
    parser.add_argument("words", nargs="*", help="only what has one of these in its name")
    parser.add_argument("--base", help="the commit to compare with, instead of the merge base")
    parser.add_argument("--percent", type=float, default=PERCENT, help=f"how much more is too much, {PERCENT:g}")
    parser.add_argument("--alone", action="store_true", help="count this tree and compare it with nothing")
    arguments = parser.parse_args()
    base = "" if arguments.alone else choose_base(arguments.base)
    try:
        with ThreadPoolExecutor() as side_by_side:
            counting = side_by_side.submit(count, prepare_tree(), arguments.words)
            before = {} if arguments.alone else count_base(base, arguments.words)
            now = counting.result()
    except Uncounted as error:
        sys.exit(str(error))
    if not now:
        parser.error(f"nothing is called {' or '.join(arguments.words)}")
    if arguments.alone:
        return show_alone(now)
    changes = compare(before, now)
    show(changes, describe(base), arguments.percent)
    gone, new = before.keys() - now.keys(), now.keys() - before.keys()
    for what, some in (("new", new), ("no longer there", gone)):
        if some:
            print(f"{what}, and not compared: {'; '.join(sorted(some))}")
    worse = [change for change in changes if change.is_worse(arguments.percent)]
    for change in worse:
        print(f"{change.name} takes {change.percent:.1f} % more instructions than before", file=sys.stderr)
    sys.exit(1 if worse else 0)


if __name__ == "__main__":
    main()
