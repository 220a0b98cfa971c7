"""This tree beside an earlier commit: which program runs on which side, and what is made of the figures."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from benchmarks.contestants import Observer
from benchmarks.pair import STORES, Side, choose, compare
from benchmarks.peers.process import Peer
from benchmarks.rows import Figure, Figures, Load


def test_a_side_runs_the_package_it_is_given(tmp_path: Path) -> None:
    package = tmp_path / "side" / "korvet_fast"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text("import sys\nprint(__file__, *sys.argv[1:])\n")
    side = Side(tmp_path / "data", package.parent, "name=value")
    environment = {**os.environ, **side.environment}
    said = subprocess.run(side.command(), env=environment, cwd=tmp_path, check=True, capture_output=True, text=True)
    file, *words = said.stdout.split()
    assert Path(file) == package / "__main__.py"
    assert words[0] == "serve"
    assert words[-2:] == ["--set", "name=value"]


class Scripted:
    """A contestant that gives one figure after the other."""

    def __init__(self, *figures: float) -> None:
        self.peer = Peer(Path(), 0)
        self._figures: Iterator[float] = iter(figures)

    def measure(self, load: Load, seconds: float, observer: Observer = nullcontext) -> Figures:
        return {"mb_per_s": next(self._figures)}


def test_ratios_are_those_of_each_round() -> None:
    load = Load("some load", (), (Figure("mb_per_s", "MB/s"),))
    sides = {"before": Scripted(10, 0, 40), "now": Scripted(20, 30, 20)}
    (row,) = compare(load, "embedded", dict(sides), 3, 0.1)
    assert row["values"] == {"before": [10, 0, 40], "now": [20, 30, 20]}
    assert row["ratios"] == [2.0, 0.5]  # nothing to divide by in the second
    assert (row["load"], row["store"], row["unit"]) == ("some load", "embedded", "MB/s")


@pytest.mark.parametrize("store", STORES)
def test_loads_that_need_nobody_else(store: str) -> None:
    found = choose(store, "")
    assert found
    assert all(not load.java and not load.share for load in found)
    assert choose(store, "16 KB of 1024 B, acks=1")
    assert choose(store, "no such load") == []
