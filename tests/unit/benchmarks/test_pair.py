"""This tree beside an earlier commit: which program runs on which side, and what is made of the figures."""

import os
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from itertools import repeat
from pathlib import Path

import pytest

from benchmarks.contestants import Observer
from benchmarks.pair import STORES, Side, choose, compare, show
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
    """A contestant that gives one figure after the other, each with the processor time it took."""

    def __init__(self, *figures: float, cpu: Iterable[float] = repeat(1.0)) -> None:
        self.peer = Peer(Path(), 0)
        self._figures: Iterator[tuple[float, float]] = zip(figures, cpu, strict=False)

    def measure(self, load: Load, seconds: float, observer: Observer = nullcontext) -> Figures:
        figure, cpu = next(self._figures)
        return {"mb_per_s": figure, "broker_cpu_s_per_gb": cpu}


def test_ratios_are_those_of_each_round() -> None:
    load = Load("some load", (), (Figure("mb_per_s", "MB/s"),))
    sides = {"before": Scripted(10, 0, 40), "now": Scripted(20, 30, 20)}
    (row,) = compare(load, "embedded", dict(sides), 3, 0.1)
    assert row["values"] == {"before": [10, 0, 40], "now": [20, 30, 20]}
    assert row["ratios"] == [2.0, 0.5]  # nothing to divide by in the second
    assert (row["load"], row["store"], row["unit"]) == ("some load", "embedded", "MB/s")


def test_processor_time_is_compared_round_by_round(capsys: pytest.CaptureFixture[str]) -> None:
    load = Load("some load", (), (Figure("mb_per_s", "MB/s"),))
    sides = {"before": Scripted(10, 10, 10, cpu=(2, 0, 4)), "now": Scripted(10, 10, 10, cpu=(3, 1, 5))}
    rows = list(compare(load, "embedded", dict(sides), 3, 0.1))
    assert rows[0]["cpu_ratios"] == [1.5, 1.25]  # the second took too little to be seen
    show(rows, "some commit")
    assert "1.38" in capsys.readouterr().out  # the median


def test_a_load_that_takes_no_time_is_shown_without_ratios(capsys: pytest.CaptureFixture[str]) -> None:
    load = Load("some load", (), (Figure("mb_per_s", "MB/s"),))
    sides = {"before": Scripted(0, cpu=(0,)), "now": Scripted(7, cpu=(0,))}
    rows = list(compare(load, "embedded", dict(sides), 1, 0.1))
    assert (rows[0]["ratios"], rows[0]["cpu_ratios"]) == ([], [])
    show(rows, "some commit")
    assert "some load" in capsys.readouterr().out


@pytest.mark.parametrize("store", STORES)
def test_loads_that_need_nobody_else(store: str) -> None:
    found = choose(store, "")
    assert found
    assert all(not load.java and not load.share for load in found)
    assert choose(store, "16 KB of 1024 B, acks=1")
    assert choose(store, "no such load") == []
