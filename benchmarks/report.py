"""Results as JSON on disk, and as one table.

`python -m benchmarks.report [FILE]` prints the newest again, or that one; with `--docs` it goes into
docs/benchmarks.md.
"""

import json
import statistics
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.peers.workers import WORKERS
from benchmarks.profile import PLACES
from benchmarks.rows import COLUMNS, Figure, Figures, Load

Row = dict[str, Any]
BUSY = 0.25  # processors that other programs may use before a result is doubtful; the kernel's own work is in it
LOOPS = ("relay-a", "relay-bpv", "relay-c", "bare")  # of Python, so that py-spy can look into them
RESULTS = Path(__file__).with_name("results")
PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
BEGIN = "<!-- python -m benchmarks.report --docs writes from here"
END = "to here -->"


def lines(load: Load, measured: dict[str, list[Figures]]) -> Iterator[Row]:
    """One row per figure. `measured`: per column, the generator's answers in the order of the rounds."""
    for figure in load.figures:
        values = {name: [round(answer[figure.field], 3) for answer in rounds] for name, rounds in measured.items()}
        row: Row = {"load": load.title, "unit": figure.unit, "values": values}
        for field in ("broker_cpu", "others_cpu"):  # processors used meanwhile, by the broker and by strangers
            row[field] = {
                name: [answer[field] for answer in rounds if field in answer] for name, rounds in measured.items()
            }
        row["ratios"] = list(_ratios(figure, measured))
        yield row


def _ratios(figure: Figure, measured: dict[str, list[Figures]]) -> Iterator[Row]:
    """Each the median over the rounds of one divided by the other, both taken in the same round."""
    for ratio in figure.ratios:
        if ratio.of in measured and ratio.to in measured:
            ours = [answer[figure.field] for answer in measured[ratio.of]]
            others = [answer[ratio.field or figure.field] for answer in measured[ratio.to]]
            pairs = [(mine, other) for mine, other in zip(ours, others, strict=True) if other]
            if not pairs:  # the other answered nothing in time
                continue
            median = statistics.median(mine / other for mine, other in pairs)
            found: Row = {"what": str(ratio), "of": ratio.of, "to": ratio.to, "ratio": round(median, 3)}
            if ratio.target:
                found["target"] = str(ratio.target)
                found["reached"] = ratio.target.reached(statistics.median(ours), median)
            yield found


def missed(row: Row) -> list[str]:
    """The columns that do not reach a target of this row, each before the loop in Python that it is compared with."""
    found = (ratio for ratio in row["ratios"] if ratio.get("reached") is False)
    return [name for ratio in found for name in (ratio["of"], ratio["to"]) if name == ratio["of"] or name in LOOPS]


def time_of_request(name: str, rounds: list[Figures]) -> float | None:
    """Microseconds that a loop of this column has for a request, in the median; None where none are counted."""
    each = [answer["requests_per_s"] for answer in rounds if answer.get("requests_per_s")]
    return 1e6 * (WORKERS if name == "workers" else 1) / statistics.median(each) if each else None


def result(machine: dict[str, Any], rounds: int, seconds: float, rows: list[Row]) -> dict[str, Any]:
    """All that is kept of a run: when, where, how long, and every single value."""
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    return {"measured": now, "machine": machine, "rounds": rounds, "seconds": seconds, "rows": rows}


def save(result: dict[str, Any], kind: str = "peers") -> Path:
    """Write a new file into results/ and give its path. `kind`: of run, the first word of the file's name."""
    stamp = "".join(letter if letter.isdigit() else "-" for letter in result["measured"][:16])
    path = RESULTS / f"{kind}-{stamp}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    return path


def table(result: dict[str, Any]) -> str:
    """The result as a Markdown table, medians over the rounds; each ratio has a line of its own."""
    columns = [name for name in COLUMNS if any(name in row["values"] for row in result["rows"])]
    cells = [["Load", "Unit", *(COLUMNS[name] for name in columns), "Ratio", "", "Target", ""]]
    for row in result["rows"]:
        figures = [row["load"], row["unit"], *(_median(row["values"].get(name)) for name in columns)]
        for ratio in row["ratios"] or [{}]:
            verdict = {True: "yes", False: "NO", None: ""}[ratio.get("reached")]
            value = f"{ratio['ratio']:.2f}" if ratio else ""
            cells.append([*figures, ratio.get("what", ""), value, ratio.get("target", ""), verdict])
            figures = [""] * len(figures)
    return "\n".join([_head(result), "", draw(cells)]) + _tell_of_others(result["rows"]) + _profiles(result["rows"])


def _profiles(rows: list[Row]) -> str:
    """Where the loops that miss a target spent their time, as a second table."""
    cells = [["Missed", "Of", "µs a request", *PLACES]]
    for row in rows:
        for name, shares in row.get("profile", {}).items():
            whole = row.get("request_us", {}).get(name)
            times = [_share(shares.get(place, 0), whole) for place in PLACES]
            cells.append([row["load"], COLUMNS[name], "" if whole is None else _micros(whole), *times])
    if len(cells) == 1:
        return ""
    return (
        "\n\nWhat misses its target, and where its loop's time goes, in µs of each request (in percent where a load's "
        f"program counts none):\n\n{draw(cells)}"
    )


def _share(share: float, whole: float | None) -> str:
    return f"{share:.0%}" if whole is None else _micros(share * whole)


def _micros(time: float) -> str:
    return f"{time:,.0f}" if time >= 100 else f"{time:.1f}"


def _head(result: dict[str, Any]) -> str:
    machine = result["machine"]
    others = [f"Apache Kafka {machine['kafka']} on Java {machine['java']}"] if "kafka" in machine else []
    others += [f"Redis {machine['redis']}"] if "redis" in machine else []
    others.append(f"Korvet Fast {machine['korvet-fast']} ({machine['commit']})")
    return (
        f"{machine['cpus']} x {machine['cpu']}, {machine['memory_gb']} GB, Linux {machine['kernel']}, "
        f"Python {machine['python']}; {', '.join(others)}; {result['measured']}; "
        f"median of {result['rounds']} rounds of {result['seconds']:g} s, in turn"
    )


def _tell_of_others(rows: list[Row]) -> str:
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


def draw(cells: list[list[str]]) -> str:
    """A Markdown table; the first row is its head."""
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    ruled = [cells[0], ["-" * max(width, 1) for width in widths], *cells[1:]]
    return "\n".join("| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in ruled)


def newest(kind: str = "peers") -> Path:
    """The last result written."""
    return max(RESULTS.glob(f"{kind}-*.json"), key=lambda path: path.name)


def write_page(table: str, begin: str = BEGIN) -> None:
    """Put the table where the page about benchmarks has it, behind the comment `begin`."""
    before, _, rest = PAGE.read_text().partition(begin)
    _, found, after = rest.partition(END)
    if not found:
        raise SystemExit(f"{PAGE} has no place for the table: {begin} … {END}")
    PAGE.write_text(f"{before}{begin} -->\n\n{table}\n\n<!-- {END}{after}")


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--docs"]
    printed = table(json.loads((Path(words[0]) if words else newest()).read_text()))
    if len(words) < len(sys.argv) - 1:
        write_page(printed)
    else:
        print(printed)
