"""Draws docs/images/overview.svg, the picture at the top of the README: `make diagrams`."""

from collections.abc import Sequence
from pathlib import Path

from docs.svg import EDGE, OURS, QUIET, Picture

FILE = Path(__file__).parent / "images" / "overview.svg"
TITLE = "Clients of four kinds reach one broker process, which keeps records in files or in Redis streams"
WIDTH, MARGIN, GAP = 560, 12, 12

CLIENTS = (
    ("Kafka clients", "unmodified", "kafka://"),
    ("PySpark", 'format("korvet")', "kafka://"),
    ("nc, scripts", "lines of text", "text://"),
    ("Kafka 0.6, 0.7", "unmodified", "legacy://"),
)
STORES = (
    ("Files of its own", "one disk, or copies on several brokers"),
    ("Redis or Valkey", "a record is an entry of a stream"),
)


def draw() -> Picture:
    """Three rows: clients, the broker, where the records are."""
    picture = Picture(WIDTH, 318, TITLE)
    for x, width, (name, detail, scheme) in _columns(CLIENTS):
        _box(picture, x, 14, width, (name, detail))
        picture.arrow(x + width / 2, 70, 116, both=True)
        picture.text(x + width / 2 + 6, 98, scheme, 12, QUIET)
    picture.rectangle(MARGIN, 118, WIDTH - 2 * MARGIN, 62, OURS)
    _centred(picture, WIDTH / 2, 144, "korvet-fast serve", 17, "#ffffff", weight="600")
    _centred(picture, WIDTH / 2, 166, "one process: the same topics, groups and offsets for all", 13, "#ffffff")
    for x, width, store in _columns(STORES):
        picture.arrow(x + width / 2, 182, 212, both=True)
        _box(picture, x, 214, width, store)
    (_, _, _), (x, width, _) = _columns(STORES)
    picture.arrow(x + width / 2, 272, 292, both=True)
    _centred(picture, x + width / 2, 308, "redis-cli, any program that uses Redis", 13, QUIET)
    return picture


def _columns(rows: Sequence[tuple[str, ...]]) -> list[tuple[float, float, tuple[str, ...]]]:
    width = (WIDTH - 2 * MARGIN - GAP * (len(rows) - 1)) / len(rows)
    return [(MARGIN + number * (width + GAP), width, row) for number, row in enumerate(rows)]


def _box(picture: Picture, x: float, y: float, width: float, words: tuple[str, ...]) -> None:
    picture.rectangle(x, y, width, 54, edge=EDGE)
    _centred(picture, x + width / 2, y + 23, words[0], 14, weight="600")
    _centred(picture, x + width / 2, y + 42, words[1], 12, QUIET)


def _centred(picture: Picture, x: float, y: float, words: str, size: int, *color: str, weight: str = "400") -> None:
    picture.text(x, y, words, size, *color, text_anchor="middle", font_weight=weight)


if __name__ == "__main__":
    draw().write(FILE)
