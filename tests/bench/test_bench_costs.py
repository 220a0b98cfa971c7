"""What ACLs and metrics add to a request, in instructions: beside the same package without the lines that add it."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmarks.check.count import ROOT, count
from benchmarks.requests.connections import ACLS
from requirement import require

# File, and its lines -> those in their place.
GUARD = "wire/kafka/dialect.py", {"        if broker.authorizer is not None:\n": "        if False:\n"}
COUNTING = (  # the rest is asked for when somebody reads the metrics
    "wire/kafka/session.py",
    {
        "        times = route.times\n"
        "        began = 0.0 if times.count & _TIMED else monotonic()\n"
        "        times.count += 1\n": "",
        "        if began:\n            times.note(began)\n": "",
    },
)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("rows", "lines", "most"),
    [(["Produce 16 KB" + ACLS, "Fetch 64 KB" + ACLS], GUARD, 0.03), (["Produce 16 KB"], COUNTING, 0.01)],
    ids=["10,000 ACLs", "metrics"],
)
def test_what_is_added_to_a_request(
    tmp_path: Path, rows: list[str], lines: tuple[str, Mapping[str, str]], most: float
) -> None:
    require("valgrind")
    with_it, without = (tmp_path / side for side in ("with", "none"))  # paths of the same length
    for side in (with_it, without):
        shutil.copytree(ROOT / "korvet_fast", side / "korvet_fast", ignore=shutil.ignore_patterns("__pycache__"))
    file = without / "korvet_fast" / lines[0]
    text = file.read_text()
    for before, instead in lines[1].items():
        assert text.count(before) == 1
        text = text.replace(before, instead)
    file.write_text(text)
    found, base = count(with_it, rows), count(without, rows)
    for row in rows:
        added = found[row] / base[row] - 1
        print(f"{row}: {base[row]:,.0f} instructions, and {added:.2%}")
        assert 0 < added <= most, f"{row}: {added:.2%}"
