"""How a round of `make faults` runs a test, and what it takes for survived."""

from pathlib import Path

import pytest

from faults.campaign import run_test

NOTE = """
import json, os
def test_it():
    with open(os.environ["KORVET_TEST_COUNTS"], "a") as file:
        file.write(json.dumps({name: os.environ.get("KORVET_TEST_" + name) for name in ("ROUNDS", "SEED")}))
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "test_it.py"


def test_every_round_has_all_kinds_of_faults_and_a_seed_of_its_own(file: Path) -> None:
    file.write_text(NOTE)
    first, second = (run_test("abc", number, str(file)).counts for number in (1, 2))
    assert first[0]["ROUNDS"] == second[0]["ROUNDS"] == "5"
    assert first[0]["SEED"] != second[0]["SEED"]
