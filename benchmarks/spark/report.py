"""The results as JSON on disk, and as one table.

`python -m benchmarks.spark.report [FILE]` prints the newest again, or that one; `--docs` puts it into
docs/benchmarks.md.
"""

import json
import statistics
import sys
from pathlib import Path
from typing import Any

from benchmarks.report import draw, newest, write_page
from benchmarks.spark.contestants import Figures
from benchmarks.spark.rows import BASE, COLUMNS, MEANT, QUERIES, Query

KIND = "spark"  # of the files in results/
BEGIN = "<!-- python -m benchmarks.spark.report --docs writes from here"
Measured = dict[str, list[Figures]]


def lines(query: Query, measured: Measured) -> list[dict[str, Any]]:
    """Three rows for a query: rate, CPU of Spark, CPU of the broker; every single value, by column."""
    units = {"rate": "M rows/s", "cpu": "Spark's CPU-s / M rows", "broker_cpu": "broker's CPU-s / M rows"}
    return [
        {
            "query": query.title,
            "field": field,
            "unit": unit,
            "values": {name: [round(getattr(each, field), 3) for each in rounds] for name, rounds in measured.items()},
        }
        for field, unit in units.items()
    ]


def table(result: dict[str, Any]) -> str:
    """Markdown; medians over the rounds. A ratio is the median of the ratios of each round."""
    cells = [["Query", "Unit", *COLUMNS.values(), f"{COLUMNS[MEANT]} / {COLUMNS[BASE]}", "Target", ""]]
    for row in result["rows"]:
        (query,) = [query for query in QUERIES if query.title == row["query"]]
        values = {_shown(name): found for name, found in row["values"].items()}
        ratio = _ratio(values)
        figures = [_median(values.get(name)) for name in COLUMNS]
        wanted = _targets(query, row["field"], statistics.median(values[MEANT]), ratio) if MEANT in values else []
        said = " and ".join(text for text, _ in wanted)
        verdict = ("yes" if all(reached for _, reached in wanted) else "NO") if wanted else ""
        cells.append([row["query"], row["unit"], *figures, f"{ratio:.2f}" if ratio else "", said, verdict])
    return "\n".join([_head(result), "", draw(cells), *_memory(result)])


def _shown(column: str) -> str:
    # The broker that discards is shown where each one's own stands.
    return {"connector discard": BASE, "korvet discard": MEANT}.get(column, column)


def _ratio(values: dict[str, list[float]]) -> float | None:
    if not (BASE in values and MEANT in values):
        return None
    pairs = zip(values[MEANT], values[BASE], strict=True)
    return statistics.median(ours / theirs for ours, theirs in pairs if theirs)


def _targets(query: Query, field: str, figure: float, ratio: float | None) -> list[tuple[str, bool]]:
    """Each with whether it was reached."""
    found = []
    if field == "rate" and query.rate:
        found.append((f"≥ {query.rate:g}", figure >= query.rate))
    if field == "rate" and query.times and ratio is not None:
        found.append((f"≥ {query.times:g} x", ratio >= query.times))
    if field == "cpu" and query.cpu:
        found.append((f"≤ {query.cpu:g}", figure <= query.cpu))
    return found


def _median(values: list[float] | None) -> str:
    return f"{statistics.median(values):.2f}" if values else ""


def _head(result: dict[str, Any]) -> str:
    machine = result["machine"]
    return (
        f"{machine['cpus']} x {machine['cpu']}, {machine['memory_gb']} GB, Linux {machine['kernel']}; local[2]; "
        f"korvet: PySpark {machine['pyspark']}, pyarrow {machine['pyarrow']}, Korvet Fast {machine['korvet-fast']} "
        f"({machine['commit']}); Connector: Spark's own, PySpark {machine['connector']}; "
        f"Kafka: Apache Kafka {machine['kafka']} on Java {machine['java']}; {result['measured']}; "
        f"{result['count'] / 1e6:g} M rows of 154 B, median of {result['rounds']} rounds, in turn"
    )


def _memory(result: dict[str, Any]) -> list[str]:
    found = result.get("memory")
    if not found:
        return []
    return [
        "",
        f"A Python worker at most: {found['small']:.0f} MB resident with small records, {found['large']:.0f} MB after "
        "a read of records of 1 MB.",
    ]


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--docs"]
    drawn = table(json.loads((Path(words[0]) if words else newest(KIND)).read_text()))
    if len(words) < len(sys.argv) - 1:
        write_page(drawn, BEGIN)
    else:
        print(drawn)
