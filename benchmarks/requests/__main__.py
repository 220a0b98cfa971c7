"""python -m benchmarks.requests [--rounds N] [WORDS]: what each request costs above the store, as a table.

Exit status 1 if one of them does not keep within its budget.
"""

import argparse
import sys

import uvloop
from rich.console import Console
from rich.table import Table

from benchmarks.requests.cases import version
from benchmarks.requests.measure import Figure, measure
from benchmarks.requests.reference import NOMINAL


def show(figures: list[Figure]) -> None:
    title = f"A request from bytes in to bytes out; µs: of a machine whose reference loop takes {NOMINAL:g}"
    table = Table(title=title, title_justify="left")
    for name in ("request", "version", "reference loops", "µs", "budget µs", "allocations"):
        table.add_column(name, justify="left" if name == "request" else "right")
    for figure in figures:
        case = figure.case
        budget = "" if case.budget is None else f"{case.budget}" if figure.kept else f"{case.budget} missed"
        spent = (f"{figure.ratio:.3f}", f"{figure.micros:,.1f}", budget, f"{figure.allocations:,.0f}")
        table.add_row(case.name, str(version(case.message)), *spent)
    Console(width=110).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.requests", description=__doc__)
    parser.add_argument("words", nargs="*", help="only requests whose names hold one of these")
    parser.add_argument("--rounds", type=int, default=31, help="pairs of measurements of each")
    arguments = parser.parse_args()
    figures = uvloop.run(measure(arguments.words, arguments.rounds))
    if not figures:
        parser.error(f"no request is called {' or '.join(arguments.words)}")
    show(figures)
    sys.exit(0 if all(figure.kept for figure in figures) else 1)


if __name__ == "__main__":
    main()
