"""How a round of `make faults` runs a test, and what it takes for survived."""

from pathlib import Path

import pytest

from faults import campaign
from faults.campaign import run_test
from faults.results import ROOT, Result

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


@pytest.mark.parametrize(
    ("text", "failed"),
    [
        ("from requirement import missing\ndef test_it(): missing('no server')", ["test_it"]),
        ("import pytest\ndef test_it(): raise pytest.skip.Exception('not here')", ["no test of it passed"]),
        ("import pytest\ndef test_it(): raise pytest.skip.Exception('not here')\ndef test_other(): pass", []),
    ],
    ids=["a tool is missing", "all are skipped", "one is skipped"],
)
def test_what_is_skipped_has_not_survived(
    file: Path, monkeypatch: pytest.MonkeyPatch, text: str, failed: list[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests"))
    monkeypatch.delenv("KORVET_TEST_REQUIRE", raising=False)
    file.write_text(text)
    assert run_test("abc", 1, str(file)).failed == failed


def test_a_test_that_takes_too_long_has_failed(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "WITHIN", 0)
    file.write_text("def test_it(): pass")
    assert run_test("abc", 1, str(file)).failed == [f"{file} took more than 0 s"]


def test_nothing_is_saved_once_the_product_is_another(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    products = iter(["abc", "abc", "def"])
    saved: list[Result] = []
    monkeypatch.setattr(campaign, "find_product", lambda: next(products))
    monkeypatch.setattr(campaign, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(campaign, "read_results", lambda _: [])
    monkeypatch.setattr(campaign, "run_test", lambda *of: Result(*of, began="2026-01-01 00:00", seconds=1.0, passed=1))
    monkeypatch.setattr(campaign, "save", saved.append)
    with pytest.raises(SystemExit, match="was abc and is def now"):
        campaign.main(2, ["F02"])
    assert [result.product for result in saved] == ["abc"]
