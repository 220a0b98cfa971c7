"""docs/images/speed.svg: the figures of a stored result, and no others."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.chart import FILE, SHOWN, draw
from benchmarks.report import RESULTS, newest

SVG = "{http://www.w3.org/2000/svg}"


def words(picture: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(picture).iter(f"{SVG}text")]


def test_the_stored_picture_is_that_of_the_result_it_names() -> None:
    stored = FILE.read_text(encoding="utf-8")
    named = re.search(r"drawn from benchmarks/results/([\w.-]+)", stored)
    assert named is not None
    assert stored == str(draw(RESULTS / named[1])), "make chart"


def test_each_figure_is_the_median_of_its_row() -> None:
    shown = words(str(draw(newest())))
    assert [title for title in shown if title in {row.title for row in SHOWN}] == [row.title for row in SHOWN]


def test_bars_are_as_long_as_their_figures(tmp_path: Path) -> None:
    rows = [{"load": row.load, "unit": row.unit, "values": {"kafka": [8, 2, 4], "embedded": [1]}} for row in SHOWN]
    machine = {"cpus": 2, "kafka": "4.1.0", "korvet-fast": "0.1.0"}
    file = tmp_path / "peers-x.json"
    file.write_text(json.dumps({"measured": "2026-11-22", "machine": machine, "rows": rows}))
    picture = str(draw(file))
    widths = [float(element.get("width", "")) for element in ElementTree.fromstring(picture).iter(f"{SVG}rect")]
    bars = widths[3:]  # the card and the legend come first
    assert len(bars) == 2 * len(SHOWN)
    assert all(kafka == 4 * ours for kafka, ours in zip(bars[::2], bars[1::2], strict=True))
    assert words(picture).count("4") == words(picture).count("1") == len(SHOWN)


def test_a_result_without_a_row_is_refused(tmp_path: Path) -> None:
    result = json.loads(newest().read_text(encoding="utf-8"))
    result["rows"] = [row for row in result["rows"] if row["load"] != SHOWN[0].load]
    file = tmp_path / "peers-x.json"
    file.write_text(json.dumps(result))
    with pytest.raises(LookupError, match="0 rows of 'started on an empty directory'"):
        draw(file)
