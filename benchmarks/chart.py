"""Draws six figures of a stored result as bars, into docs/images/speed.svg: `make chart`.

`python -m benchmarks.chart [FILE]` draws the newest result of `make bench-system`, or that one.
"""

import json
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.report import newest
from docs.svg import INK, OTHERS, OURS, QUIET, Picture

FILE = Path(__file__).parent.parent / "docs" / "images" / "speed.svg"
WIDTH, MARGIN, ROW, HEAD = 560, 14, 66, 60
LONGEST = 400  # pixels of the longer of two bars
SIDES = (("kafka", "Apache Kafka", OTHERS), ("embedded", "Korvet Fast", OURS))


class Shown(NamedTuple):
    """A row of the table by its load and its unit, and how the picture calls it."""

    load: str
    unit: str
    title: str


SHOWN = (
    Shown("started on an empty directory", "s to ready", "start to ready, s (less is better)"),
    Shown("started on an empty directory", "MB resident, idle", "memory of the idle broker, MB (less is better)"),
    Shown("produce 16 KB of 1024 B, acks=1", "MB/s", "produce batches of 16 KB, one connection, MB/s"),
    Shown("one 200 B produce at a time, acks=1", "µs p99", "one small produce at a time, µs, p99 (less is better)"),
    Shown(
        "100 B records in batches of 64 KB, from producer to consumer; bare: copied through a file, no broker",
        "MB/s",
        "from a producer to a consumer, records of 100 B, MB/s",
    ),
    Shown("fetch 1 MB, batches of 64 KB, 1024 B, 8 consumers", "MB/s", "8 consumers, fetches of 1 MB, MB/s"),
)


def draw(path: Path) -> Picture:
    """The picture of a stored result. Raises LookupError if the result does not have one of SHOWN."""
    result = json.loads(path.read_text(encoding="utf-8"))
    machine = result["machine"]
    picture = Picture(WIDTH, HEAD + ROW * len(SHOWN) + 26, "Six figures: Korvet Fast on files beside Apache Kafka")
    for x, (_, name, color) in zip((MARGIN, 170), SIDES, strict=True):
        picture.rectangle(x, 14, 14, 14, color)
        picture.text(x + 20, 26, name, 14, INK, font_weight="600")
    versions = f"Kafka {machine['kafka']}, Korvet Fast {machine['korvet-fast']} on files, both without fsync"
    picture.text(MARGIN, 46, f"{machine['cpus']} processors; {versions}; {result['measured'][:10]}", 12, QUIET)
    for number, shown in enumerate(SHOWN):
        _bars(picture, HEAD + ROW * number, shown.title, dict(_medians(result["rows"], shown)))
    picture.text(MARGIN, HEAD + ROW * len(SHOWN) + 14, f"drawn from benchmarks/results/{path.name}", 11, QUIET)
    return picture


def _medians(rows: list[dict[str, Any]], shown: Shown) -> Iterator[tuple[str, float]]:
    found = [row["values"] for row in rows if (row["load"], row["unit"]) == (shown.load, shown.unit)]
    if len(found) != 1:
        raise LookupError(f"the result has {len(found)} rows of {shown.load!r} in {shown.unit!r}, not one")
    for side, _, _ in SIDES:
        yield side, statistics.median(found[0][side])


def _bars(picture: Picture, y: float, title: str, values: dict[str, float]) -> None:
    picture.text(MARGIN, y + 16, title, 14)
    for number, (side, _, color) in enumerate(SIDES):
        top, value = y + 23 + 18 * number, values[side]
        length = max(2.0, LONGEST * value / max(values.values()))
        picture.rectangle(MARGIN, top, round(length, 1), 14, color)
        picture.text(MARGIN + round(length, 1) + 6, top + 12, f"{value:,.0f}" if value >= 100 else f"{value:.3g}", 12)


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if sys.argv[1:] else newest()).write(FILE)
