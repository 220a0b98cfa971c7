"""python -m benchmarks.codec [WORDS]: measure every call (or those whose names hold one of the words), as a table."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.codec import IMPLEMENTATIONS

HERE = Path(__file__).parent
# A call of the first column may take half a second: few rounds of it are enough, and the table is there in minutes.
OPTIONS = ["--benchmark-max-time=0.2", "--benchmark-min-rounds=3", "--benchmark-disable-gc", "--benchmark-quiet"]


def measure(words: list[str]) -> list[dict[str, object]]:
    """Runs pytest-benchmark; a row per call and count, with the best time of each implementation in seconds."""
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.json"
        command = [sys.executable, "-m", "pytest", str(HERE), "-q", "--timeout=0", *OPTIONS]
        command += [f"--benchmark-json={report}", "-k", " or ".join(words) or "test_call"]
        subprocess.run(command, check=True, stdout=sys.stderr)
        found = json.loads(report.read_text())["benchmarks"]
    rows: dict[tuple[str, int], dict[str, object]] = {}
    for one in found:
        info = one["extra_info"]
        row = rows.setdefault((info["call"], info["count"]), {"call": info["call"], "count": info["count"]})
        row[info["implementation"]] = one["stats"]["min"]
    return list(rows.values())


def show(rows: list[dict[str, object]]) -> None:
    """The table: microseconds per call, and how many times faster Rust is."""
    table = Table(title="Microseconds per call, the best of all rounds")
    for name in ("call", "records", *IMPLEMENTATIONS, "python / rust", "cython / rust"):
        table.add_column(name, justify="left" if name == "call" else "right")
    for row in rows:
        seconds = [float(str(row[name])) if name in row else None for name in IMPLEMENTATIONS]
        *others, rust = seconds
        micros = ["" if each is None else f"{each * 1e6:,.1f}" for each in seconds]
        times = ["" if each is None or rust is None else f"{each / rust:,.0f}" for each in others]
        table.add_row(str(row["call"]), f"{row['count']:,}", *micros, *times)
    Console(width=110).print(table)


if __name__ == "__main__":
    show(measure(sys.argv[1:]))
