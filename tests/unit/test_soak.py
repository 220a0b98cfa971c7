"""The picture of a soak, and what counts as a descriptor left open."""

from pathlib import Path
from xml.etree import ElementTree

from soak.picture import Happened, draw
from soak.samples import QUIET, Sample, find_leaks


def sample(descriptors: int, pid: int = 7, at: float = 1.0) -> Sample:
    return Sample(at, f"files {pid}", pid, 50.0, descriptors)


def test_descriptors_that_stay_are_found() -> None:
    assert find_leaks([sample(20), sample(20 + QUIET), sample(20, 8)]) == []
    assert find_leaks([sample(20), sample(90), sample(21)]) == []  # they went again
    (leak,) = find_leaks([sample(20), sample(40), sample(60), sample(20, 8)])
    assert "process 7" in leak
    assert "[20, 40, 60]" in leak


def test_the_picture_has_a_column_for_each_world(tmp_path: Path) -> None:
    file = tmp_path / "soak.svg"
    waits = {"files": [(1.0, 0.002), (2.0, 0.5)], "redis": [(1.0, 0.004)]}
    draw(file, "seed 1", 0.0, waits, [sample(20), sample(21, at=2.0)], [Happened(1.5, "files", "kill -9")])
    comments = file.read_text()
    assert "files: a record acknowledged" in comments
    assert "redis: a record acknowledged" in comments
    assert ElementTree.parse(file).getroot().tag.endswith("svg")
