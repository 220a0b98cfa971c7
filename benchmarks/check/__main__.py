"""python -m benchmarks.check [--base COMMIT] [--percent 3] [WORDS]: has anything become slower? In instructions.

Counts every native call and every request of this tree and of an earlier commit, and names what takes more of them
now. Exit status 1 if something does. `--alone` only counts this tree, and prints everything.
"""

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, NoReturn

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks.check.count import Uncounted, count
from benchmarks.check.renamed import today, with_earlier
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
    """The changes of rows that both sides have, the largest increase first."""
    changes = [Change(name, before[name], now[name]) for name in now if name in before]
    return sorted(changes, key=lambda change: -change.percent)


class Sides(NamedTuple):
    """Directories: the package as it is, as it was, and the sources it was built from then."""

    tree: Path
    base: Path
    source: Path

    def count_both(self, words: list[str]) -> tuple[dict[str, float], dict[str, float]]:
        """Before and now, counted side by side."""
        with ThreadPoolExecutor() as pool:
            now = pool.submit(count, self.tree, words)
            return self._count_base(words), now.result()

    def _count_base(self, words: list[str]) -> dict[str, float]:
        """With this tree's benchmarks, so that both sides do the same; with its own if it cannot run these."""
        try:
            return count(self.base, words)
        except Uncounted as error:
            if not (self.source / "benchmarks" / "check").exists():
                raise
            print(f"{error}\nso it is counted with its own benchmarks", file=sys.stderr)
            found = count(self.base, with_earlier(words), self.source)
            return {today(name): instructions for name, instructions in found.items()}


def find_worse(sides: Sides, changes: list[Change], percent: float) -> list[Change]:
    """Rows that are worse, also when counted once more: the address of a buffer can make 2 % of a small call."""
    worse = [change for change in changes if change.is_worse(percent)]
    if not worse:
        return []
    again = compare(*sides.count_both([change.name for change in worse]))
    still = {change.name for change in again if change.is_worse(percent)}
    return [change for change in worse if change.name in still]


def show(changes: list[Change], base: str, worse: set[str]) -> None:
    table = Table(title=f"Instructions, compared with {escape(base)}", title_justify="left")
    for name in ("native call, records · request", "before", "now", "change"):
        table.add_column(name, justify="left" if name.startswith("native") else "right")
    for change in changes:
        mark = " worse" if change.name in worse else ""
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
    try:
        if arguments.alone:
            now = count(prepare_tree(), arguments.words)
            return show_alone(now) if now else _refuse(parser, arguments.words)
        base = choose_base(arguments.base)
        sides = Sides(prepare_tree(), *prepare_base(base))
        before, now = sides.count_both(arguments.words)
        if not now:
            _refuse(parser, arguments.words)
        changes = compare(before, now)
        worse = find_worse(sides, changes, arguments.percent)
    except Uncounted as error:
        sys.exit(str(error))
    show(changes, describe(base), {change.name for change in worse})
    gone, new = before.keys() - now.keys(), now.keys() - before.keys()
    for what, some in (("new", new), ("no longer there", gone)):
        if some:
            print(f"{what}, and not compared: {'; '.join(sorted(some))}")
    for change in worse:
        print(f"{change.name} takes {change.percent:.1f} % more instructions than before", file=sys.stderr)
    sys.exit(1 if worse else 0)


def _refuse(parser: argparse.ArgumentParser, words: list[str]) -> NoReturn:
    parser.error(f"nothing is called {' or '.join(words)}")


if __name__ == "__main__":
    main()
