"""Results as JSON on disk, and as one table: `python -m benchmarks.report [FILE]` prints the newest again."""

import json
import statistics
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.rows import Load

Row = dict[str, Any]
BUSY = 0.25  # processors that other programs may use before a result is doubtful; the kernel's own work is in it
RESULTS = Path(__file__).with_name("results")


def lines(load: Load, measured: dict[str, list[dict[str, float]]]) -> Iterator[Row]:
    """One row per figure. `measured`: per broker, the generator's answers in the order of the rounds.

    The ratio is the median over the rounds of ours / Kafka's, both taken right after each other.
    """
    for figure in load.figures:
        values = {peer: [round(answer[figure.field], 3) for answer in rounds] for peer, rounds in measured.items()}
        row: Row = {"load": load.title, "unit": figure.unit, **values}
        for field in ("broker_cpu", "others_cpu"):  # processors used meanwhile, by the broker and by strangers
            row[field] = {
                peer: [answer[field] for answer in rounds if field in answer] for peer, rounds in measured.items()
            }
        if values.get("kafka") and values.get("ours"):
            ratios = [ours / kafka for kafka, ours in zip(values["kafka"], values["ours"], strict=True)]
            row["ratio"] = round(statistics.median(ratios), 3)
        if figure.target:
            row["target"] = str(figure.target)
            if "ratio" in row:
                row["reached"] = figure.target.reached(statistics.median(values["ours"]), row["ratio"])
        yield row


def result(machine: dict[str, Any], rounds: int, seconds: float, rows: list[Row]) -> dict[str, Any]:
    """All that is kept of a run: when, where, how long, and every single value."""
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    return {"measured": now, "machine": machine, "rounds": rounds, "seconds": seconds, "rows": rows}


def save(result: dict[str, Any]) -> Path:
    """Write a new file into results/ and give its path."""
    stamp = "".join(letter if letter.isdigit() else "-" for letter in result["measured"][:16])
    path = RESULTS / f"peers-{stamp}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    return path


def table(result: dict[str, Any]) -> str:
    """The result as a Markdown table, medians over the rounds."""
    machine = result["machine"]
    head = (
        f"{machine['cpus']} x {machine['cpu']}, {machine['memory_gb']} GB, Linux {machine['kernel']}, "
        f"Python {machine['python']}; Apache Kafka {machine['kafka']} on Java {machine['java']}, "
        f"Korvet Fast {machine['korvet-fast']} ({machine['commit']}); {result['measured']}; "
        f"median of {result['rounds']} rounds of {result['seconds']:g} s, in turn\n"
    )
    cells = [["Load", "Unit", "Kafka", "Korvet Fast", "Ratio", "Target", "", "Bare loop"]]
    for row in result["rows"]:
        verdict = {True: "yes", False: "NO", None: ""}[row.get("reached")]
        figures = [_median(row.get("kafka")), _median(row.get("ours")), f"{row['ratio']:.2f}" if "ratio" in row else ""]
        cells.append([row["load"], row["unit"], *figures, row.get("target", ""), verdict, _median(row.get("bare"))])
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    cells.insert(1, ["-" * width for width in widths])
    drawn = ["| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in cells]
    return "\n".join([head, *drawn]) + _strangers(result["rows"])


def _strangers(rows: list[Row]) -> str:
    """A sentence if other programs were at work on most loads: the figures are then not to be quoted."""
    used = [value for row in rows for values in row["others_cpu"].values() for value in values]
    busy = statistics.median(used) if used else 0.0
    return (
        f"\nOther programs used {busy:.1f} processors meanwhile: run it again on a quiet machine."
        if busy > BUSY
        else ""
    )


def _median(values: list[float] | None) -> str:
    if not values:
        return ""
    value = statistics.median(values)
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def newest() -> Path:
    """The last result written."""
    return max(RESULTS.glob("peers-*.json"), key=lambda path: path.name)


if __name__ == "__main__":
    print(table(json.loads((Path(sys.argv[1]) if sys.argv[1:] else newest()).read_text())))
