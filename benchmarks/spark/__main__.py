"""Spark through ours and through its own Kafka connector, in turns: `python -m benchmarks.spark`.

All live through the whole run: a session of Spark for each connector, Apache Kafka, our broker, and one that throws
away. Each query is measured in all columns one after the other, round by round, in the other order each round.
"""

import argparse
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version

from benchmarks import machine
from benchmarks.peers.process import PeerError
from benchmarks.peers.spark import environment
from benchmarks.peers.spark.session import SparkError
from benchmarks.report import save
from benchmarks.spark import memory, report
from benchmarks.spark.contestants import Field, open_field
from benchmarks.spark.rows import QUERIES, Query

WARM_UP = 0.1  # of the rows


def take_turns(field: Field, query: Query, columns: list[str], rounds: int) -> report.Measured:
    """Round by round; one with fewer rows before it counts, as JVMs compile what is hot."""
    for column in columns:
        field.measure(query, column, WARM_UP)
    measured: report.Measured = {column: [] for column in columns}
    for number in range(rounds):
        for column in columns[:: 1 if number % 2 == 0 else -1]:
            measured[column].append(field.measure(query, column))
    return measured


def results(options: argparse.Namespace, field: Field) -> Iterator[dict[str, object]]:
    """The rows of the table."""
    meant = {
        query: [name for name in query.columns if options.columns in name]
        for query in QUERIES
        if options.only in query.title
    }
    field.fill({name.split()[1] for query, columns in meant.items() if not query.writes for name in columns})
    for query, columns in meant.items():
        if columns:
            yield from report.lines(query, take_turns(field, query, columns, options.rounds))
            print(f"  {query.title}", file=sys.stderr)


def describe() -> dict[str, str | int | float]:
    """With what it is measured."""
    spark = {name: version(name) for name in ("pyspark", "pyarrow")}
    return machine.describe(kafka=True, redis_server="") | spark | {"connector": environment.connector_version()}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark", description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000, help="how many are read and written (10,000,000)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured (3)")
    parser.add_argument("--only", default="", metavar="WORDS", help="only queries whose title holds this")
    parser.add_argument("--columns", default="", metavar="WORDS", help="only columns that hold this: connector, korvet")
    options = parser.parse_args()
    began = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    try:
        with open_field(options.rows) as field:
            rows = list(results(options, field))
            peak = {} if options.only or options.columns else memory.measure(field.brokers["embedded"])
    except (PeerError, SparkError) as error:
        print(error, file=sys.stderr)
        return 1
    result = {"measured": began, "machine": describe(), "rounds": options.rounds, "count": options.rows}
    result |= {"rows": rows, "memory": peak}
    print(report.table(result))
    if not options.only and not options.columns:
        print(f"\nwritten to benchmarks/results/{save(result, report.KIND).name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
